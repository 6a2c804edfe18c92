"""Oddities of a memory system that are no failure: counted per case, told once, kept with the case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from memx.model import Case, Fact, Retrieved, Snapshot

#: So much may clocks differ, zones included.
_SKEW = timedelta(days=1)
#: So many findings of different words are told one by one; an adapter may note each turn in words of its own.
_MOST = 50


class Findings:
    """The findings of one case, in the order in which they came first."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._listed: Mapping[str, Fact] = {}
        self._texts: frozenset[str] = frozenset()
        self._unlisted: set[str] = set()
        self._renamed: set[str] = set()

    def add(self, *texts: str) -> None:
        """Note findings; the same words again count up."""
        self._times.update(texts)

    def lines(self) -> list[str]:
        """Each finding once, with how often it came."""
        told = [f"{text} ({count} times)" if count > 1 else text for text, count in self._times.items()]
        if len(told) > _MOST + 1:
            told = [*told[:_MOST], f"{len(told) - _MOST:,} more findings of other words"]
        if self._unlisted:
            same = f", {len(self._renamed)} of them with the text of a listed fact" if self._renamed else ""
            hint = ": ids change between calls" if self._renamed else ""
            told.append(f"searches brought {len(self._unlisted)} ids that export_state does not list{same}{hint}")
        return told

    def store_is(self, snapshot: Snapshot, case: Case) -> None:
        """The store after ingest: its times are looked at, and searches are compared with it from now on."""
        self._listed = snapshot.by_id()
        self._texts = frozenset(fact.content for fact in snapshot.facts)
        self.add(*strange_times(snapshot.facts, case))

    def saw(self, retrieved: Sequence[Retrieved]) -> None:
        """Compare what a search brought with the store."""
        for fact in retrieved:
            if fact.fact_id not in self._listed:
                self._unlisted.add(fact.fact_id)
                if fact.content in self._texts:
                    self._renamed.add(fact.fact_id)


def strange_times(facts: Sequence[Fact], case: Case) -> list[str]:
    """Findings about ``created_at``: later than now and than all that was said, or 1970, as of a clock never set."""
    said = [_utc(turn.at) for session in case.sessions for turn in session.turns if turn.at]
    latest = max([datetime.now(UTC), *said]) + _SKEW
    times = [_utc(fact.created_at) for fact in facts if fact.created_at]
    ahead = [time for time in times if time > latest]
    unset = sum(1 for time in times if time.year <= 1970)
    found = []
    if ahead:
        found.append(f"{len(ahead)} facts have a created_at in the future, up to {max(ahead):%Y-%m-%d}")
    if unset and not any(time.year <= 1970 for time in said):
        found.append(f"{unset} facts have a created_at of 1970 or before, as a clock has that is not set")
    return found


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
