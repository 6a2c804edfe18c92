"""The difference of two snapshots by fact id."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from memx.diagnose.diff import diff
from memx.model import DiffCounts, Fact, FactStatus, Snapshot


def test_each_fact_falls_into_one_part() -> None:
    before = Snapshot("e", (Fact("1", "tea"), Fact("2", "lives in Oslo"), Fact("3", "gone"), Fact("4", "has a cat")))
    after = Snapshot(
        "e",
        (Fact("1", "tea"), Fact("2", "lives in Bergen"), Fact("4", "has a cat", FactStatus.DELETED), Fact("5", "x")),
    )
    found = diff(before, after)
    assert [fact.fact_id for fact in found.added] == ["5"]
    assert [fact.fact_id for fact in found.removed] == ["3"]
    assert next((was.content, now.content) for was, now in found.changed) == ("lives in Oslo", "lives in Bergen")
    assert [now.fact_id for _, now in found.changed] == ["2", "4"]
    assert found.counts == DiffCounts(added=1, removed=1, changed=2, unchanged=1)


def test_touching_a_row_is_no_change() -> None:
    touched = Fact("1", "tea", created_at=datetime(2024, 1, 1), metadata={"reads": 3})
    assert diff(Snapshot("e", (Fact("1", "tea"),)), Snapshot("e", (touched,))).counts == DiffCounts(0, 0, 0, 1)


facts = st.lists(st.builds(Fact, st.sampled_from("abcdef"), st.sampled_from(["x", "y"])), max_size=8)


@given(facts, facts)
def test_parts_cover_both_snapshots_once(old: list[Fact], new: list[Fact]) -> None:
    before, after = Snapshot("e", tuple(old)), Snapshot("e", tuple(new))
    counts = diff(before, after).counts
    assert counts.added + counts.changed + counts.unchanged == len(after.by_id())
    assert counts.removed + counts.changed + counts.unchanged == len(before.by_id())
