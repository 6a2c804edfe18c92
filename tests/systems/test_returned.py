"""What an adapter returns is checked before anything is built on it."""

from __future__ import annotations

from typing import Any

import pytest

from memx.adapters.returned import checked_result, checked_snapshot
from memx.errors import AdapterError
from memx.model import Fact, QueryResult, Retrieved, Snapshot


def test_rows_that_repeat_an_id_and_say_something_else_are_kept() -> None:
    facts = (Fact("m", "one"), Fact("m", "two"), Fact("m", "one"), Fact("m#2", "three"), Fact("m", "two"))
    snapshot, findings = checked_snapshot(Snapshot("e", facts), "fancy")
    assert [(fact.fact_id, fact.content) for fact in snapshot.facts] == [
        ("m", "one"),
        ("m#3", "two"),
        ("m#2", "three"),
    ]
    assert snapshot.facts[1].metadata["repeated_id"] == "m"
    assert findings == ["export_state repeats fact ids (3 rows; 1 that say something else are kept as ID#2 ...)"]


def test_what_a_search_says_of_its_sources_and_scores_is_made_sure() -> None:
    def searched(**fields: Any) -> Retrieved:
        return checked_result(QueryResult((Retrieved("m\ud800", "text", **fields),)), "fancy", 10).facts[0]

    found = searched(metadata={"source_turn_ids": "D1:1"})
    assert (found.fact_id, found.metadata) == ("m\\ud800", {"source_turn_ids": ["D1:1"]})
    stored, _ = checked_snapshot(Snapshot("e", (Fact("m\ud800", "text"),)), "fancy")
    assert found.fact_id in stored.by_id()
    assert searched(metadata={"source_turn_ids": (1, 2)}).metadata == {"source_turn_ids": ["1", "2"]}
    for ids in (5, [None], {"D1:1": 1}):
        with pytest.raises(AdapterError, match="source_turn_ids that are no list of ids"):
            searched(metadata={"source_turn_ids": ids})
    with pytest.raises(AdapterError, match="a score that is no number"):
        searched(score=10**400)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"created_at": "2024-01-01"}, "Fact.created_at is a datetime or None, not str"),
        ({"source_turn_ids": (1,)}, "Fact.source_turn_ids holds texts, not int"),
        ({"supersedes": None}, "Fact.supersedes is a sequence, not NoneType"),
        ({"status": "gone"}, "Fact.status is active, superseded, invalidated, deleted, not 'gone'"),
    ],
)
def test_a_fact_of_the_wrong_kind_is_refused_where_it_is_made(fields: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Fact("m", "text", **fields)
