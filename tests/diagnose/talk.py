"""A small conversation of our own, the stores that memory systems could make of it, and a question for each piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from memx.diagnose.contract import History
from memx.diagnose.diagnoser import Diagnoser
from memx.model import (
    Candidate,
    CandidateSource,
    Case,
    Decider,
    Diagnosis,
    Fact,
    Outcome,
    Question,
    Retrieved,
    Session,
    Snapshot,
    Turn,
    Verdict,
)

FAIL = Verdict(Outcome.FAIL, Decider.RULE, "for the test")

LINES = {
    "s1": (
        datetime(2024, 3, 4, 18, 0),
        [
            ("a1", "Ines", "Hi Tomas! I finally moved, my new flat in Bergen has a view of the harbour."),
            ("a2", "Tomas", "Lovely! Did the piano survive the stairs?"),
            ("a3", "Ines", "Barely. Yesterday I joined a choir, we rehearse every Thursday at 6:30 pm."),
            ("a4", "Tomas", "I adopted two greyhounds last week, Pixel and Moss, they sleep all day."),
            ("a5", "Ines", "My sister Karin would love them, she works as a vet in Trondheim."),
        ],
    ),
    "s2": (
        datetime(2024, 5, 20, 9, 0),
        [
            ("b1", "Tomas", "Morning Ines. My bakery opens on the corner of Skippergata next month."),
            ("b2", "Ines", "Congratulations! Which bread will you start with?"),
            ("b3", "Tomas", "Rye and a cardamom bun that took me eleven attempts to get right."),
            ("b4", "Ines", "News from me too: the choir moved, now we rehearse every Monday at 8 pm."),
            ("b5", "Tomas", "I also signed up for a pottery course to relax after the long shifts."),
        ],
    ),
    "s3": (
        datetime(2024, 8, 1, 20, 0),
        [
            ("c1", "Ines", "I climbed Ulriken with Karin on Sunday, we were soaked to the bone."),
            ("c2", "Tomas", "Brave! I sold four hundred cardamom buns at the street festival."),
            ("c3", "Ines", "I started painting the hallway dark green, it took three litres of paint."),
        ],
    ),
}


def case(*questions: Question) -> Case:
    """The conversation."""
    sessions = tuple(
        Session(session_id, "talk", tuple(Turn(i, speaker, "user", text, at) for i, speaker, text in lines), at)
        for session_id, (at, lines) in LINES.items()
    )
    return Case("talk", "talk", sessions, questions)


def ask(text: str, gold: str, *evidence: str, **more: object) -> Question:
    """A question about it."""
    return Question("q1", "talk", text, gold, "test", evidence, **more)  # type: ignore[arg-type]


def verbatim(*, provenance: bool = True, without: Iterable[str] = ()) -> dict[str, Fact]:
    """Every turn as one fact, by turn id; the fact ids are ``f-TURN``."""
    left_out = set(without)
    return {
        turn.turn_id: Fact(
            f"f-{turn.turn_id}",
            f"{turn.speaker}: {turn.content}",
            source_turn_ids=(turn.turn_id,) if provenance else (),
        )
        for turn in case().turns().values()
        if turn.turn_id not in left_out
    }


def history(facts: Iterable[Fact], by_session: Sequence[tuple[str, Iterable[Fact]]] = ()) -> History:
    """The history that leaves these facts."""
    steps = tuple((name, Snapshot("talk", tuple(some), name)) for name, some in by_session)
    return History(case(), Snapshot("talk", ()), Snapshot("talk", tuple(facts), "after"), steps)


def rows(*facts: Fact) -> list[Retrieved]:
    """Facts as a query returns them."""
    return [Retrieved(fact.fact_id, fact.content, 1.0 - 0.01 * rank) for rank, fact in enumerate(facts)]


def answered(text: str) -> Candidate:
    """An answer given by a model."""
    return Candidate(text, CandidateSource.MODEL)


def diagnose(
    question: Question,
    facts: Iterable[Fact],
    retrieved: Sequence[Retrieved],
    *,
    answer: str = "I do not know",
    top_k: int = 3,
    by_session: Sequence[tuple[str, Iterable[Fact]]] = (),
    **options: object,
) -> Diagnosis:
    """Diagnose one FAIL."""
    diagnoser = Diagnoser(history(facts, by_session), **options)  # type: ignore[arg-type]
    return diagnoser.diagnose(question, retrieved, top_k, answered(answer), FAIL)
