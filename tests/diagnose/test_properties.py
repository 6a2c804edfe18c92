"""What must never change a diagnosis: the order of facts, their ids, unrelated facts, a repeated agreeing fact."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memx.adapters.datasets.demo import Demo
from memx.diagnose.contract import History
from memx.diagnose.diagnoser import Diagnoser
from memx.diagnose.faults import Planted, Planter, without_provenance
from memx.diagnose.perfect import StoreKind, perfect_store
from memx.model import Cause, Decider, Fact, Outcome, Retrieved, Snapshot, Verdict

FAIL = Verdict(Outcome.FAIL, Decider.RULE, "for the test")
DATASET = Demo.load()
CASES = list(DATASET.cases())[:3]
UNRELATED = (
    "Zebrafish larvae were imaged under the confocal microscope overnight.",
    "The glacier's terminus retreated past the surveyor's cairn.",
    "Sven tuned the harpsichord to a quarter-comma temperament.",
)

Change = Callable[[Planted, random.Random], Planted]


def shuffled(fault: Planted, rng: random.Random) -> Planted:
    return replace(fault, facts=tuple(rng.sample(fault.facts, len(fault.facts))))


def renamed(fault: Planted, rng: random.Random) -> Planted:
    names = {fact.fact_id: f"{rng.randrange(10**9):09d}-{fact.fact_id}" for fact in fault.facts}
    names |= {
        row.fact_id: f"{rng.randrange(10**9):09d}-{row.fact_id}" for row in fault.retrieved if row.fact_id not in names
    }

    def rename(fact: Fact) -> Fact:
        old = tuple(names.get(one, one) for one in fact.supersedes)
        return replace(fact, fact_id=names.get(fact.fact_id, fact.fact_id), supersedes=old)

    return replace(
        fault,
        facts=tuple(map(rename, fault.facts)),
        retrieved=tuple(Retrieved(names[row.fact_id], row.content) for row in fault.retrieved),
        by_session=tuple((name, tuple(map(rename, facts))) for name, facts in fault.by_session),
    )


def with_unrelated(fault: Planted, rng: random.Random) -> Planted:
    more = [Fact(f"unrelated-{number}", text) for number, text in enumerate(UNRELATED)]
    place = rng.randrange(len(fault.facts) + 1)
    return replace(fault, facts=(*fault.facts[:place], *more, *fault.facts[place:]))


def with_a_repetition(fault: Planted, rng: random.Random) -> Planted:
    """Any one fact once more under a new id, as a memory that does not deduplicate would hold it."""
    if not fault.facts:
        return fault
    fact = rng.choice(fault.facts)
    return replace(fault, facts=(*fault.facts, replace(fact, fact_id="repeated", supersedes=())))


def found(fault: Planted, case_number: int, provenance: bool) -> tuple[str, str]:
    case = CASES[case_number]

    def shown(facts: tuple[Fact, ...]) -> Snapshot:
        return Snapshot("e", facts if provenance else without_provenance(facts))

    history = History(
        case, Snapshot("e", ()), shown(fault.facts), tuple((name, shown(facts)) for name, facts in fault.by_session)
    )
    diagnoser = Diagnoser(history, errata=fault.errata, context_budget=fault.context_budget)
    diagnosis = diagnoser.diagnose(fault.question, fault.retrieved, fault.top_k, fault.candidate, FAIL)
    return diagnosis.stage, diagnosis.cause


@pytest.mark.parametrize("change", [shuffled, renamed, with_unrelated, with_a_repetition])
@settings(max_examples=40, deadline=None)
@given(
    case_number=st.integers(0, len(CASES) - 1),
    cause=st.sampled_from(list(Cause)),
    seed=st.integers(0, 10**6),
    provenance=st.booleans(),
)
def test_nothing_of_this_changes_a_diagnosis(
    change: Change, case_number: int, cause: Cause, seed: int, provenance: bool
) -> None:
    rng = random.Random(seed)
    case = CASES[case_number]
    store = perfect_store(DATASET, case, StoreKind.VERBATIM)
    question = rng.choice([one for one in case.questions if store.holds(one)])
    fault = Planter(store, [one.gold for one in case.questions], rng).plant(cause, question)
    if fault is None:
        return
    assert found(change(fault, rng), case_number, provenance) == found(fault, case_number, provenance)
