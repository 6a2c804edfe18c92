"""The built-in memory: raw texts are kept as they are; vectors, words and attributes are indexes derived from them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from memx.errors import UsageError
from memx.memory import features, ranking
from memx.memory.dense import DenseIndex
from memx.memory.embedding import Embedder
from memx.memory.extraction import Extracted, extract, extraction_pool, submit, words_only
from memx.memory.lexical import Bm25Index
from memx.memory.query import Indexes, Query
from memx.memory.ranking import Weights
from memx.memory.rows import Memory, RowStore
from memx.memory.scheduler import Sources, collect
from memx.memory.workers import WORKERS, Ranking, Worker


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
    "full": Mode(("faiss", "bm25", "graph", "phrase", "attribute"), ranking=True),
}
#: How many candidates each worker brings at least, so that the order of the first few never depends on the limit.
CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that a query brought back: every signal known about it, and its rank (from 1) with each worker."""

    memory: Memory
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[str, int] = field(default_factory=dict)


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
        weights: of the signals, for modes that rank.

    Raises:
        UsageError: no such mode.
    """

    def __init__(
        self, embedder: Embedder, mode: str = "fusion", timeout_s: float = 30.0, weights: Weights | None = None
    ) -> None:
        if mode not in MODES:
            raise UsageError(f"no retrieval mode '{mode}'", f"There are: {', '.join(MODES)}")
        self.mode = mode
        self.embedder = embedder
        self.timeout_s = timeout_s
        self.weights = weights or Weights()
        self.rows = RowStore()
        self.dense = DenseIndex(embedder.signature.dimension)
        self.extracted: list[Extracted] = []
        self.embedded = False
        self.bm25: Bm25Index | None = None
        self._features: features.Features | None = None
        self._newest: date | None = None

    @property
    def ranks(self) -> bool:
        """The mode orders its candidates by signals, which takes entities and attributes."""
        return MODES[self.mode].ranking

    def insert_batch(
        self,
        memories: Sequence[Memory],
        *,
        batch_size: int = 1000,
        skip_embedding: bool = False,
        parallel_extract: bool = True,
        max_workers: int = 4,
    ) -> int:
        """Store memories in order and return how many.

        Args:
            batch_size: texts are embedded and written so many at a time; a failure keeps the batches before it.
            skip_embedding: found by words and attributes only.
            parallel_extract: extract in ``max_workers`` threads while the texts are embedded.

        Raises:
            ValueError: a memory id is stored already.
            EmbeddingError: the embedder failed.
        """
        if not parallel_extract or not self.ranks:
            read = extract if self.ranks else words_only
            for start in range(0, len(memories), batch_size):
                batch = memories[start : start + batch_size]
                self._append(batch, (read(memory) for memory in batch), skip_embedding)
            return len(memories)
        with extraction_pool(max_workers) as pool:
            for start in range(0, len(memories), batch_size):
                batch = memories[start : start + batch_size]
                parts = submit(pool, batch)
                self._append(batch, (one for part in parts for one in part.result()), skip_embedding)
        return len(memories)

    def _append(self, batch: Sequence[Memory], extracted: Iterable[Extracted], skip_embedding: bool) -> None:
        import numpy as np

        # Before the rows, so that a failing embedder leaves no row without its vector.
        if skip_embedding:
            vectors = np.zeros((len(batch), self.embedder.signature.dimension), dtype=np.float32)
        else:
            vectors = self.embedder.embed([memory.text for memory in batch])
        read = list(extracted)
        self.rows.append(batch)
        self.dense.add(vectors)
        self.extracted.extend(read)
        self.embedded |= not skip_embedding and bool(batch)
        self.bm25 = self._features = None

    def restore(self, rows: RowStore, dense: DenseIndex, bm25: Bm25Index, extracted: list[Extracted]) -> None:
        """Take over what a cache kept of the same memories."""
        self.rows.close()
        self.rows, self.dense, self.bm25, self.extracted = rows, dense, bm25, extracted
        self.embedded = bool(len(dense)) and bool(dense.vectors().any())
        self._features = None

    def give_feedback(self, memory_id: str, value: float) -> None:
        """Tell that a memory helped (above zero) or misled (below); it adds up over time.

        Raises:
            KeyError: no such memory.
        """
        self.rows.add_feedback(memory_id, value)
        self._features = None

    def recall(self, query: str, limit: int) -> Recall:
        """The memories most relevant to a query, at most ``limit``, best first. A worker that fails or is late is
        reported in the diagnostics.

        Raises:
            Interrupted, QuotaError, BudgetReached: the embedder's model is not to be asked any more.
        """
        started = time.perf_counter()
        indexes = self.indexes()
        asked = Query(query, indexes, self.embedder.embed, self._newest)
        prepared = time.perf_counter()
        workers = [WORKERS[name]() for name in MODES[self.mode].workers]
        sources = collect(workers, asked, max(CANDIDATES, limit), self.timeout_s)
        collected = time.perf_counter()
        semantic = _semantic_available(asked, sources, self.timeout_s)
        ordered, signals, ranking_notes = self._order(asked, sources, limit)
        ended = time.perf_counter()
        memories = self.rows.at([position for position, _ in ordered])
        ranks = _ranks(sources, {position for position, _ in ordered})
        hits = tuple(
            Hit(memory, score, signals[position], ranks.get(position, {}))
            for (position, score), memory in zip(ordered, memories, strict=True)
        )
        steps = {"prepare": prepared - started, "sources": collected - prepared, "rank": ended - collected}
        steps["rows"] = time.perf_counter() - ended
        steps["total"] = time.perf_counter() - started
        report = _diagnostics(self.mode, sources, steps, len(hits))
        return Recall(hits, {**report, **ranking_notes, "semantic_available": semantic})

    def indexes(self) -> Indexes:
        """The indexes over everything stored, built where they are not."""
        if self.bm25 is None:
            self.bm25 = Bm25Index.build([one.stems for one in self.extracted])
        if self.ranks and self._features is None:
            rows = [(memory.thread, memory.created_at) for memory in self.rows.all()]
            threads, times = [thread for thread, _ in rows], [at for _, at in rows]
            self._features = features.build(self.extracted, threads, times, self.rows.feedback(), self.bm25)
            self._newest = max((at.date() for at in times if at), default=None)
        return Indexes(self.dense, self.bm25, self.embedded, self._features if self.ranks else None)

    def _order(
        self, query: Query, sources: Sources, limit: int
    ) -> tuple[list[tuple[int, float]], dict[int, Mapping[str, float]], dict[str, Any]]:
        """Positions with their final score, best first; the signals of each; what ranking has to report."""
        built = query.indexes.features
        if self.ranks and built is not None:
            candidates = {position for found in sources.rankings.values() for position, _ in found}
            ranked = ranking.rank(query, built, candidates, self.weights, limit)
            weights = {**self.weights.values, ranking.NOVELTY: self.weights.novelty}
            notes = {"ranking": {"weights": weights, "mmr": dict(ranked.mmr)}}
            order = [(one.position, one.final_score) for one in ranked.ranked]
            return order, {one.position: one.signals for one in ranked.ranked}, notes
        order = _merge(sources)[:limit]
        positions = [position for position, _ in order]
        semantic, token = dict(zip(positions, query.cosines(positions), strict=True)), query.token
        signals: dict[int, Mapping[str, float]] = {
            position: {
                "semantic": semantic[position],
                "token": float(token[position]),
                "score": score,
                "mmr_score": score,
                "final_score": score,
            }
            for position, score in order
        }
        return order, signals, {}


class _Vector(Worker):
    """Embeds the query where no worker of the mode did: facts carry their cosine all the same."""

    name = "vector"

    def search(self, query: Query, limit: int) -> Ranking:
        query.vector  # noqa: B018
        return []


def _semantic_available(query: Query, sources: Sources, timeout_s: float) -> bool:
    """Whether the query's vector came; without it the query goes on, its cosines read as zero."""
    if sources.pending:
        query.wait_for_nobody()
    elif not sources.failed and not query.has_vector:
        collect([_Vector()], query, 0, timeout_s)
    return not query.drop_semantic()


def _merge(sources: Sources) -> list[tuple[int, float]]:
    """One ranking of several sources: their best in turn, each text at its first place, with that source's score."""
    rankings = list(sources.rankings.values())
    merged: dict[int, float] = {}
    for rank in range(max(map(len, rankings), default=0)):
        for found in rankings:
            if rank < len(found):
                merged.setdefault(*found[rank])
    return list(merged.items())


def _ranks(sources: Sources, wanted: set[int]) -> dict[int, dict[str, int]]:
    ranks: dict[int, dict[str, int]] = {position: {} for position in wanted}
    for name, found in sources.rankings.items():
        for rank, (position, _) in enumerate(found, start=1):
            if position in wanted:
                ranks[position][name] = rank
    return ranks


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
        "candidates": {name: len(found) for name, found in sources.rankings.items()},
        "returned": returned,
        "waited_ms": sources.waited_ms,
        "timings_ms": {name: round(seconds * 1000, 3) for name, seconds in steps.items()},
        "source_timings_ms": sources.timings_ms,
    }
