"""Real store files for tests and benchmarks, written as a run writes them: every stage, cause, verdict and bad text."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from memx.engine.store.writer import RunWriter, write_controls
from memx.model import (
    CAUSES_OF,
    Candidate,
    Case,
    Cause,
    DiagnosedFact,
    Diagnosis,
    DiffCounts,
    EvidencePiece,
    Fact,
    NearMiss,
    Question,
    RankMetrics,
    RetrievalMetrics,
    Retrieved,
    Session,
    SignalGap,
    Snapshot,
    Stage,
    StepFailure,
    Trace,
    Turn,
    Verdict,
)

#: Texts that look like markup, that a terminal would obey, that have no width, or too much of it.
HOSTILE: tuple[str, ...] = (
    "[/foo] closes nothing",
    "[bold]not bold[/bold] and list[int] = [1]",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 bell \x9b2J",
    "right to left: שלום עולם \u202egnp.exe",
    "zero\u200bwidth\u2060joined e\u0301 👩‍👩‍👧 ☂️ 漢字",
    "line one\nline two\r\nline three\ttab",
    "x" * 100_000,
    "\ud800 lone surrogate",
    "",
    "%s {0} $HOME `id` \\n",
)

_STAGE_OF = {cause: stage for stage, causes in CAUSES_OF.items() for cause in causes}
_CATEGORIES = ("single-hop", "multi-hop", "temporal", "knowledge-update", "open-domain")
_PEOPLE = ("Melanie", "Caroline", "Jon", "Gina", "Tomas", "Priya")
_THINGS = ("the pottery class", "a charity run", "the trip to Oslo", "her new studio", "the violin", "a rescue dog")
_START = datetime(2024, 3, 1, 9, 30)
_TOP_K = 10
_DEPTH = 20


def write_control(directory: Path, arm_id: str, of: str, tags: Mapping[str, str]) -> None:
    """Make a stored run a control arm of another, whose questions it gives ``tags``."""
    with closing(sqlite3.connect(directory / "memx.db")) as db:
        db.execute(
            "UPDATE runs SET manifest = json_set(coalesce(manifest, '{}'), '$.control', json(?)) WHERE run_id = ?",
            ['{"arm": "no-context", "key": "k"}', arm_id],
        )
        db.commit()
    counts = {name: list(tags.values()).count(name) for name in ("guessable", "reader-bound", "retrieval-bound")}
    arms = {"no-context": {"run_id": arm_id, "value": 0.25, "n": 3, "d": 12}}
    write_controls(directory, of, tags, {"reader": True, "arms": arms, "tags": counts})


def write_run(
    directory: Path,
    run_id: str = "20260301-090000-demo",
    *,
    questions: int = 36,
    cases: int = 3,
    outcomes: Sequence[str] = (),
    hostile: bool = False,
    state: str = "finished",
    adapter: str = "local",
) -> None:
    """One run of ``questions`` questions over ``cases`` cases.

    Args:
        outcomes: what the questions end with, in turn: a cause, ``PASS``, ``UNJUDGED`` or ``ERROR``; by default each
            cause once and as many PASSes.
        hostile: put the texts of ``HOSTILE`` into every field that holds free text.
        state: ``finished``, ``interrupted``, ``failed`` or ``running``.
    """
    endings = list(outcomes) or [x for cause in Cause for x in (str(cause), "PASS")] + ["UNJUDGED", "ERROR"]
    writer = RunWriter(directory, run_id)
    settings = {"top_k": _TOP_K, "limit": None, "random": False, "seed": 7}
    writer.begin(
        dataset="demo",
        adapter=adapter,
        judge="offline",
        settings=settings,
        manifest={"seed": 7, "git": {"commit": "0f0f0f0"}},
    )
    writer.set_question_total(questions)
    counts = dict.fromkeys(("PASS", "FAIL", "UNJUDGED", "ERROR"), 0)
    for place in range(cases):
        numbers = range(place, questions, cases)
        case, facts, traces = _case(place, numbers, endings, hostile)
        attempt = writer.begin_case(case, place, f"{run_id}/{case.case_id}")
        before: Snapshot | None = Snapshot(case.case_id, ())
        writer.write_snapshot(case.case_id, attempt, 0, Snapshot(case.case_id, ()), None)
        for step, session in enumerate(case.sessions, start=1):
            after = Snapshot(case.case_id, _facts_after(facts, step, len(case.sessions)))
            writer.write_snapshot(case.case_id, attempt, step, after, before, session.session_id)
            before = after
        diff = DiffCounts(len(facts), 0, 0, 0)
        writer.end_case(case.case_id, "ready", facts=len(facts), diff=diff, timings={"ingest": 812.5, "ready": 3.0})
        for number, trace in zip(numbers, traces, strict=True):
            writer.write_trace(trace, number)
            counts[str(trace.verdict.outcome)] += 1
        writer.end_case(case.case_id, "done")
    if state != "running":
        judged = counts["PASS"] + counts["FAIL"]
        writer.end(state, _summary(counts, questions, judged))
    writer.close()


def _summary(counts: dict[str, int], questions: int, judged: int) -> dict[str, object]:
    value = counts["PASS"] / judged if judged else None
    return {
        "questions": questions, "passed": counts["PASS"], "failed": counts["FAIL"], "unjudged": counts["UNJUDGED"],
        "errors": counts["ERROR"], "abstentions": 0,
        "accuracy": {"value": value, "n": counts["PASS"], "d": judged, "low": 0.3, "high": 0.7},
    }  # fmt: skip


def _case(
    place: int, numbers: range, endings: Sequence[str], hostile: bool
) -> tuple[Case, tuple[Fact, ...], list[Trace]]:
    case_id = f"conv-{place + 1}"
    texts = _texts(hostile)
    turns = [_turn(n, texts) for n in range(24)]
    sessions = tuple(
        Session(f"D{n + 1}", case_id, tuple(turns[n * 8 : n * 8 + 8]), _START + timedelta(days=7 * n)) for n in range(3)
    )
    facts = tuple(
        Fact(
            f"f{n + 1:02d}",
            f"{_PEOPLE[n % 6]} talked about {_THINGS[n % 6]}{next(texts)}",
            status="superseded" if n % 9 == 8 else "active",
            supersedes=("f01",) if n == 8 else (),
            source_turn_ids=(turn.turn_id,),
            created_at=turn.at,
            metadata={"importance": 0.5},
        )
        for n, turn in enumerate(turns)
    )
    questions = tuple(_question(case_id, n, turns, texts) for n in numbers)
    traces = [
        _trace(q, facts, turns, endings[n % len(endings)], texts) for n, q in zip(numbers, questions, strict=True)
    ]
    return Case(case_id, case_id, sessions, questions), facts, traces


def _texts(hostile: bool) -> Iterator[str]:
    chosen = random.Random(7)
    while True:
        yield f" {chosen.choice(HOSTILE)}" if hostile else ""


def _turn(n: int, texts: Iterator[str]) -> Turn:
    speaker = _PEOPLE[n % 2]
    content = f"I went to {_THINGS[n % 6]} with {_PEOPLE[n % 6]} and stayed for {n + 2} days{next(texts)}"
    at = _START + timedelta(days=7 * (n // 8), minutes=n)
    return Turn(f"D{n // 8 + 1}:{n % 8 + 1}", speaker, "user" if n % 2 else "assistant", content, at)


def _question(case_id: str, n: int, turns: Sequence[Turn], texts: Iterator[str]) -> Question:
    evidence = turns[n % 24], turns[(n + 5) % 24]
    return Question(
        f"{case_id}:q{n:02d}",
        case_id,
        f"When did {_PEOPLE[n % 6]} go to {_THINGS[n % 5]}?{next(texts)}",
        f"{n % 28 + 1} March 2024{next(texts)}",
        _CATEGORIES[n % len(_CATEGORIES)],
        tuple(turn.turn_id for turn in evidence),
        tuple(dict.fromkeys(turn.turn_id.split(":")[0] for turn in evidence)),
        _START + timedelta(days=30),
    )


def _facts_after(facts: tuple[Fact, ...], step: int, steps: int) -> tuple[Fact, ...]:
    """The facts that stand after a session; the first fact is reworded by the last one."""
    kept = facts[: len(facts) * step // steps]
    if step < steps and kept:
        return (Fact(facts[0].fact_id, "an earlier wording of the first fact"), *kept[1:])
    return kept


def _trace(
    question: Question, facts: Sequence[Fact], turns: Sequence[Turn], ending: str, texts: Iterator[str]
) -> Trace:
    outcome = ending if ending in ("PASS", "UNJUDGED", "ERROR") else "FAIL"
    if outcome == "ERROR":
        failure = StepFailure("query", f"the memory system raised KeyError{next(texts)}", "KeyError", "see its log")
        return Trace(
            question, question.entity_id, "e", _TOP_K, Verdict("ERROR", "memx", "query failed"), error=failure,
            timings_ms={"query": 30_000.0},
        )  # fmt: skip
    level = RankMetrics({1: 0.0, 10: 1.0}, {1: 0.0, 10: 0.0}, {1: 0.0, 10: 0.43}, 0.25)
    verdict = Verdict(outcome, "rule", f"{outcome.lower()}: the date differs{next(texts)}", 0.0)
    return Trace(
        question=question,
        case_id=question.entity_id,
        entity_id="e",
        top_k=_TOP_K,
        verdict=verdict,
        retrieved=_retrieved(question, facts, texts),
        candidate=Candidate(f"I don't have that information.{next(texts)}", "extractive", 412),
        diagnosis=_diagnosis(question, facts, turns, Cause(ending), texts) if outcome == "FAIL" else None,
        metrics=RetrievalMetrics(level, level),
        diff=DiffCounts(len(facts), 0, 0, 0),
        timings_ms={"query": 12.5, "judge": 0.4, "diagnose": 7.9},
        declared={"mode": "fusion", "considered": 24},
    )


def _retrieved(question: Question, facts: Sequence[Fact], texts: Iterator[str]) -> tuple[Retrieved, ...]:
    """The facts in a shuffled order, the first piece of evidence at rank 13 and the second at rank 2."""
    first, second = (next(f for f in facts if turn_id in f.source_turn_ids) for turn_id in question.evidence)
    others = [fact for n in range(len(facts)) if (fact := facts[(n * 5 + 3) % len(facts)]) not in (first, second)]
    order = [others[0], second, *others[1:11], first, *others[11:]]
    rows = []
    for n, fact in enumerate(order[:_DEPTH]):
        signals = {"semantic": 0.8 - n / 40, "bm25": 7.8 - n / 4, "recency": (n % 7) / 7, "final_score": 0.9 - n / 30}
        rows.append(Retrieved(fact.fact_id, fact.content, 0.9 - n / 30, signals))
    foreign = Retrieved("g99", f"a fact that no snapshot shows{next(texts)}", None, {}, {"source_turn_ids": ["D1:1"]})
    return (*rows, foreign)


def _diagnosis(
    question: Question, facts: Sequence[Fact], turns: Sequence[Turn], cause: Cause, texts: Iterator[str]
) -> Diagnosis:
    of_turn = {fact.source_turn_ids[0]: fact for fact in facts}
    said = {turn.turn_id: turn for turn in turns}
    first, second = (of_turn[turn_id] for turn_id in question.evidence)
    stage = _STAGE_OF[cause]
    lost = stage is Stage.EXTRACTION
    rank = None if lost or cause is Cause.ABSENT else 13
    pieces = (
        EvidencePiece(
            question.evidence[0], said[question.evidence[0]].content, () if lost else (first.fact_id,),
            None if lost else first.status, rank, False, False, None if lost else "provenance",
            note=f"the detail is the date{next(texts)}",
        ),
        EvidencePiece(
            question.evidence[1], said[question.evidence[1]].content, (second.fact_id,), second.status, 2, True, True,
            "text", span="stayed for",
        ),
    )  # fmt: skip
    missed = ()
    if stage is Stage.RETRIEVAL:
        missed = tuple(
            NearMiss(
                first.fact_id, facts[(n * 5 + 3) % len(facts)].fact_id, rank, _TOP_K - n,
                (
                    SignalGap("semantic", 0.71, 0.66 + n / 50), SignalGap("bm25", 3.1, 7.8),
                    SignalGap("recency", 0.02, 0.64), SignalGap("final_score", 0.583, 0.621),
                ),
                ("k >= 13", "weight of recency <= 0.08"),
            )
            for n in range(3)
        )  # fmt: skip
    roles = (DiagnosedFact(first.fact_id, first.content, first.status, "expected"),)
    return Diagnosis(
        stage, cause, 0.9, f"fact {first.fact_id} ranked 13, cut at 10{next(texts)}", "provenance", evidence=pieces,
        facts=roles, near_misses=missed, notes=(f"a second finding{next(texts)}",),
    )  # fmt: skip
