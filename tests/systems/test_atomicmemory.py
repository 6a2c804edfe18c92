"""``atomicmemory`` through the real SDK against a double of a core, API v1."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.atomicmemory import AtomicMemory
from memx.errors import AdapterError
from memx.model import FactStatus, Session, Turn
from tests.systems.doubles.atomicmemory import AtomicMemoryDouble
from tests.systems.doubles.server import KEY
from tests.systems.hosted import (
    JUNE,
    MARCH,
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

need_sdk("atomicmemory")


@pytest.fixture
def double() -> Iterator[AtomicMemoryDouble]:
    with AtomicMemoryDouble() as server:
        yield server


def atomicmemory(double: AtomicMemoryDouble, **options: object) -> AtomicMemory:
    return AtomicMemory(api_url=double.url, **options)


def test_speakers_times_and_turn_ids_reach_the_core_and_come_back(double: AtomicMemoryDouble) -> None:
    facts = by_turn(filled(atomicmemory(double)))
    sent = double.seen("POST", "/ingest")[1].body
    assert sent["conversation"] == "[2024-03-04 18:30] Lena: I have a dog called Łucja – 犬."
    assert sent["source_url"] == "memx:turn/march%3A2?at=2024-03-04T18:30:00" and sent["content_class"] == "redacted"
    assert set(facts) == {OLD, PET, "march:3", NEW, "june:2"} and facts[NEW].metadata["importance"] == 0.5
    assert facts[PET].created_at == MARCH and facts[NEW].created_at == JUNE


@pytest.mark.parametrize("most_recent", [1000, 2])
def test_a_superseded_version_is_retired_and_linked(most_recent: int) -> None:
    with AtomicMemoryDouble(most_recent=most_recent) as double:
        facts = by_turn(filled(atomicmemory(double)))
        assert facts[OLD].status is FactStatus.SUPERSEDED and facts[OLD].content == "Lena lives in Graz."
        assert facts[NEW].status is FactStatus.ACTIVE and facts[NEW].supersedes == (facts[OLD].fact_id,)
        assert bool(double.seen("GET", "/[0-9a-f-]{36}/audit")) is (most_recent == 2)


def test_a_deleted_memory_and_one_updated_in_place(double: AtomicMemoryDouble) -> None:
    adapter = atomicmemory(double)
    filled(adapter)
    adapter.ingest_session(Session("july", "case-1", (Turn("july:1", "Tom", "user", "I work at Siemens."),)))
    work, pet = (next(v for v in double.versions if word in v["content"]) for word in ("Siemens", "dog"))
    later = {**work, "id": "v9", "content": "Tom works at Siemens.", "previous_version_id": work["id"]}
    double.versions.append(later)
    work |= {"content": "Tom works for Siemens.", "valid_to": "2026-02-01T00:00:00Z", "superseded_by_version_id": "v9"}
    pet |= {"mutation_type": "delete", "valid_to": "2026-02-01T00:00:00Z"}
    double.memories = [row for row in double.memories if row["id"] != pet["memory_id"]]
    facts = by_turn(adapter.export_state("case-1"))
    assert facts[PET].status is FactStatus.DELETED
    assert facts["june:2"].source_turn_ids == ("june:2", "july:1")
    assert [entry["content"] for entry in facts["june:2"].metadata["history"]] == ["Tom works for Siemens."]


def test_search_gives_at_most_k_with_scores_and_the_ids_of_the_snapshot(double: AtomicMemoryDouble) -> None:
    adapter = atomicmemory(double)
    facts = filled(adapter).by_id()
    result = ask(adapter, top_k=2)
    assert len(result.facts) == 2 and {f.fact_id for f in result.facts} <= set(facts)
    best = result.facts[0]
    assert best.score == best.signals["ranking_score"] == best.signals["similarity"] / 2
    assert best.metadata["source_turn_ids"] == list(facts[best.fact_id].source_turn_ids)
    assert result.declared == {"embedding_model": "rules", "trace_id": "trace-1"}


def test_a_store_of_many_pages_is_read_whole(double: AtomicMemoryDouble) -> None:
    adapter = atomicmemory(double)
    adapter.ingest_session(many(250))
    assert len(adapter.export_state("case-1").facts) == 250


def test_entities_are_apart_another_process_finds_them_and_reset_forgets_one(double: AtomicMemoryDouble) -> None:
    filled(atomicmemory(double), "one")
    filled(atomicmemory(double), "two")
    later = atomicmemory(double)
    assert by_turn(later.export_state("one"))[NEW].source_turn_ids == (NEW,)
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and ask(later, "one").facts == ()
    assert len(later.export_state("two").facts) == 5


def test_writes_without_an_answer_are_waited_for_and_noted() -> None:
    with AtomicMemoryDouble(pending=True) as double:
        adapter = atomicmemory(double, settle_s=0.01)
        assert set(by_turn(filled(adapter))) == {PET, "march:3", NEW, "june:2"}
        assert adapter.take_notes() == ["atomicmemory confirmed no result for 5 turns"]


def test_every_fault_is_named_and_nothing_is_stored_twice(double: AtomicMemoryDouble) -> None:
    check_start(partial(atomicmemory, double), double)
    check_hang(partial(atomicmemory, double), double, ingest="/ingest", attempts=1)
    check_faults(partial(atomicmemory, double), double, ingest="/ingest", listing="/list", search="/search", skip=1)
    adapter = atomicmemory(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    double.fail("429", path="/ingest")
    assert len(filled(adapter, "again").facts) == 5 and pauses == [7]
    for fault in ("late", "drop"):
        double.fail(fault, path="/ingest")
        with pytest.raises(AdapterError, match=r"failed inside.*stored so far: 0 of 3 turns"):
            adapter.ingest_session(sessions(fault)[0])
    with pytest.raises(AdapterError, match="raw content is refused by policy"):
        atomicmemory(double, content_class="raw").ingest_session(sessions("raw")[0])


def test_the_conformance_kit_passes(double: AtomicMemoryDouble) -> None:
    check_conformance(partial(atomicmemory, double))


def test_options_are_checked_and_a_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with AtomicMemoryDouble(key=KEY) as double:
        assert len(filled(atomicmemory(double, api_key=KEY)).facts) == 5
        with pytest.raises(AdapterError, match=r"refused \(401\).*ATOMICMEMORY_API_KEY"):
            atomicmemory(double).ingest_session(sessions()[0])
    check_options(AtomicMemory, key="", needed="atomicmemory 1", monkeypatch=monkeypatch)


def test_a_whole_run_sees_versions(double: AtomicMemoryDouble, tmp_path: Path) -> None:
    ran = whole_run(tmp_path, "atomicmemory", api_url=double.url)
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    facts = by_turn(ran.snapshot)
    assert facts[OLD].status is FactStatus.SUPERSEDED and facts[NEW].supersedes == (facts[OLD].fact_id,)
