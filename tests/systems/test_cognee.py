"""``cognee`` really running in process, with a model of rules and memx's embedder on loopback. Opt-in: 1.6 GB."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memx.adapters.systems.cognee import Cognee
from memx.errors import AdapterError
from memx.model import FactStatus
from tests.cognee_llm import cognee_model
from tests.systems.hosted import NEW, OLD, PET, ask, filled, need_sdk, whole_run, without_pauses

need_sdk("cognee")


@pytest.fixture(scope="module", autouse=True)
def _model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """cognee reads its settings once for the process, so the model and the folders serve the whole module."""
    root = tmp_path_factory.mktemp("cognee")
    with cognee_model() as server:
        os.environ |= {
            "LLM_PROVIDER": "custom",
            "LLM_MODEL": "openai/rules",
            "LLM_ENDPOINT": server.base_url,
            "LLM_API_KEY": "none",
            "EMBEDDING_PROVIDER": "openai_compatible",
            "EMBEDDING_MODEL": "minilm",
            "EMBEDDING_ENDPOINT": server.base_url,
            "EMBEDDING_API_KEY": "none",
            "EMBEDDING_DIMENSIONS": "384",
            "COGNEE_SKIP_CONNECTION_TEST": "true",
            "CACHE_ROOT_DIRECTORY": str(root / "cache"),
            "MEMX_COGNEE_DIR": str(root),
        }
        yield


def test_turns_become_chunks_summaries_and_relations_with_their_turns() -> None:
    adapter = Cognee()
    snapshot = filled(adapter, ready_s=120)
    chunks = {f.source_turn_ids[0]: f for f in snapshot.facts if f.metadata["kind"] == "chunk"}
    assert set(chunks) == {OLD, PET, "march:3", NEW, "june:2"}
    assert chunks[PET].content == "[2024-03-04 18:30] Lena: I have a dog called Łucja – 犬."
    assert chunks[PET].metadata["speaker"] == "Lena" and chunks[PET].metadata["kind"] == "chunk"
    relations = {f.content: f for f in snapshot.facts if f.metadata["kind"] == "relation"}
    homes = [f for text, f in relations.items() if "lives in" in text]
    assert len(homes) == 2 and {f.status for f in homes} == {FactStatus.ACTIVE}
    assert {turn for f in homes for turn in f.source_turn_ids} == {OLD, NEW}
    found = ask(adapter, top_k=2).facts
    assert len(found) == 2 and found[0].fact_id in snapshot.by_id()
    assert found[0].score == 1 - found[0].signals["distance"] and found[0].metadata["source_turn_ids"] == [OLD]


def test_entities_are_apart_and_reset_forgets_one() -> None:
    filled(Cognee(), "one", 120)
    filled(Cognee(), "two", 120)
    later = Cognee()
    assert {turn for f in ask(later, "one").facts for turn in f.metadata["source_turn_ids"]} <= {
        OLD, PET, "march:3", NEW, "june:2"
    }  # fmt: skip
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and ask(later, "one").facts == ()
    assert later.export_state("two").facts


def test_a_whole_run_shows_that_both_homes_stayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = whole_run(tmp_path, "cognee", "--cleanup")
    assert capsys.readouterr().out == ""
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    homes = [f for f in ran.snapshot.facts if f.metadata["kind"] == "relation" and "lives in" in f.content]
    assert len(homes) == 2 and all(f.active for f in homes)


def test_a_model_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = Cognee()
    without_pauses(adapter)
    monkeypatch.setattr(adapter._cognee, "cognify", _broken)
    with pytest.raises(AdapterError, match="cognify failed"):
        filled(adapter, "away")


async def _broken(**given: object) -> None:
    raise ConnectionRefusedError(111, "nobody listens")
