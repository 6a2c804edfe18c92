"""What a memory system holds and returns: facts, snapshots, results of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memx.model.checks import freeze_ids, freeze_tuple, require_str, require_text


class FactStatus(StrEnum):
    """Whether a stored fact is held to be true now."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    INVALIDATED = "invalidated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of a memory store, as ``export_state`` shows it.

    Attributes:
        supersedes: ids of the facts that this one replaces.
        source_turn_ids: ids of the turns it came from, where the system keeps them.
    """

    fact_id: str
    content: str
    status: FactStatus = FactStatus.ACTIVE
    supersedes: tuple[str, ...] = ()
    source_turn_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self, "fact_id")
        require_str(self, "content")
        if self.status not in set(FactStatus):
            raise ValueError(f"Fact.status is {', '.join(FactStatus)}, not {self.status!r}")
        object.__setattr__(self, "status", FactStatus(self.status))
        freeze_ids(self, "supersedes", "source_turn_ids")
        if self.created_at is not None and not isinstance(self.created_at, datetime):
            raise TypeError(f"Fact.created_at is a datetime or None, not {type(self.created_at).__name__}")

    @property
    def active(self) -> bool:
        """True when the store holds the fact to be true now."""
        return self.status is FactStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All facts of one entity at one moment. Repeated fact ids are kept; :meth:`by_id` reads the first of each."""

    entity_id: str
    facts: tuple[Fact, ...]
    label: str = ""

    def __post_init__(self) -> None:
        freeze_tuple(self, "facts")

    def by_id(self) -> dict[str, Fact]:
        """The facts by id; of a repeated id the first counts."""
        found: dict[str, Fact] = {}
        for fact in self.facts:
            found.setdefault(fact.fact_id, fact)
        return found


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One fact that a query brought back.

    Attributes:
        score: the system's own score, higher is better; None where it gives none.
        signals: named parts of the score, as the system declares them.
        metadata: ``source_turn_ids`` here is read as provenance when the snapshot has none.
    """

    fact_id: str
    content: str
    score: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self, "fact_id")
        require_str(self, "content")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query returned: facts best first (at most ``top_k``), the system's own answer if it gives one, and
    whatever it wants to declare about the call."""

    facts: tuple[Retrieved, ...]
    answer: str | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze_tuple(self, "facts")
