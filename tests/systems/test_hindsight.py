"""``hindsight`` through the real client against a double of the server 1.1 (``examples/`` runs the real one)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.hindsight import Hindsight
from memx.errors import AdapterError, AdapterTimeoutError
from memx.model import FactStatus, Snapshot
from tests.systems.doubles.hindsight import HindsightDouble
from tests.systems.doubles.server import KEY
from tests.systems.hosted import (
    NEW,
    OLD,
    PET,
    ask,
    by_turn,
    check_conformance,
    check_faults,
    check_hang,
    check_options,
    check_start,
    filled,
    many,
    need_sdk,
    sessions,
    whole_run,
    without_pauses,
)

need_sdk("hindsight-client")


_opened: list[Hindsight] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


@pytest.fixture
def double() -> Iterator[HindsightDouble]:
    with HindsightDouble() as server:
        yield server


def hindsight(double: HindsightDouble, **options: object) -> Hindsight:
    _opened.append(Hindsight(**{"base_url": double.url, **options}))
    return _opened[-1]


def kind(snapshot: Snapshot, name: str) -> Snapshot:
    """The facts of one kind."""
    return Snapshot(snapshot.entity_id, tuple(fact for fact in snapshot.facts if fact.metadata["kind"] == name))


def test_speakers_times_and_turn_ids_reach_hindsight_and_come_back(double: HindsightDouble) -> None:
    facts = by_turn(kind(filled(hindsight(double)), "world"))
    sent = double.seen("POST", "/memories$")[0].body["items"][1]
    assert sent["content"].startswith("Lena: I have a dog called Łucja") and sent["document_id"] == PET
    assert sent["timestamp"].startswith("2024-03-04T18:30:00") and not sent.get("metadata")
    assert set(facts) == {OLD, PET, "march:3", NEW, "june:2"}
    assert facts[NEW].created_at == datetime(2024, 6, 21, 9, 0, tzinfo=UTC)


def test_facts_stay_and_the_observation_is_rewritten_with_its_history(double: HindsightDouble) -> None:
    snapshot = filled(hindsight(double))
    facts = by_turn(kind(snapshot, "world"))
    assert facts[OLD].status is facts[NEW].status is FactStatus.ACTIVE and facts[NEW].supersedes == ()
    home = next(f for f in kind(snapshot, "observation").facts if "Linz" in f.content)
    assert home.source_turn_ids == (OLD, NEW)
    assert [entry["content"] for entry in home.metadata["history"]] == ["Lena lives in Graz."]


def test_an_invalidated_fact_is_in_the_snapshot(double: HindsightDouble) -> None:
    adapter = hindsight(double)
    facts = by_turn(kind(filled(adapter), "world"))
    row = next(row for row in double.banks["case-1"].rows if row["id"] == facts[OLD].fact_id)
    row |= {"state": "invalidated", "invalidation_reason": "moved"}
    old = adapter.export_state("case-1").by_id()[facts[OLD].fact_id]
    assert old.status is FactStatus.INVALIDATED and old.metadata["invalidation_reason"] == "moved"


def test_recall_is_cut_to_k_with_scores_signals_and_the_ids_of_the_snapshot(double: HindsightDouble) -> None:
    adapter = hindsight(double)
    facts = filled(adapter).by_id()
    adapter.asked_at = datetime(2024, 7, 1, 12, 0)
    result = ask(adapter, top_k=3)
    assert len(result.facts) == 3 and result.declared["results"] == 9
    assert double.seen("POST", "/recall")[0].body["query_timestamp"] == "2024-07-01T12:00:00+00:00"
    best = result.facts[0]
    assert best.score is not None and best.score > 1 and set(best.signals) == {"semantic", "keyword"}
    for found in result.facts:
        assert found.metadata["source_turn_ids"] == list(facts[found.fact_id].source_turn_ids)


def test_a_store_of_many_pages_is_read_whole(double: HindsightDouble) -> None:
    adapter = hindsight(double)
    adapter.ingest_session(many(250))
    adapter.wait_until_ready("case-1", 10)
    assert len(kind(adapter.export_state("case-1"), "world").facts) == 250
    double.promised = 5
    with pytest.raises(AdapterError, match="rows were promised"):
        adapter.export_state("case-1")


def test_entities_are_apart_another_process_finds_them_and_reset_forgets_one(double: HindsightDouble) -> None:
    filled(hindsight(double), "one")
    filled(hindsight(double), "two")
    later = hindsight(double)
    assert by_turn(kind(later.export_state("one"), "world"))[OLD].source_turn_ids == (OLD,)
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and ask(later, "one").facts == ()
    assert len(kind(later.export_state("two"), "world").facts) == 5


def test_ready_means_retained_and_consolidated(double: HindsightDouble) -> None:
    adapter = hindsight(double)
    double.polls = 10**6
    adapter.ingest_session(sessions()[0])
    with pytest.raises(AdapterTimeoutError, match="1 of 1 retain operations are under way"):
        adapter.wait_until_ready("case-1", 0.05)
    for operation in double.banks["case-1"].operations.values():
        operation["left"] = 0
    with pytest.raises(AdapterTimeoutError, match="3 facts wait to be consolidated"):
        adapter.wait_until_ready("case-1", 0.05)
    hindsight(double, consolidation=False).wait_until_ready("case-1", 0.05)
    double.polls, double.fails = 0, True
    adapter.ingest_session(sessions()[1])
    with pytest.raises(AdapterError, match="ingest of session june failed: AuthenticationError"):
        adapter.wait_until_ready("case-1", 0.05)


def test_every_fault_is_named_and_nothing_is_stored_twice(double: HindsightDouble) -> None:
    check_start(partial(hindsight, double), double)
    check_hang(partial(hindsight, double), double, ingest="/memories$", attempts=4)
    check_faults(partial(hindsight, double), double, ingest="/memories$", listing="/list", search="/recall")
    adapter = hindsight(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    double.fail("429", path="/memories$")
    double.fail("late", path="/memories$")
    double.fail("drop", path="/memories$")
    assert len(kind(filled(adapter, "again"), "world").facts) == 5
    assert pauses[0] == 7
    with pytest.raises(AdapterError, match="cannot be reached"):
        gone = hindsight(double, base_url="http://127.0.0.1:9")
        without_pauses(gone)
        gone.describe()


def test_the_conformance_kit_passes(double: HindsightDouble) -> None:
    double.polls = 0
    check_conformance(partial(hindsight, double))


def test_options_are_checked_and_a_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with HindsightDouble(key=KEY) as double:
        assert hindsight(double, api_key=KEY).describe()["server"] == "1.1.0"
        with pytest.raises(AdapterError, match=r"refused \(401\).*HINDSIGHT_API_KEY"):
            hindsight(double).describe()
    check_options(Hindsight, key="", needed="hindsight-client 1", monkeypatch=monkeypatch)


def test_a_whole_run_shows_that_both_homes_stayed(double: HindsightDouble, tmp_path: Path) -> None:
    ran = whole_run(tmp_path, "hindsight", base_url=double.url)
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    assert {by_turn(kind(ran.snapshot, "world"))[turn].status for turn in (OLD, NEW)} == {FactStatus.ACTIVE}
    assert any(fact.metadata.get("history") for fact in ran.snapshot.facts)
