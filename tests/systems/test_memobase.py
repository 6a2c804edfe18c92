"""``memobase`` through the real SDK against a double of its API."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.memobase import Memobase
from memx.errors import AdapterError, AdapterTimeoutError
from memx.model import Fact, Snapshot
from tests.systems.doubles.memobase import MemobaseDouble
from tests.systems.doubles.server import KEY
from tests.systems.hosted import (
    ask,
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

need_sdk("memobase")


@pytest.fixture
def double() -> Iterator[MemobaseDouble]:
    with MemobaseDouble() as server:
        yield server


def memobase(double: MemobaseDouble, **options: object) -> Memobase:
    return Memobase(api_key=KEY, project_url=double.url.removesuffix("/api/v1"), **options)


def home(snapshot: Snapshot) -> Fact:
    """The slot that holds Lena's home."""
    return next(f for f in snapshot.facts if f.metadata.get("sub_topic") == "LIVES_IN")


def test_speakers_and_times_reach_memobase_and_a_slot_is_credited_to_its_sessions(double: MemobaseDouble) -> None:
    adapter = memobase(double)
    march, june = sessions()
    adapter.ingest_session(march)
    adapter.wait_until_ready("case-1", 5)
    before = home(adapter.export_state("case-1"))
    adapter.ingest_session(june)
    after = home(adapter.export_state("case-1"))
    sent = double.seen("POST", "/blobs/insert")[0].body["blob_data"]["messages"][1]
    assert (sent["alias"], sent["role"], sent["created_at"]) == ("Lena", "user", "2024-03-04 18:30:00")
    assert before.fact_id == after.fact_id
    assert before.content.startswith("Lena / LIVES_IN: Lena lives in Graz.") and "Linz" in after.content
    assert before.source_turn_ids == tuple(turn.turn_id for turn in march.turns)
    assert set(after.source_turn_ids) == {turn.turn_id for turn in (*march.turns, *june.turns)}
    assert after.metadata["history"] == [{"content": "Lena lives in Graz. [mentioned on 2024-03-04 18:30:00]"}]


def test_a_query_brings_profile_and_events_within_k_with_the_ids_of_the_snapshot(double: MemobaseDouble) -> None:
    adapter = memobase(double)
    facts = filled(adapter).by_id()
    found = ask(adapter, top_k=4, text="R&D: where does Lena live #now?").facts
    assert [f.metadata["kind"] for f in found] == ["profile", "profile", "event", "event"]
    assert {f.fact_id for f in found} <= set(facts)
    assert double.seen("GET", "/event/search")[0].query["query"] == "R&D: where does Lena live #now?"
    assert found[2].score == found[2].signals["similarity"] and found[2].score >= (found[3].score or 0)
    assert len(ask(adapter, top_k=50).facts) == 9


def test_a_large_store_is_read_whole_and_a_cut_one_is_noted(double: MemobaseDouble) -> None:
    adapter = memobase(double)
    adapter.ingest_session(many(250))
    assert len(adapter.export_state("case-1").facts) == 1 + 250  # one slot, rewritten 249 times
    short = memobase(double, most_events=100)
    short.export_state("case-1")
    assert "100 events or more" in short.take_notes()[0]


def test_entities_are_apart_another_process_finds_them_and_reset_forgets_one(double: MemobaseDouble) -> None:
    filled(memobase(double), "one")
    filled(memobase(double), "two")
    later = memobase(double)
    assert "Linz" in home(later.export_state("one")).content
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and ask(later, "one").facts == ()
    assert len(later.export_state("two").facts) == 9


def test_a_session_that_fails_or_is_never_processed_is_told(double: MemobaseDouble) -> None:
    double.polls = 10**6
    with pytest.raises(AdapterTimeoutError, match="1 blobs of session march are being processed"):
        memobase(double, flush_timeout_s=0.1).ingest_session(sessions("slow")[0])
    double.polls, double.fails = 0, True
    adapter = memobase(double)
    with pytest.raises(AdapterError, match="could not process session march"):
        adapter.ingest_session(sessions()[0])


def test_every_fault_is_named_and_nothing_is_stored_twice(double: MemobaseDouble) -> None:
    check_start(partial(memobase, double), double)
    check_hang(partial(memobase, double), double, ingest="/insert", attempts=1)
    check_faults(partial(memobase, double), double, ingest="/insert", listing="/users/profile", search="/event/search")
    adapter = memobase(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    double.fail("429", path="/insert")
    assert len(filled(adapter, "again").facts) == 9 and pauses == [7]
    double.fail("drop", path="/insert")
    with pytest.raises(AdapterError, match=r"insert chat failed: .*stored so far: 0 of 3 turns"):
        adapter.ingest_session(sessions("drop")[0])


def test_the_conformance_kit_passes(double: MemobaseDouble) -> None:
    double.polls = 0
    check_conformance(partial(memobase, double))


def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(Memobase, key="MEMOBASE_API_KEY", needed=r"memobase 0.0", monkeypatch=monkeypatch)


def test_a_whole_run_shows_the_rewritten_slot(
    double: MemobaseDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMOBASE_API_KEY", KEY)
    ran = whole_run(tmp_path, "memobase", project_url=double.url.removesuffix("/api/v1"))
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    assert "Linz" in home(ran.snapshot).content and home(ran.snapshot).metadata["history"]
