"""The built-in memory: raw texts are kept as they are; embeddings and words are indexes derived from them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memx.errors import UsageError
from memx.memory.dense import DenseIndex
from memx.memory.embedding import Embedder
from memx.memory.lexical import Bm25Index
from memx.memory.rows import Memory, RowStore
from memx.memory.scheduler import Sources, collect
from memx.memory.workers import WORKERS, Indexes, Query
from memx.text.words import stems


@dataclass(frozen=True, slots=True)
class Mode:
    """Which workers a retrieval mode submits, and whether the ranking pipeline orders what they bring."""

    workers: tuple[str, ...]
    ranking: bool = False


MODES: Mapping[str, Mode] = {
    "dense": Mode(("faiss",)),
    "bm25": Mode(("bm25",)),
    "raw": Mode(("faiss", "bm25")),
    "fusion": Mode(("fusion",)),
}
#: How many candidates each worker brings at least, so that the order of the first few never depends on the limit.
CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that a query brought back, with every signal known about it."""

    memory: Memory
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recall:
    """Hits, best first, and the diagnostics of the query."""

    hits: tuple[Hit, ...]
    diagnostics: Mapping[str, Any]


class MemoryEngine:
    """One isolated memory. Not safe to call from several threads.

    Args:
        embedder: texts to vectors.
        mode: one of :data:`MODES`.
        timeout_s: how long a query waits for its workers.

    Raises:
        UsageError: no such mode.
    """

    def __init__(self, embedder: Embedder, mode: str = "fusion", timeout_s: float = 30.0) -> None:
        if mode not in MODES:
            raise UsageError(f"no retrieval mode '{mode}'", f"There are: {', '.join(MODES)}")
        self.mode = mode
        self.embedder = embedder
        self.timeout_s = timeout_s
        self.rows = RowStore()
        self.dense = DenseIndex(embedder.signature.dimension)
        self._tokens: list[list[str]] = []
        self._bm25: Bm25Index | None = None

    def insert_batch(self, memories: Sequence[Memory], skip_embedding: bool = False) -> int:
        """Store memories in order and return how many.

        Raises:
            ValueError: a memory id is stored already.
            EmbeddingError: the embedder failed; nothing is stored then.
        """
        texts = [memory.text for memory in memories]
        # Before the rows, so that a failing embedder leaves no row without its vector.
        vectors = None if skip_embedding else self.embedder.embed(texts)
        self.rows.append(memories)
        if vectors is not None:
            self.dense.add(vectors)
        self._tokens.extend(stems(text) for text in texts)
        self._bm25 = None
        return len(memories)

    def recall(self, query: str, limit: int) -> Recall:
        """The memories most relevant to a query, at most ``limit``, best first."""
        started = time.perf_counter()
        asked = Query(query, self.embedder.embed)
        workers = [WORKERS[name]() for name in MODES[self.mode].workers]
        indexes = self._indexes()
        prepared = time.perf_counter()
        sources = collect(workers, asked, indexes, max(CANDIDATES, limit), self.timeout_s)
        merged = time.perf_counter()
        order = _merge(sources)[:limit]
        hits = self._hits(order, sources, asked, indexes)
        ended = time.perf_counter()
        steps = {"prepare": prepared - started, "sources": merged - prepared, "rank": ended - merged}
        return Recall(hits, _diagnostics(self.mode, sources, steps, len(hits)))

    def _indexes(self) -> Indexes:
        if self._bm25 is None:
            self._bm25 = Bm25Index(self._tokens)
        return Indexes(self.dense, self._bm25)

    def _hits(
        self, order: Sequence[tuple[int, float]], sources: Sources, query: Query, indexes: Indexes
    ) -> tuple[Hit, ...]:
        signals: dict[int, dict[str, float]] = {position: {} for position, _ in order}
        for name, ranking in sources.rankings.items():
            for rank, (position, score) in enumerate(ranking, start=1):
                if position in signals:
                    signals[position] |= {f"{name}_score": score, f"{name}_rank": float(rank)}
        token = indexes.bm25.scores(query.stems)
        semantic = self.dense.similarities(query.vector) if len(self.dense) and "faiss" not in sources.failed else None
        memories = self.rows.at([position for position, _ in order])
        for position in signals:
            signals[position]["token"] = float(token[position])
            if semantic is not None:
                signals[position]["semantic"] = float(semantic[position])
        return tuple(
            Hit(memory, score, signals[position]) for (position, score), memory in zip(order, memories, strict=True)
        )


def _merge(sources: Sources) -> list[tuple[int, float]]:
    """One ranking of several sources: their best in turn, each text at its first place, with that source's score."""
    rankings = list(sources.rankings.values())
    merged: dict[int, float] = {}
    for rank in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if rank < len(ranking):
                merged.setdefault(*ranking[rank])
    return list(merged.items())


def _diagnostics(mode: str, sources: Sources, steps: Mapping[str, float], returned: int) -> dict[str, Any]:
    return {
        "retrieval_mode": mode,
        "policy": "wait_all",
        "finish_reason": sources.finish_reason,
        "sources": {
            "submitted": list(sources.submitted),
            "completed": list(sources.rankings),
            "pending": list(sources.pending),
            "failed": dict(sources.failed),
        },
        "candidates": {name: len(ranking) for name, ranking in sources.rankings.items()},
        "returned": returned,
        "waited_ms": sources.waited_ms,
        "timings_ms": {**{name: round(s * 1000, 3) for name, s in steps.items()}, "sources_each": sources.timings_ms},
    }
