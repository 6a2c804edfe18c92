"""Retrieval workers: each ranks the stored texts for a query by one kind of index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from memx.memory import signals
from memx.memory.features import Features
from memx.memory.fusion import reciprocal_rank_fusion
from memx.memory.query import Query

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]

#: Ranked positions with the worker's own score, best first.
Ranking = list[tuple[int, float]]


class Worker(ABC):
    """One source of candidates."""

    name: ClassVar[str]

    @abstractmethod
    def search(self, query: Query, limit: int) -> Ranking:
        """The best ``limit`` positions, best first."""


class FaissWorker(Worker):
    """Nearest neighbours by cosine of the embeddings."""

    name = "faiss"

    def search(self, query: Query, limit: int) -> Ranking:
        if not query.indexes.embedded:
            return []
        if query.indexes.features is not None:
            # Ranking reads the cosine of every text anyway; one pass over the vectors serves both.
            return best(query.semantic, limit)
        found = zip(*query.indexes.dense.search(query.vector, limit), strict=True)
        # A text stored without embedding has the zero vector, and is near to nothing.
        return [(position, cosine) for position, cosine in found if cosine != 0.0]


class Bm25Worker(Worker):
    """BM25 over stemmed words; texts without any of the query's words are left out."""

    name = "bm25"

    def search(self, query: Query, limit: int) -> Ranking:
        return best(query.indexes.bm25.scores(query.stems), limit)


class FusionWorker(Worker):
    """Faiss and BM25 inside one worker, fused by reciprocal rank."""

    name = "fusion"

    def search(self, query: Query, limit: int) -> Ranking:
        parts = (FaissWorker(), Bm25Worker())
        rankings = [[position for position, _ in part.search(query, limit)] for part in parts]
        return list(reciprocal_rank_fusion(rankings).items())[:limit]


class GraphWorker(Worker):
    """Texts that activation reaches: neighbours in a thread, texts that share the query's entities."""

    name = "graph"

    def search(self, query: Query, limit: int) -> Ranking:
        return best(signals.graph(query, _features(query)), limit)


class PhraseWorker(Worker):
    """Texts that hold two neighbouring words of the query side by side."""

    name = "phrase"

    def search(self, query: Query, limit: int) -> Ranking:
        return best(signals.phrase(query, _features(query)), limit)


class AttributeWorker(Worker):
    """Texts with the attributes that the query asks for; among equals, those that hold more of its words."""

    name = "attribute"

    def search(self, query: Query, limit: int) -> Ranking:
        return best(signals.attribute_boost(query, _features(query)) * (1 + query.token), limit)


WORKERS: dict[str, type[Worker]] = {
    worker.name: worker
    for worker in (FaissWorker, Bm25Worker, FusionWorker, GraphWorker, PhraseWorker, AttributeWorker)
}


def best(scores: Floats, limit: int) -> Ranking:
    """The positions of the highest scores above zero, best first; equal scores in order of position."""
    import numpy as np

    positions = np.flatnonzero(scores > 0)
    if len(positions) > limit:
        floor = np.partition(scores[positions], -limit)[-limit]
        positions = positions[scores[positions] >= floor]
    order = positions[np.argsort(-scores[positions], kind="stable")][:limit]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))


def _features(query: Query) -> Features:
    features = query.indexes.features
    if features is None:
        raise ValueError("the store was built without features")
    return features
