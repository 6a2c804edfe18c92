"""Which fact of a temporal graph replaced which, read from validity times where the system keeps no link.

Zep and Graphiti end a fact's validity when a newer one contradicts it, and set the end to the newer one's beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memx.adapters.provenance import with_zone
from memx.model import FactStatus


@dataclass(frozen=True, slots=True)
class Validity:
    """The times of one edge of a graph.

    Attributes:
        subject: id of the node that the fact is about.
        relation: the edge's name, such as ``LIVES_IN``.
        valid_at, invalid_at: from when until when the fact is true.
        created_at, expired_at: when the system stored it, and when it learned that it is no longer true.
    """

    fact_id: str
    subject: str = ""
    relation: str = ""
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    created_at: datetime | None = None
    expired_at: datetime | None = None

    def status(self, now: datetime) -> FactStatus:
        """Active, or invalidated where the system expired it or its end lies in the past."""
        ended = self.invalid_at is not None and with_zone(self.invalid_at) <= now
        return FactStatus.INVALIDATED if self.expired_at is not None or ended else FactStatus.ACTIVE


def successors(edges: Sequence[Validity]) -> dict[str, str]:
    """From the id of each ended fact to the id of the fact that replaced it, where the times tell.

    The successor is about the same subject and begins when the old one ends; of several, one of the same relation, then
    the one stored nearest before the old one expired. A fact whose end no other fact marks has none.
    """
    beginning: dict[tuple[str, datetime], list[Validity]] = {}
    for edge in edges:
        if edge.subject and edge.valid_at is not None:
            beginning.setdefault((edge.subject, with_zone(edge.valid_at)), []).append(edge)
    found = {}
    for old in edges:
        if old.invalid_at is None:
            continue
        new = [e for e in beginning.get((old.subject, with_zone(old.invalid_at)), ()) if e.fact_id != old.fact_id]
        if new:
            found[old.fact_id] = min(new, key=lambda edge: _distance(old, edge)).fact_id
    return found


def _distance(old: Validity, new: Validity) -> tuple[bool, float]:
    apart = 0.0
    if old.expired_at is not None and new.created_at is not None:
        apart = abs((with_zone(old.expired_at) - with_zone(new.created_at)).total_seconds())
    return new.relation != old.relation, apart
