"""Which fact of a temporal graph replaced which, read from times of validity where the system keeps no link.

Graphiti and Zep end an edge when a newer one contradicts it: they set its end to the newer one's beginning, and keep
when they noticed. Which edge that was they do not say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memx.adapters.provenance import with_zone
from memx.model import FactStatus
from memx.text.words import stems

#: The clock that dates an edge's creation and the one that dates another's end are read some statements apart.
_SLACK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Validity:
    """What of an edge tells whether it ended, and what ended it.

    Attributes:
        ends: ids of the two nodes that it relates, the one that it is about first.
        relation: the edge's name, such as ``LIVES_IN``.
        valid_at, invalid_at: from when until when the fact is true.
        created_at, expired_at: when the system stored it, and when it noticed that it is no longer true.
    """

    fact_id: str
    fact: str
    ends: tuple[str, str]
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
    """From the id of each edge that another one ended to the id of that other.

    The successor begins when the old one ends, relates one of the same nodes, and was stored before the system noticed
    the end. Of several, the one of the same relation, then about the same node, then with the most words in common. An
    edge whose end was only told ("until May") was ended by none.
    """
    starting: dict[datetime, list[Validity]] = {}
    for edge in edges:
        if edge.valid_at is not None:
            starting.setdefault(with_zone(edge.valid_at), []).append(edge)
    found = {}
    for old in edges:
        if old.invalid_at is None or old.expired_at is None:
            continue
        noticed = with_zone(old.expired_at) + _SLACK
        new = [
            edge
            for edge in starting.get(with_zone(old.invalid_at), ())
            if edge is not old
            and {*old.ends} & {*edge.ends}
            and (edge.created_at is None or with_zone(edge.created_at) <= noticed)
        ]
        if new:
            found[old.fact_id] = max(new, key=_likeness(old)).fact_id
    return found


def _likeness(old: Validity) -> Callable[[Validity], tuple[bool, bool, int]]:
    """How much an edge that begins when ``old`` ends says the same thing of the same one."""
    told = set(stems(old.fact))

    def likeness(new: Validity) -> tuple[bool, bool, int]:
        return old.relation == new.relation, old.ends[0] == new.ends[0], len(told & set(stems(new.fact)))

    return likeness
