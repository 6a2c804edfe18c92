"""Embedders by name: ``minilm`` (the default), ``st:NAME`` (sentence-transformers), ``openai:NAME`` (an endpoint)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memx.errors import ContextTooLongError, ModelError, UsageError
from memx.llm.embeddings import EmbeddingModel
from memx.llm.failures import shown_url
from memx.llm.models import Models
from memx.llm.tokens import estimate_tokens
from memx.memory.embedding import Embedder, EmbeddingError, Signature, minilm

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

_making = threading.Lock()


def embedder_named(name: str, models: Models | None = None) -> Embedder:
    """The embedder of that name; one that runs in this process is loaded at first use and shared.

    Args:
        models: the clients of a run, so that ``openai:NAME`` is counted and capped with it; None asks the endpoint that
            the environment names (``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, or ``MEMX_`` in their place).

    Raises:
        UsageError: no such kind of embedder.
        EmbeddingError: its package is not installed, or the model cannot be loaded.
    """
    if name == "minilm":
        return minilm()
    kind, _, model = name.partition(":")
    if kind == "openai" and model and models is not None:
        return OpenAIEmbedder(models.embeddings(model))
    with _making:
        return _made(name)


@lru_cache(maxsize=8)
def _made(name: str) -> Embedder:
    kind, _, model = name.partition(":")
    if kind == "st" and model:
        return SentenceTransformersEmbedder(model)
    if kind == "openai" and model:
        return OpenAIEmbedder(Models().embeddings(model))
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
    """An embedding model behind any endpoint that speaks OpenAI's API, asked through memx's one client."""

    #: Texts, and tokens by estimate, in one request; OpenAI takes 2,048 and 300,000.
    BATCH, BATCH_TOKENS = 128, 100_000
    #: Tokens, by estimate, that are sent of one text; OpenAI's models read 8,192.
    MAX_TOKENS = 6000

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model

    @property
    def signature(self) -> Signature:
        """The dimension is learned from the endpoint's first vector."""
        where = shown_url(self._model.endpoint.base_url)
        try:
            return Signature(f"openai:{self._model.model}@{where}", self._model.preflight())
        except ModelError as error:
            raise _named(self._model.model, error) from None

    def encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        rows = [row for batch in self._batches(texts) for row in self._vectors(batch)]
        if len({len(row) for row in rows}) > 1:
            raise EmbeddingError(f"embedder openai:{self._model.model} returned vectors of several dimensions")
        return np.array(rows, dtype=np.float32)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text in texts:
            # The API refuses empty strings; a blank stands for them.
            sent = _at_most(self.MAX_TOKENS, text.encode("utf-8", "replace").decode()) or " "
            size = estimate_tokens(sent)
            if batch and (len(batch) == self.BATCH or tokens + size > self.BATCH_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(sent)
            tokens += size
        if batch:
            yield batch

    def _vectors(self, texts: list[str]) -> list[list[float]]:
        """The vectors of a batch; what the model finds too long is halved: the batch first, then a single text."""
        try:
            return self._model.embed(texts)
        except ContextTooLongError as error:
            half = len(texts) // 2
            if half:
                return self._vectors(texts[:half]) + self._vectors(texts[half:])
            if len(texts[0]) < 2:
                raise _named(self._model.model, error) from None
            return self._vectors([texts[0][: len(texts[0]) // 2]])
        except ModelError as error:
            raise _named(self._model.model, error) from None


def _named(model: str, error: ModelError) -> ModelError:
    """The same error, with the embedder in front: a run asks other models too."""
    return type(error)(f"embedder openai:{model}: {error.message}", error.hint)


def _at_most(tokens: int, text: str) -> str:
    """The beginning of a text that is about so many tokens."""
    text = text[: tokens * 4]
    while (size := estimate_tokens(text)) > tokens:
        text = text[: len(text) * tokens // size]
    return text


def _weights_sha256(model: Any) -> str:
    """SHA-256 of all weights of a torch module, by name and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).float().numpy().tobytes())
    return digest.hexdigest()
