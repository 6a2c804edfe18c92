"""What happened to each fact session by session: born, rewritten, superseded, lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from memx.diagnose.contract import History
from memx.model import Fact, Snapshot


class EventKind(StrEnum):
    """What happened to a fact."""

    BORN = "born"
    REWRITTEN = "rewritten"
    RETIRED = "retired"
    REVIVED = "revived"
    RELINKED = "relinked"  # other links, provenance or status that is not active before or after
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class FactEvent:
    """One change of one fact.

    Attributes:
        session_id: the session whose ingest did it; empty for what stood before the first or came after the last.
        old, new: the fact before and after; None where it did not exist.
        by: ids of the facts that supersede it, for ``retired``.
        label: of the snapshot that showed it.
    """

    kind: EventKind
    fact_id: str
    session_id: str
    old: Fact | None
    new: Fact | None
    by: tuple[str, ...] = ()
    label: str = ""

    def sentence(self) -> str:
        """The event in words."""
        when = f"session {self.session_id}" if self.session_id else "outside any session"
        if self.kind is EventKind.BORN and self.new:
            return f"{self.fact_id} born by {when}: {self.new.content!r}"
        if self.kind is EventKind.REWRITTEN and self.old and self.new:
            return f"{self.fact_id} rewritten by {when}: {self.old.content!r} -> {self.new.content!r}"
        if self.kind is EventKind.RETIRED and self.new:
            by = f" by {', '.join(self.by)}" if self.by else ""
            return f"{self.fact_id} {self.new.status}{by}, {when}"
        if self.kind is EventKind.REVIVED:
            return f"{self.fact_id} active again by {when}"
        if self.kind is EventKind.RELINKED:
            return f"{self.fact_id} linked anew by {when}"
        return f"{self.fact_id} lost by {when}"


def timeline(history: History) -> tuple[FactEvent, ...]:
    """Every event in order, facts that stood before the ingest included. Without snapshots per session the whole ingest
    is one step without a session id."""
    steps: list[tuple[str, Snapshot]] = [("", history.before), *history.by_session, ("", history.after)]
    events = [FactEvent(EventKind.BORN, fact.fact_id, "", None, fact) for fact in history.before.by_id().values()]
    for (_, earlier), (session_id, later) in pairwise(steps):
        events.extend(_step(session_id, earlier, later))
    return tuple(events)


def of_fact(events: Sequence[FactEvent], fact_id: str) -> tuple[FactEvent, ...]:
    """The events of one fact."""
    return tuple(event for event in events if event.fact_id == fact_id)


def _step(session_id: str, earlier: Snapshot, later: Snapshot) -> list[FactEvent]:
    old, new = earlier.by_id(), later.by_id()
    replaced: dict[str, list[str]] = {}
    for fact in new.values():
        for one in fact.supersedes:
            replaced.setdefault(one, []).append(fact.fact_id)
    events = []
    for fact_id, now in new.items():
        by = tuple(replaced.get(fact_id, ()))
        events += changes(fact_id, session_id, old.get(fact_id), now, by, later.label)
    for fact_id, was in old.items():
        if fact_id not in new:
            events += changes(fact_id, session_id, was, None, (), later.label)
    return events


def changes(
    fact_id: str, session_id: str, old: Fact | None, new: Fact | None, by: Sequence[str] = (), label: str = ""
) -> list[FactEvent]:
    """What happened to one fact between two snapshots; two events where it was both rewritten and retired."""
    kinds: list[EventKind] = []
    if new is None:
        kinds = [EventKind.LOST] if old else []
    elif old is None:
        kinds = [EventKind.BORN]
    else:
        if old.content != new.content:
            kinds.append(EventKind.REWRITTEN)
        if old.active != new.active:
            kinds.append(EventKind.REVIVED if new.active else EventKind.RETIRED)
        kept = (old.status, old.supersedes, old.source_turn_ids) == (new.status, new.supersedes, new.source_turn_ids)
        if not kinds and not kept:
            kinds.append(EventKind.RELINKED)
    return [
        FactEvent(kind, fact_id, session_id, old, new, tuple(by) if kind is EventKind.RETIRED else (), label)
        for kind in kinds
    ]
