"""Embedders by name: ``minilm`` (the default), ``st:NAME`` (sentence-transformers), ``openai:NAME`` (an endpoint)."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memx.errors import ModelError, QuotaError, UsageError
from memx.llm.endpoint import OPENAI_URL
from memx.llm.failures import read_failure, redactor, shown_url
from memx.memory.embedding import Embedder, EmbeddingError, Signature, minilm

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

_making = threading.Lock()


def embedder_named(name: str) -> Embedder:
    """The process's one embedder of that name, loaded at first use.

    ``openai:NAME`` reads ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` from the environment.

    Raises:
        UsageError: no such kind of embedder.
        EmbeddingError: its package is not installed, or the model cannot be loaded.
    """
    if name == "minilm":
        return minilm()
    with _making:
        return _made(name)


@lru_cache(maxsize=8)
def _made(name: str) -> Embedder:
    kind, _, model = name.partition(":")
    if kind == "st" and model:
        return SentenceTransformersEmbedder(model)
    if kind == "openai" and model:
        return OpenAIEmbedder(
            model, os.environ.get("OPENAI_BASE_URL") or OPENAI_URL, os.environ.get("OPENAI_API_KEY", "")
        )
    raise UsageError(f"no embedder '{name}'", "There are: minilm, st:NAME, openai:NAME")


class SentenceTransformersEmbedder(Embedder):
    """A model of sentence-transformers: a name on its hub, or a directory.

    Raises:
        EmbeddingError: the package is not installed, or the model cannot be loaded.
    """

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise EmbeddingError(
                f"embedder st:{model} needs sentence-transformers",
                "pip install 'memx[st]' (a CPU build of torch first)",
            ) from None
        try:
            self._model = SentenceTransformer(model, device="cpu")
        except Exception as error:
            said = f"{type(error).__name__}: {str(error).splitlines()[0]:.200}"
            raise EmbeddingError(f"sentence-transformers cannot load '{model}': {said}") from None
        self._lock = threading.Lock()
        probe = self._encode(["probe"])
        # The name of a directory says nothing of what is in it, and a hub's name may point to new weights.
        self._signature = Signature(f"st:{model}", int(probe.shape[1]), _weights_sha256(self._model))

    @property
    def signature(self) -> Signature:
        return self._signature

    def encode(self, texts: Sequence[str]) -> Matrix:
        with self._lock:
            return self._encode([text.encode("utf-8", "replace").decode() for text in texts])

    def _encode(self, texts: list[str]) -> Matrix:
        vectors: Matrix = self._model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
        return vectors


class OpenAIEmbedder(Embedder):
    """An embedding model behind any endpoint that speaks OpenAI's API.

    Args:
        base_url: with the version, as in ``https://api.openai.com/v1``.
        api_key: empty for servers that take any.
    """

    #: Texts in one request, and characters kept of each: endpoints refuse more than some 8,000 tokens.
    BATCH, MAX_CHARS = 128, 24_000

    def __init__(self, model: str, base_url: str, api_key: str) -> None:
        import openai

        self._model, self._base_url, self._has_key = model, base_url, bool(api_key)
        self._redact = redactor(api_key)
        self._client = openai.OpenAI(api_key=api_key or "none", base_url=base_url, max_retries=5, timeout=120.0)
        self._lock = threading.Lock()
        self._dimension = 0

    @property
    def signature(self) -> Signature:
        """The dimension is learned from the endpoint's first vector."""
        with self._lock:
            if not self._dimension:
                self._dimension = int(self._request(["probe"]).shape[1])
        return Signature(f"openai:{self._model}@{shown_url(self._base_url)}", self._dimension)

    def encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        # The API refuses empty strings; a blank stands for them.
        sent = [text[: self.MAX_CHARS].encode("utf-8", "replace").decode() or " " for text in texts]
        parts = [self._request(sent[start : start + self.BATCH]) for start in range(0, len(sent), self.BATCH)]
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbeddingError(f"{self._model} at {shown_url(self._base_url)} returned vectors of several dimensions")
        return np.concatenate(parts)

    def _request(self, texts: list[str]) -> Matrix:
        import numpy as np

        try:
            reply = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            rows = [row.embedding for row in sorted(reply.data, key=lambda row: row.index)]
        except Exception as error:
            failure = read_failure(
                error, model=self._model, base_url=self._base_url, has_key=self._has_key, redact=self._redact
            ).error
            kind = QuotaError if isinstance(failure, QuotaError) else ModelError
            raise kind(f"embedder openai:{self._model}: {failure.message}", failure.hint) from None
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
            raise EmbeddingError(
                f"{self._model} at {shown_url(self._base_url)} returned {len(rows)} vectors for {len(texts)} texts",
                "Is it an embedding model?",
            )
        return np.array(rows, dtype=np.float32)


def _weights_sha256(model: Any) -> str:
    """SHA-256 of all weights of a torch module, by name and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).float().numpy().tobytes())
    return digest.hexdigest()
