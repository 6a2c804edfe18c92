"""``langgraph`` really running: its store with whole turns, and LangMem's manager with a model that goes by rules."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.langgraph import LangGraph
from memx.errors import MemxError
from memx.model import FactStatus
from tests.memory_llm import memory_server
from tests.systems.hosted import MARCH, NEW, OLD, PET, ask, by_turn, check_options, filled, many, need_sdk, whole_run
from tests.systems.in_process import (
    MODEL_FAULTS,
    check_a_passing_fault,
    check_conformance,
    check_model_faults,
    check_refused_content,
    check_unsendable_text,
)

need_sdk("langgraph")
need_sdk("langmem")
langmem = partial(LangGraph, mode="langmem")


def test_the_store_keeps_turns_word_for_word_with_time_speaker_and_id() -> None:
    adapter = LangGraph()
    facts = by_turn(filled(adapter))
    assert facts[PET].content == "Lena: I have a dog called Łucja – 犬." and facts[PET].metadata["speaker"] == "Lena"
    assert (facts[OLD].created_at, facts[NEW].created_at) == (MARCH, datetime(2024, 6, 21, 9, tzinfo=UTC))
    found = ask(adapter, top_k=2).facts
    assert len(found) == 2 and found[0].score == found[0].signals["cosine"]
    assert found[0].fact_id == OLD and found[0].metadata["source_turn_ids"] == [OLD]


def test_pages_are_read_whole_and_reset_forgets_one_entity() -> None:
    adapter = LangGraph(page_size=40)
    adapter.ingest_session(many(250, "one"))
    filled(adapter, "one-more")
    assert len(adapter.export_state("one").facts) == 250
    adapter.reset("one")
    adapter.reset("never-seen")
    assert adapter.export_state("one").facts == () and len(adapter.export_state("one-more").facts) == 5


def test_langmem_rewrites_in_place_and_the_turns_and_older_words_are_known() -> None:
    with memory_server() as server:
        adapter = langmem(llm_base_url=server.base_url)
        snapshot = filled(adapter)
        found = ask(adapter).facts[0]
        prompt = server.requests[-1]["messages"][-1]["content"]
    home = next(fact for fact in snapshot.facts if "Linz" in fact.content)
    assert len(snapshot.facts) == 4 and home.source_turn_ids == (OLD, NEW)
    assert home.metadata["history"][0]["content"] == "Lena lives in Graz."
    assert home.metadata["history"][0]["source_turn_ids"] == [OLD]
    assert (found.fact_id, found.metadata["source_turn_ids"]) == (home.fact_id, [OLD, NEW])
    assert "[2024-06-21 09:00+00:00] Tom: I work at Siemens." in prompt


def test_langmem_s_deletes_stay_in_the_snapshot() -> None:
    with memory_server() as server:
        adapter = langmem(llm_base_url=server.base_url)
        home = next(fact for fact in filled(adapter).facts if "Linz" in fact.content)
        adapter._store().delete(("memx", "case-1"), home.fact_id)
        gone = adapter.export_state("case-1").by_id()[home.fact_id]
    assert (gone.status, gone.content) == (FactStatus.DELETED, "Lena moved to Linz.")


def test_every_fault_of_the_model_is_an_error_with_its_true_cause() -> None:
    faults = {fault: words for fault, words in MODEL_FAULTS.items() if fault != "prose"}
    check_model_faults(langmem, faults | {"garbled": "cut off or no JSON"})
    check_a_passing_fault(langmem, "429:0.01")
    with memory_server(faults=["prose"]) as server:
        adapter = langmem(llm_base_url=server.base_url)
        filled(adapter)
    assert "answered without a call" in adapter.take_notes()[0]


def test_one_s_own_store_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_store.py").write_text(
        "from langgraph.store.memory import InMemoryStore\n"
        "STORE = InMemoryStore()\n"
        "STORE.put(('agents', 'case-1'), 'k', {'note': 'Lena lives in Graz'})\n"
        "def broken():\n    raise OSError('no disk')\n"
    )
    monkeypatch.chdir(tmp_path)
    adapter = LangGraph(store="own_store:STORE", namespace="agents/{entity}")
    assert adapter.export_state("case-1").facts[0].content == '{"note": "Lena lives in Graz"}'
    assert adapter.keeps_data and ask(adapter).facts[0].score is None
    assert len(filled(adapter).facts) == 6
    for name, words in (("own_store:broken", "OSError: no disk"), ("nowhere:x", "nowhere"), ("own_store:sys", "Give")):
        with pytest.raises(MemxError, match=words):
            LangGraph(store=name).export_state("case-1")
    with pytest.raises(MemxError, match=r"lacks \{entity\}"):
        LangGraph(namespace="agents")
    sys.modules.pop("own_store")


def test_text_that_cannot_be_sent_as_it_is_breaks_nothing() -> None:
    check_unsendable_text(langmem)


def test_a_refused_turn_is_named_and_the_rest_goes_on() -> None:
    check_refused_content(langmem)


def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(LangGraph, key="", needed="langgraph 1", monkeypatch=monkeypatch)
    monkeypatch.undo()
    with pytest.raises(MemxError, match="Set OPENAI_API_KEY"):
        langmem()


@pytest.mark.parametrize("mode", ["store", "langmem"])
def test_the_conformance_kit_finds_no_fault(mode: str) -> None:
    check_conformance(partial(LangGraph, mode=mode), *(["paging"] if mode == "langmem" else []))


def test_whole_runs_tell_a_store_of_turns_from_one_that_is_rewritten(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "langmem").mkdir()
    with memory_server() as server:
        turns = whole_run(tmp_path / "store", "langgraph", "--top-k", "1")
        rewritten = whole_run(
            tmp_path / "langmem", "langgraph", "--top-k", "1", mode="langmem", llm_base_url=server.base_url
        )
    assert turns.code == rewritten.code == 0
    diagnosis = turns.question("home")["diagnosis"]
    assert (diagnosis["stage"], diagnosis["cause"]) == ("conflict", "both_active")
    assert rewritten.question("home")["verdict"] == "PASS"
