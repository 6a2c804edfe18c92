"""What an adapter returns is checked before anything is built on it."""

from __future__ import annotations

from memx.engine.adapter_checks import checked_snapshot
from memx.model import Fact, Snapshot


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
