"""Whole indexed cases on disk: read back to the same results, and never when anything about them is not right."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memx.memory.case_cache import MANIFEST, CaseCache
from memx.memory.engine import MemoryEngine
from tests.memory.fixtures import HashedWords, history

QUERY = "How many kilometres does Ben run?"


def indexed(
    directory: Path, mode: str = "full", dataset: str = "d1", rebuild: bool = False, dimension: int = 32
) -> tuple[MemoryEngine, HashedWords, bool]:
    embedder = HashedWords(dimension)
    engine = MemoryEngine(embedder, mode)
    cache = CaseCache(directory, dataset, rebuild)
    loaded = cache.load(engine, history())
    if not loaded:
        engine.insert_batch(history())
        cache.save(engine, history())
    return engine, embedder, loaded


def results(engine: MemoryEngine) -> list[tuple[str, float, dict[str, float]]]:
    return [(hit.memory.memory_id, hit.score, dict(hit.signals)) for hit in engine.recall(QUERY, 8).hits]


@pytest.mark.parametrize("mode", ["dense", "bm25", "fusion", "full"])
def test_what_is_read_back_answers_the_same_and_embeds_nothing(tmp_path: Path, mode: str) -> None:
    built, _, loaded = indexed(tmp_path, mode)
    assert not loaded
    read, embedder, loaded = indexed(tmp_path, mode)
    assert loaded and embedder.asked == 0
    assert results(read) == results(built)
    assert list(read.rows.all()) == history()


@pytest.mark.parametrize(
    "file", ["memories.sqlite", "vectors.faiss", "bm25.npz", "words.json", "extracted.jsonl", MANIFEST]
)
@pytest.mark.parametrize("damage", ["cut", "gone", "flipped"])
def test_damaged_file_is_rebuilt_with_a_line(
    tmp_path: Path, file: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    built, _, _ = indexed(tmp_path)
    path = next(tmp_path.glob(f"*/{file}"))
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        half = len(content) // 2
        path.write_bytes(
            content[:half] + (b"" if damage == "cut" else bytes([content[half] ^ 0xFF]) + content[half + 1 :])
        )
    with caplog.at_level(logging.WARNING):
        rebuilt, embedder, loaded = indexed(tmp_path)
    assert not loaded and embedder.asked == len(history())
    assert "is rebuilt" in caplog.text
    assert results(rebuilt) == results(built)
    assert indexed(tmp_path)[2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dataset": "d2"}, "dataset_sha256"),
        ({"dimension": 16}, "embedding"),
        ({"rebuild": True}, ""),
    ],
)
def test_other_dataset_or_embedding_or_wish_is_rebuilt(
    tmp_path: Path, change: dict[str, object], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    indexed(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert not indexed(tmp_path, **change)[2]  # type: ignore[arg-type]
    assert reason in caplog.text
    change.pop("rebuild", None)
    assert indexed(tmp_path, **change)[2]  # type: ignore[arg-type]


def test_cache_of_another_version_is_rebuilt_with_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    indexed(tmp_path)
    manifest = next(tmp_path.glob(f"*/{MANIFEST}"))
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 0}))
    with caplog.at_level(logging.WARNING):
        assert not indexed(tmp_path)[2]
    assert "its version is 0" in caplog.text


def test_cache_without_attributes_serves_all_modes_but_full(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    indexed(tmp_path, "fusion")
    assert indexed(tmp_path, "dense")[2]
    assert not indexed(tmp_path, "full")[2]
    assert indexed(tmp_path, "fusion")[2] and indexed(tmp_path, "full")[2]
    assert not caplog.text


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives is asked on POSIX only")
def test_write_that_was_killed_is_cleared_with_a_line_and_one_under_way_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = CaseCache(tmp_path, "d1").path_of(history())
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    killed, under_way = (path.with_name(f"{path.name}.{pid}-0a1b2c3d.part") for pid in (ended.pid, os.getpid()))
    for part in (killed, under_way):
        part.mkdir()
        (part / MANIFEST).write_text("{")
    with caplog.at_level(logging.WARNING):
        assert not indexed(tmp_path)[2]
    assert "cut short" in caplog.text and not killed.exists() and under_way.exists()
    assert indexed(tmp_path)[2]


def test_history_that_differs_has_a_cache_of_its_own(tmp_path: Path) -> None:
    cache = CaseCache(tmp_path)
    assert len({cache.path_of(history()), cache.path_of(history()[1:]), cache.path_of(reversed(history()))}) == 3


def test_directory_that_cannot_be_written_leaves_no_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with caplog.at_level(logging.WARNING):
        engine, _, loaded = indexed(blocked / "inside")
    assert not loaded and results(engine) and "no cache at" in caplog.text
