"""What happened to a store between two snapshots, fact id by fact id."""

from __future__ import annotations

from dataclasses import dataclass

from memx.model import DiffCounts, Fact, Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """The difference of two snapshots, each part in the order of the snapshot it is read from.

    Attributes:
        changed: (old, new) of each id whose content, status, links or provenance differ.
    """

    added: tuple[Fact, ...]
    removed: tuple[Fact, ...]
    changed: tuple[tuple[Fact, Fact], ...]
    unchanged: tuple[Fact, ...]

    @property
    def counts(self) -> DiffCounts:
        """How many facts each part holds."""
        return DiffCounts(len(self.added), len(self.removed), len(self.changed), len(self.unchanged))


def diff(before: Snapshot, after: Snapshot) -> SnapshotDiff:
    """Compare two snapshots by fact id; of a repeated id the first counts.

    A fact that a system rewrites in place under the same id is ``changed``, which links alone would not show.
    ``created_at`` and metadata do not count as a change: systems touch them on every read.
    """
    old, new = before.by_id(), after.by_id()
    both = [(old[fact_id], fact) for fact_id, fact in new.items() if fact_id in old]
    return SnapshotDiff(
        added=tuple(fact for fact_id, fact in new.items() if fact_id not in old),
        removed=tuple(fact for fact_id, fact in old.items() if fact_id not in new),
        changed=tuple((was, now) for was, now in both if _kept(was) != _kept(now)),
        unchanged=tuple(now for was, now in both if _kept(was) == _kept(now)),
    )


def _kept(fact: Fact) -> tuple[object, ...]:
    return fact.content, fact.status, fact.supersedes, fact.source_turn_ids
