"""``supermemory`` through the real SDK against a double of the API v5."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.supermemory import Supermemory
from memx.errors import AdapterError, AdapterTimeoutError
from memx.model import FactStatus
from tests.systems.doubles.server import KEY
from tests.systems.doubles.supermemory import SupermemoryDouble
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

need_sdk("supermemory")


@pytest.fixture
def double() -> Iterator[SupermemoryDouble]:
    with SupermemoryDouble() as server:
        yield server


def supermemory(double: SupermemoryDouble, **options: object) -> Supermemory:
    return Supermemory(api_key=KEY, base_url=double.url, **{"search_mode": "memories", **options})


def test_speakers_times_and_turn_ids_reach_supermemory_and_come_back(double: SupermemoryDouble) -> None:
    facts = by_turn(filled(supermemory(double)))
    sent = double.seen("POST", "/batch")[0].body["documents"][1]
    assert sent["content"].startswith("Lena: I have a dog called Łucja") and sent["date"] == "2024-03-04T18:30:00+00:00"
    assert sent["metadata"]["turn_id"] == PET and sent["metadata"]["speaker"] == "Lena"
    assert set(facts) == {OLD, PET, "march:3", NEW, "june:2"}
    assert facts[NEW].content == "Lena moved to Linz." and facts[NEW].metadata["kind"] == "memory"


def test_a_newer_version_supersedes_the_older_and_a_forgotten_memory_is_retired(double: SupermemoryDouble) -> None:
    adapter = supermemory(double)
    facts = by_turn(filled(adapter))
    assert facts[OLD].status is FactStatus.SUPERSEDED and facts[NEW].supersedes == (facts[OLD].fact_id,)
    assert facts[NEW].status is FactStatus.ACTIVE and facts[NEW].metadata["version"] == 2
    pet = next(row for row in double.namespaces["case-1"]["memories"] if row["id"] == facts[PET].fact_id)
    pet["isForgotten"] = True
    assert by_turn(adapter.export_state("case-1"))[PET].status is FactStatus.INVALIDATED


def test_hybrid_search_returns_chunks_and_the_snapshot_has_them(double: SupermemoryDouble) -> None:
    adapter = supermemory(double, search_mode="hybrid")
    double.derives_metadata = False
    snapshot = filled(adapter).by_id()
    found = ask(adapter, text="dog called Łucja").facts
    assert {f.metadata["kind"] for f in found} == {"memory", "chunk"} and {f.fact_id for f in found} <= set(snapshot)
    chunk = next(f for f in found if f.metadata["kind"] == "chunk")
    assert snapshot[chunk.fact_id].source_turn_ids == (PET,)
    assert found[0].score == found[0].signals["similarity"]
    assert len(ask(adapter, top_k=3).facts) == 3


def test_a_store_of_many_pages_is_read_whole(double: SupermemoryDouble) -> None:
    adapter = supermemory(double)
    adapter.ingest_session(many(250))
    adapter.wait_until_ready("case-1", 10)
    assert len(adapter.export_state("case-1").facts) == 250
    double.promised = 5
    with pytest.raises(AdapterError, match="rows were promised"):
        adapter.export_state("case-1")


def test_entities_are_apart_another_process_finds_them_and_reset_forgets_one(double: SupermemoryDouble) -> None:
    filled(supermemory(double), "one")
    filled(supermemory(double), "two")
    later = supermemory(double)
    assert by_turn(later.export_state("one"))[OLD].source_turn_ids == (OLD,)
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and len(later.export_state("two").facts) == 5


def test_ready_means_indexed_and_dreamt(double: SupermemoryDouble) -> None:
    adapter = supermemory(double)
    double.polls = 10**6
    adapter.ingest_session(sessions()[0])
    with pytest.raises(AdapterTimeoutError, match="3 of 3 documents are being indexed"):
        adapter.wait_until_ready("case-1", 0.05)
    for row in double.namespaces["case-1"]["documents"]:
        row["left"] = 10**6
    with pytest.raises(AdapterTimeoutError, match="3 of 3 documents are waiting for their memories"):
        adapter.wait_until_ready("case-1", 0.05)


def test_refused_and_failed_documents_are_counted_and_all_of_them_is_an_error(double: SupermemoryDouble) -> None:
    adapter = supermemory(double)
    double.refuses, double.fails = "mountains", "dog"
    adapter.ingest_session(sessions()[0])
    adapter.wait_until_ready("case-1", 5)
    assert len(adapter.export_state("case-1").facts) == 1
    notes = " ".join(adapter.take_notes())
    assert "refused document march-3" in notes and "could not process document march-2" in notes
    double.refuses = "I"
    with pytest.raises(AdapterError, match=r"every document was refused: content not allowed; stored so far: 0 of 2"):
        adapter.ingest_session(sessions()[1])


def test_every_fault_is_named_and_nothing_is_stored_twice(double: SupermemoryDouble) -> None:
    check_start(partial(supermemory, double), double)
    check_hang(partial(supermemory, double), double, ingest="/batch", attempts=4)
    check_faults(partial(supermemory, double), double, ingest="/batch", listing="/list/memories", search="/search$")
    adapter = supermemory(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    for fault in ("429", "late", "drop", "cut"):
        double.fail(fault, path="/batch")
    with pytest.raises(AdapterError, match="4 attempts"):
        adapter.ingest_session(sessions("again")[0])
    assert pauses[0] == 7
    assert len(filled(adapter, "again").facts) == 5


def test_the_conformance_kit_passes(double: SupermemoryDouble) -> None:
    double.polls = 0
    check_conformance(partial(supermemory, double))


def test_options_are_checked(double: SupermemoryDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(Supermemory, key="SUPERMEMORY_API_KEY", needed="supermemory 5", monkeypatch=monkeypatch)


def test_a_whole_run_sees_versions(double: SupermemoryDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERMEMORY_API_KEY", KEY)
    ran = whole_run(tmp_path, "supermemory", base_url=double.url, search_mode="memories")
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    facts = by_turn(ran.snapshot)
    assert facts[OLD].status is FactStatus.SUPERSEDED and facts[NEW].supersedes == (facts[OLD].fact_id,)
