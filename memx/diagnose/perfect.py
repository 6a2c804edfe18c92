"""Perfect stores, into which faults are planted: all that a case's questions need is stored, current, retrievable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from memx.adapters.contract import Dataset
from memx.errors import UsageError
from memx.model import Case, Fact, FactStatus, Question
from memx.text.dates import dates_in
from memx.text.periods import DateRelation, DateValue
from memx.text.words import stems

_DATE = ":date"


class StoreKind(StrEnum):
    """What a perfect store keeps."""

    VERBATIM = "verbatim"
    EXTRACTED = "extracted"
    BOTH = "both"


class _Extraction(Protocol):
    """A sentence that was extracted from a conversation, with the turns it rests on."""

    @property
    def text(self) -> str: ...

    @property
    def turn_ids(self) -> tuple[str, ...]: ...


@runtime_checkable
class ExtractedDataset(Protocol):
    """A dataset that brings extracted facts of its own, as LoCoMo does."""

    def observations(self, case_id: str) -> tuple[Any, ...]:
        """The extracted sentences of one case."""


@dataclass(frozen=True, slots=True)
class PerfectStore:
    """A store without faults.

    Attributes:
        facts: by id, with provenance; :func:`without_provenance` takes it away when a fault is planted.
        carriers: ids of the facts that rest on each turn.
    """

    case: Case
    kind: StoreKind
    facts: Mapping[str, Fact]
    carriers: Mapping[str, tuple[str, ...]]

    def holds(self, question: Question, *, lossy: bool = False) -> bool:
        """True when every evidence turn of the question is carried, so that a fault can be planted.

        A sentence extracted from the right turn need not hold what is asked ("a book by an author she likes"); such a
        store is not perfect for the question, which is left out unless ``lossy``. This looks at words and dates of the
        gold alone, by other means than the diagnosis: half of the gold's words that stand in the turn, and a date where
        the turn has one, must stand in the facts too.
        """
        turns = self.case.turns()
        if not question.evidence or not all(one in turns for one in question.evidence):
            return False
        for one in question.evidence:
            ids = self.carriers.get(one, ())
            if not ids or not all(self.facts[fact_id].active for fact_id in ids):
                return False
            if not lossy and not question.abstention:
                wanted, kept = self.states(question, one), self.states(question, one, ids)
                if (_DATE in wanted - kept) or 2 * len(kept - {_DATE}) < len(wanted - {_DATE}):
                    return False
        return True

    def states(self, question: Question, turn_id: str, ids: Sequence[str] = ()) -> frozenset[str]:
        """What a turn, or facts that rest on it, state of the gold: words of it that stand in the turn and not in the
        question, and ``:date`` for a date of it that the turn names."""
        turn = self.case.turns()[turn_id]
        told = " ".join(self.facts[fact_id].content for fact_id in ids) if ids else turn.content
        found = (set(stems(question.gold)) & set(stems(turn.content)) & set(stems(told))) - set(stems(question.text))
        dates = [date for date in dates_in(question.gold) if _named(date, turn.content, turn.at)]
        return frozenset(found | ({_DATE} if any(_named(date, told, turn.at) for date in dates[:1]) else set()))


def _named(date: DateValue, text: str, at: datetime | None) -> bool:
    return any(date.relation(other) is not DateRelation.DISJOINT for other in dates_in(text, at))


def perfect_store(dataset: Dataset, case: Case, kind: StoreKind) -> PerfectStore:
    """The perfect store of a case.

    Raises:
        UsageError: extracted facts are asked for and the dataset brings none.
    """
    facts: dict[str, Fact] = {}
    if kind is not StoreKind.EXTRACTED:
        for turn in case.turns().values():
            fact_id = f"turn-{len(facts)}"
            facts[fact_id] = Fact(fact_id, f"{turn.speaker}: {turn.content}", source_turn_ids=(turn.turn_id,))
    if kind is not StoreKind.VERBATIM:
        if not isinstance(dataset, ExtractedDataset):
            raise UsageError(f"the dataset {dataset.info.name} brings no extracted facts", "Use the verbatim store.")
        extracted: tuple[_Extraction, ...] = dataset.observations(case.case_id)
        for number, one in enumerate(extracted):
            facts[f"note-{number}"] = Fact(f"note-{number}", one.text, source_turn_ids=one.turn_ids)
    carriers: dict[str, list[str]] = {}
    for fact in facts.values():
        for turn_id in fact.source_turn_ids:
            carriers.setdefault(turn_id, []).append(fact.fact_id)
    for question in case.questions:
        _update(question, facts, carriers)
    return PerfectStore(case, kind, facts, {turn_id: tuple(ids) for turn_id, ids in carriers.items()})


def _update(question: Question, facts: dict[str, Fact], carriers: Mapping[str, list[str]]) -> None:
    """Retire the facts whose value a later turn replaced, with a link from the current one: what a memory should do."""
    stale = [one for turn_id in question.metadata.get("stale_evidence", ()) for one in carriers.get(turn_id, ())]
    current = [one for turn_id in question.evidence for one in carriers.get(turn_id, ()) if one not in stale]
    if not stale or not current:
        return
    for fact_id in stale:
        facts[fact_id] = replace(facts[fact_id], status=FactStatus.SUPERSEDED)
    newest = facts[current[-1]]
    facts[newest.fact_id] = replace(newest, supersedes=tuple(dict.fromkeys((*newest.supersedes, *stale))))
