"""Retrieval workers: each ranks the stored texts for a query by one kind of index."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from memx.memory.dense import DenseIndex
from memx.memory.fusion import reciprocal_rank_fusion
from memx.memory.lexical import Bm25Index
from memx.text.words import stems

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float32]]

#: Ranked positions with the worker's own score, best first.
Ranking = list[tuple[int, float]]


class Query:
    """A query and what workers share about it; its vector is computed once, by whoever asks first."""

    def __init__(self, text: str, embed: Callable[[list[str]], Array]) -> None:
        self.text = text
        self.stems = stems(text)
        self._embed = embed
        self._lock = threading.Lock()
        self._vector: Array | None = None

    @property
    def vector(self) -> Array:
        """The query's unit vector, shape ``(dimension,)``."""
        with self._lock:
            if self._vector is None:
                self._vector = self._embed([self.text])[0]
            return self._vector


@dataclass(frozen=True, slots=True)
class Indexes:
    """What the workers read. ``dense`` holds no vectors when embedding was skipped."""

    dense: DenseIndex
    bm25: Bm25Index


class Worker(ABC):
    """One source of candidates."""

    name: ClassVar[str]

    @abstractmethod
    def search(self, query: Query, indexes: Indexes, limit: int) -> Ranking:
        """The best ``limit`` positions, best first."""


class FaissWorker(Worker):
    """Nearest neighbours by cosine of the embeddings."""

    name = "faiss"

    def search(self, query: Query, indexes: Indexes, limit: int) -> Ranking:
        if not len(indexes.dense):
            return []
        return list(zip(*indexes.dense.search(query.vector, limit), strict=True))


class Bm25Worker(Worker):
    """BM25 over stemmed words; texts without any of the query's words are left out."""

    name = "bm25"

    def search(self, query: Query, indexes: Indexes, limit: int) -> Ranking:
        return best(indexes.bm25.scores(query.stems), limit)


class FusionWorker(Worker):
    """Faiss and BM25 inside one worker, fused by reciprocal rank."""

    name = "fusion"

    def search(self, query: Query, indexes: Indexes, limit: int) -> Ranking:
        parts = (FaissWorker(), Bm25Worker())
        rankings = [[position for position, _ in part.search(query, indexes, limit)] for part in parts]
        return list(reciprocal_rank_fusion(rankings).items())[:limit]


WORKERS: dict[str, type[Worker]] = {worker.name: worker for worker in (FaissWorker, Bm25Worker, FusionWorker)}


def best(scores: Array, limit: int) -> Ranking:
    """The positions of the highest scores above zero, best first; equal scores in order of position."""
    import numpy as np

    positions = np.flatnonzero(scores > 0)
    if len(positions) > limit:
        floor = np.partition(scores[positions], -limit)[-limit]
        positions = positions[scores[positions] >= floor]
    order = positions[np.argsort(-scores[positions], kind="stable")][:limit]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))
