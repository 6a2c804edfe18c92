"""``zep`` through the real SDK against a double of the API v4."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.zep import Zep
from memx.errors import AdapterError, AdapterTimeoutError
from memx.model import FactStatus
from tests.systems.doubles.server import KEY
from tests.systems.doubles.zep import ZepDouble
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

need_sdk("zep-cloud")


@pytest.fixture
def double() -> Iterator[ZepDouble]:
    with ZepDouble() as server:
        yield server


def zep(double: ZepDouble, **options: object) -> Zep:
    return Zep(api_key=KEY, base_url=double.url, **options)


def test_speakers_times_and_turn_ids_reach_zep_and_come_back(double: ZepDouble) -> None:
    facts = by_turn(filled(zep(double)))
    sent = double.seen("POST", "/messages")[0].body["messages"][1]
    assert (sent["name"], sent["role"], sent["reference_time"]) == ("Lena", "user", "2024-03-04T18:30:00+00:00")
    assert sent["metadata"]["turn_id"] == PET and "犬" in sent["content"]
    assert set(facts) == {OLD, PET, "march:3", NEW, "june:2"}
    assert facts[NEW].content == "Lena moved to Linz." and facts[NEW].metadata["name"] == "LIVES_IN"


@pytest.mark.parametrize("tracing", [True, False])
def test_an_edge_that_was_ended_is_superseded_by_the_one_that_ended_it(tracing: bool) -> None:
    with ZepDouble(tracing=tracing) as double:
        facts = by_turn(filled(zep(double, traces=tracing)))
        assert facts[OLD].status is FactStatus.SUPERSEDED and facts[NEW].status is FactStatus.ACTIVE
        assert facts[NEW].supersedes == (facts[OLD].fact_id,)
        assert facts[OLD].metadata["invalid_at"] == "2024-06-21T09:00:00+00:00"
        assert bool(double.seen("GET", "ingestion-traces")) is tracing


def test_search_gives_at_most_k_with_scores_and_the_ids_of_the_snapshot(double: ZepDouble) -> None:
    adapter = zep(double)
    facts = filled(adapter).by_id()
    found = ask(adapter, top_k=2).facts
    assert len(found) == 2 and found[0].score is not None and found[0].score >= (found[1].score or 0)
    assert {f.fact_id for f in found} <= set(facts)
    assert found[0].metadata["source_turn_ids"] == list(facts[found[0].fact_id].source_turn_ids)


def test_a_store_of_many_pages_is_read_whole_and_a_long_turn_goes_in_parts(double: ZepDouble) -> None:
    adapter = zep(double, message_chars=100)
    session = many(250)
    adapter.ingest_session(session)
    adapter.wait_until_ready("case-1", 10)
    assert len(adapter.export_state("case-1").facts) == 250
    assert all(len(call.body["messages"]) <= 30 for call in double.seen("POST", "/messages"))
    assert len(ask(adapter, top_k=120).facts) == 120
    double.repeat_cursor = True
    with pytest.raises(AdapterError, match="repeats its cursor"):
        adapter.export_state("case-1")


def test_entities_are_apart_another_process_finds_them_and_reset_forgets_one(double: ZepDouble) -> None:
    filled(zep(double), "one")
    filled(zep(double), "two")
    later = zep(double)
    assert by_turn(later.export_state("one"))[OLD].source_turn_ids == (OLD,)
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and ask(later, "one").facts == ()
    assert len(later.export_state("two").facts) == 5
    assert len(filled(later, "one").facts) == 5


def test_ready_means_that_tasks_are_done_and_a_failed_task_is_told(double: ZepDouble) -> None:
    adapter = zep(double)
    double.polls = 10**6
    adapter.ingest_session(sessions()[0])
    with pytest.raises(AdapterTimeoutError, match="1 of 1 tasks are under way"):
        adapter.wait_until_ready("case-1", 0.05)
    double.polls, double.task_end = 0, "failed"
    adapter.ingest_session(sessions()[1])
    with pytest.raises(AdapterError, match="ingest of session june failed: the model refused"):
        adapter.wait_until_ready("case-1", 0.05)
    double.task_end = "partial"
    other = zep(double)
    other.ingest_session(sessions("case-2")[0])
    other.wait_until_ready("case-2", 1)
    assert other.take_notes() == ["zep stored only part of session march: no reason given"]


def test_what_zep_did_not_take_is_told(double: ZepDouble) -> None:
    double.accepts = 2
    told = "2 of 3 messages were accepted; stored so far: 0 of 3 turns of session march"
    with pytest.raises(AdapterError, match=told):
        zep(double).ingest_session(sessions()[0])


def test_every_fault_is_named_and_nothing_is_stored_twice(double: ZepDouble) -> None:
    check_start(partial(zep, double), double)
    check_hang(partial(zep, double), double, ingest="/messages", attempts=4)
    check_faults(partial(zep, double), double, ingest="/messages", listing="/edges/list", search="/search/edges")
    adapter = zep(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    double.fail("429", path="/messages")
    double.fail("late", path="/messages")
    double.fail("drop", path="/messages")
    assert len(filled(adapter, "again").facts) == 5
    assert pauses[0] == 7


def test_the_conformance_kit_passes(double: ZepDouble) -> None:
    double.polls = 0
    check_conformance(partial(zep, double))


def test_options_are_checked(double: ZepDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(Zep, key="ZEP_API_KEY", needed=r"zep-cloud 4", monkeypatch=monkeypatch)


def test_a_whole_run_sees_what_zep_ended(double: ZepDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEP_API_KEY", KEY)
    ran = whole_run(tmp_path, "zep", base_url=double.url)
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    facts = by_turn(ran.snapshot)
    assert facts[OLD].status is FactStatus.SUPERSEDED and facts[NEW].supersedes == (facts[OLD].fact_id,)
    assert KEY not in (tmp_path / ".memx" / "last_run.json").read_text()
