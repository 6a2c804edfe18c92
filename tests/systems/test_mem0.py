"""``mem0``'s library, really running: local vector store, MiniLM, a model on loopback that extracts by rules."""

from __future__ import annotations

import importlib
import json
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.mem0 import Mem0
from memx.errors import AdapterError, MemxError
from memx.model import FactStatus, Session, Turn
from tests.memory_llm import memory_server
from tests.systems.hosted import (
    MARCH,
    NEW,
    OLD,
    PET,
    ask,
    by_turn,
    check_options,
    filled,
    many,
    need_sdk,
    sessions,
    whole_run,
)
from tests.systems.in_process import (
    MODEL_FAULTS,
    check_a_passing_fault,
    check_a_reply_of_another_shape,
    check_conformance,
    check_model_faults,
    check_refused_content,
    check_unsendable_text,
)

need_sdk("mem0ai")


def test_facts_carry_turn_time_and_speaker_and_both_homes_stay() -> None:
    with memory_server() as server:
        adapter = Mem0(llm_base_url=server.base_url)
        facts = by_turn(filled(adapter))
        prompt = server.requests[-1]["messages"][-1]["content"]
        adapter.close()
    assert {turn: fact.content for turn, fact in facts.items()} == {
        OLD: "Lena lives in Graz.",
        PET: "Lena has a dog called Łucja – 犬.",
        "march:3": "Tom likes the mountains.",
        NEW: "Lena moved to Linz.",
        "june:2": "Tom works at Siemens.",
    }
    assert {fact.status for fact in facts.values()} == {FactStatus.ACTIVE}
    assert facts[OLD].created_at == MARCH and facts[OLD].metadata["speaker"] == "Lena"
    assert facts[NEW].created_at == datetime(2024, 6, 21, 9, tzinfo=UTC)
    assert "written on 2024-06-21" in prompt and "assistant: Tom: I work at Siemens." in prompt


def test_yesterday_is_told_from_the_day_it_was_said() -> None:
    said = Session("s", "case-1", (Turn("t", "Lena", "user", "I sold my car yesterday."),), datetime(2024, 3, 1))
    with memory_server() as server:
        adapter = Mem0(llm_base_url=server.base_url)
        adapter.ingest_session(said)
        assert adapter.export_state("case-1").facts[0].content == "Lena sold Lena's car on 2024-02-29."
        adapter.close()


def test_search_gives_at_most_k_with_the_parts_of_its_score() -> None:
    with memory_server() as server:
        adapter = Mem0(llm_base_url=server.base_url)
        facts = filled(adapter).by_id()
        found = ask(adapter, top_k=2).facts
        adapter.close()
    assert len(found) == 2 and {fact.fact_id for fact in found} <= set(facts)
    assert found[0].score == found[0].signals["final_score"] and {"semantic_score", "bm25_score"} <= set(
        found[0].signals
    )
    assert found[0].metadata["source_turn_ids"] == [OLD]


def test_deleted_memories_and_older_wordings_are_shown() -> None:
    with memory_server() as server:
        adapter = Mem0(llm_base_url=server.base_url)
        facts = by_turn(filled(adapter))
        memory = adapter._side._store("case-1").memory  # type: ignore[attr-defined]
        memory.update(facts[PET].fact_id, "Lena has a cat.")
        memory.delete(facts[OLD].fact_id)
        after = adapter.export_state("case-1").by_id()
        adapter.close()
    old, pet = after[facts[OLD].fact_id], after[facts[PET].fact_id]
    assert (old.status, old.content, old.source_turn_ids) == (FactStatus.DELETED, "Lena lives in Graz.", (OLD,))
    assert pet.content == "Lena has a cat." and pet.metadata["history"][0]["content"] == facts[PET].content


def test_a_kept_store_is_found_by_another_instance_read_whole_and_reset_alone(tmp_path: Path) -> None:
    with memory_server() as server:
        make = partial(Mem0, llm_base_url=server.base_url, path=str(tmp_path), infer="off")
        first = make()
        first.ingest_session(many(60, "one"))
        filled(first, "two")
        beside = make()
        assert len(beside.export_state("two").facts) == 5
        beside.close()
        assert len(first.export_state("two").facts) == 5
        first.close()
        later = make()
        store = later._side._store("one")  # type: ignore[attr-defined]
        pages: list[int] = []
        listing = store.memory.get_all
        store.memory.get_all = lambda **named: pages.append(named["top_k"]) or listing(**named)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("memx.adapters.systems.mem0_store._FIRST_PAGE", 20)
            assert len(later.export_state("one").facts) == 60 and pages == [20, 80]
        later.reset("one")
        later.reset("never-seen")
        assert later.export_state("one").facts == () and len(later.export_state("two").facts) == 5
        assert later.keeps_data and not make(path="").keeps_data
        later.close()
        assert not (tmp_path / "one").exists()


def test_one_s_own_configuration_is_used(tmp_path: Path) -> None:
    with memory_server() as server:
        openai = {"openai_base_url": server.base_url, "api_key": "none"}
        config = {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(tmp_path / "q"), "embedding_model_dims": 384, "on_disk": True},
            },
            "llm": {"provider": "openai", "config": {**openai, "model": "m"}},
            "embedder": {"provider": "openai", "config": {**openai, "model": "e", "embedding_dims": 384}},
        }
        (tmp_path / "mem0.json").write_text(json.dumps(config))
        adapter = Mem0(config=str(tmp_path / "mem0.json"))
        filled(adapter, "one")
        assert set(by_turn(filled(adapter, "two"))) == {OLD, PET, "march:3", NEW, "june:2"}
        assert "Lena: I live in Graz." in " ".join(server.log.embedded)
        with pytest.raises(AdapterError, match="--concurrency 1"):
            Mem0(config=str(tmp_path / "mem0.json")).export_state("three")
        adapter.reset("one")
        assert [f for f in adapter.export_state("one").facts if f.status is FactStatus.ACTIVE] == []
        assert len(adapter.export_state("two").facts) == 5
        adapter.close()
    (tmp_path / "mem0.json").write_text("[")
    with pytest.raises(MemxError, match=r"mem0\.json: is no JSON"):
        Mem0(config=str(tmp_path / "mem0.json"))


def test_every_fault_of_the_model_is_an_error_that_says_what_is_stored() -> None:
    check_model_faults(Mem0, MODEL_FAULTS)
    for fault in ("429:0.01", "prose", "garbled"):
        check_a_passing_fault(Mem0, fault)


def test_a_fact_that_cannot_be_embedded_or_inserted_is_no_silent_loss() -> None:
    with memory_server() as server:
        adapter = Mem0(llm_base_url=server.base_url)
        adapter.ingest_session(sessions()[0])
        store = adapter._side._store("case-1").memory.vector_store.client  # type: ignore[attr-defined]
        store.upsert = lambda **named: (_ for _ in ()).throw(ConnectionResetError("the store is gone"))
        with pytest.raises(AdapterError, match=r"add turn june:1 failed.*0 of 2 turns of session june"):
            adapter.ingest_session(sessions()[1])
        adapter.close()


def test_text_that_cannot_be_sent_as_it_is_breaks_nothing() -> None:
    check_unsendable_text(Mem0)


def test_a_reply_of_another_shape_is_no_silent_loss() -> None:
    check_a_reply_of_another_shape(Mem0)


def test_a_refused_turn_is_named_and_the_rest_goes_on() -> None:
    check_refused_content(Mem0)


def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(Mem0, key="OPENAI_API_KEY", needed=r"mem0ai 2", monkeypatch=monkeypatch)


def test_nothing_is_sent_home_and_nothing_written_to_the_home_directory() -> None:
    Mem0(infer="off")
    assert importlib.import_module("mem0.memory.telemetry").MEM0_TELEMETRY is False
    assert Path(importlib.import_module("mem0.memory.setup").mem0_dir).is_relative_to(os.environ["MEMX_CACHE_DIR"])


def test_the_conformance_kit_finds_no_fault() -> None:
    check_conformance(Mem0, "paging")


def test_a_whole_run_tells_that_two_homes_are_active(tmp_path: Path) -> None:
    with memory_server() as server:
        ran = whole_run(tmp_path, "mem0", "--top-k", "1", llm_base_url=server.base_url)
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    diagnosis = ran.question("home")["diagnosis"]
    assert (diagnosis["stage"], diagnosis["cause"]) == ("conflict", "both_active")
    assert {fact["role"] for fact in diagnosis["facts"]} >= {"expected", "conflicting"}
    assert ran.record["adapter"]["version"].startswith("2.")
