"""Does memx call conflict what is one, and nothing else?

Three readings, no model: (1) LoCoMo's questions in stores without faults, every needed fact retrieved, judged FAIL by
force: facts that agree must give no conflict; (2) BEAM's knowledge updates and contradictions in a store that keeps
both turns, when the answer used the old value: these are conflicts; (3) the same updates when the answer used the
current value, and when neither turn came back: these are none.

    python -m benchmarks.conflicts
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import shared_data
from memx.adapters.contract import Dataset
from memx.adapters.datasets.beam import Beam
from memx.adapters.datasets.locomo import Locomo
from memx.diagnose.contract import History
from memx.diagnose.diagnoser import Diagnoser
from memx.diagnose.faults import without_provenance
from memx.diagnose.perfect import StoreKind, perfect_store
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
    Snapshot,
    Stage,
    Verdict,
)

FAIL = Verdict(Outcome.FAIL, Decider.MEMX, "by force")
UPDATES = ("knowledge_update", "contradiction_resolution")


def agreeing(dataset: Dataset, kind: StoreKind, provenance: bool) -> tuple[Counter[str], float]:
    """Stages of all questions whose evidence the store holds, with perfect retrieval; and the seconds it took."""
    found: Counter[str] = Counter()
    started = time.perf_counter()
    for case in dataset.cases():
        store = perfect_store(dataset, case, kind)
        facts = tuple(store.facts.values())
        diagnoser = diagnoser_of(case, facts if provenance else without_provenance(facts))
        for question in case.questions:
            ids = [one for turn_id in question.evidence for one in store.carriers.get(turn_id, ())]
            if not ids:
                continue
            rows = [Retrieved(one, store.facts[one].content) for one in dict.fromkeys(ids)]
            text = Candidate("; ".join(row.content for row in rows), CandidateSource.RETRIEVED)
            diagnosis = diagnoser.diagnose(question, rows, len(rows), text, FAIL)
            conflict = diagnosis.stage is Stage.CONFLICT
            found["questions"] += 1
            found["conflicts"] += conflict
            found["several"] += len(question.evidence) > 1
            found["several_conflicts"] += conflict and len(question.evidence) > 1
    return found, time.perf_counter() - started


def diagnoser_of(case: Case, facts: Sequence[Fact]) -> Diagnoser:
    """A diagnoser of a store that was empty before the ingest."""
    return Diagnoser(History(case, Snapshot(case.entity_id, ()), Snapshot(case.entity_id, tuple(facts))))


def updates(folder: Path) -> Iterator[tuple[Case, Question, list[str], list[str]]]:
    """(case, question, turns of the old side, turns of the current side) of BEAM's updates and contradictions."""
    for case in Beam.load(folder).cases():
        for question in case.questions:
            if question.category not in UPDATES:
                continue
            old = [str(one) for one in question.metadata.get("stale_evidence", ())]
            new = [one for one in question.evidence if one not in old]
            if not old:
                roles = list(question.metadata.get("evidence_roles", {}).values())
                old, new = (list(roles[0]), list(roles[-1])) if len(roles) > 1 else ([], new)
            yield case, question, old, new


def keeping_both(case: Case, provenance: bool) -> Diagnoser:
    """A diagnoser of the verbatim store of a case."""
    facts = tuple(
        Fact(f"f-{turn.turn_id}", f"{turn.speaker}: {turn.content}", source_turn_ids=(turn.turn_id,))
        for turn in case.turns().values()
    )
    return diagnoser_of(case, facts if provenance else without_provenance(facts))


def answered(diagnoser: Diagnoser, case: Case, question: Question, top: Sequence[str], answer: str) -> Diagnosis:
    """The diagnosis of an answer, given the turns that came back."""
    turns = case.turns()
    rows = [Retrieved(f"f-{one}", f"{turns[one].speaker}: {turns[one].content}") for one in top]
    return diagnoser.diagnose(question, rows, 10, Candidate(answer, CandidateSource.MODEL), FAIL)


def main() -> None:
    """Print the three readings."""
    folder = shared_data() / "data"
    locomo = Locomo.load(folder / "locomo10.json")
    print("LoCoMo, no fault, every needed fact retrieved, judged FAIL by force: questions called conflict")
    print(f"  {'store':<12}{'provenance':<12}{'all':>14}{'two or more turns':>20}{'s':>8}")
    for kind in StoreKind:
        for provenance in (True, False):
            found, seconds = agreeing(locomo, kind, provenance)
            every = f"{found['conflicts']} of {found['questions']}"
            several = f"{found['several_conflicts']} of {found['several']}"
            print(f"  {kind:<12}{'yes' if provenance else 'no':<12}{every:>14}{several:>20}{seconds:>8.1f}")
    print("\nBEAM updates and contradictions, verbatim store that keeps both turns: called conflict")
    print(f"  {'category':<28}{'provenance':<12}{'old value used':>16}{'current used':>16}{'neither came back':>20}")
    for provenance in (True, False):
        counts: Counter[tuple[str, str]] = Counter()
        diagnosers: dict[str, Diagnoser] = {}
        for case, question, old, new in updates(folder / "beam"):
            turns = case.turns()
            if case.case_id not in diagnosers:
                diagnosers = {case.case_id: keeping_both(case, provenance)}
            if not old or not new or set(old) & set(new):
                counts[question.category, "one turn"] += 1
                continue
            stale_answer = " ".join(turns[one].content for one in old)[:300]
            for name, top, answer in (
                ("old", [*old, *new], stale_answer),
                ("current", [*old, *new], question.gold),
                ("neither", [one for one in turns if one not in {*old, *new}][:10], "I do not know."),
            ):
                diagnosis = answered(diagnosers[case.case_id], case, question, top, answer)
                counts[question.category, name] += diagnosis.stage is Stage.CONFLICT
            counts[question.category, "all"] += 1
        for category in UPDATES:
            total = counts[category, "all"]
            cells = [f"{counts[category, name]} of {total}" for name in ("old", "current", "neither")]
            told = "yes" if provenance else "no"
            print(f"  {category:<28}{told:<12}{cells[0]:>16}{cells[1]:>16}{cells[2]:>20}")
        left = sum(counts[category, "one turn"] for category in UPDATES)
        print(f"  ({left} more hold both values in one turn, where no two facts can disagree)")


if __name__ == "__main__":
    main()
