"""``local``: the built-in memory behind the adapter contract. One turn is one memory, kept verbatim."""

from __future__ import annotations

from typing import Any

from memx import errors
from memx.adapters.contract import MemoryAdapter
from memx.adapters.systems.verbatim import fact_of, memories_of
from memx.memory.embedding import Embedder, minilm
from memx.memory.embedding_cache import CachedEmbedder
from memx.memory.engine import Hit, MemoryEngine
from memx.model import QueryResult, Retrieved, Session, Snapshot


class LocalMemory(MemoryAdapter):
    """Keeps every turn as ``Speaker: text`` and finds it by embedding, by words or by both.

    Options:
        mode: ``dense``, ``bm25``, ``raw``, ``fusion`` or ``full``.
        timeout_s: how long a query waits for its workers, in seconds.
    """

    name = "local"
    version = "1"

    def __init__(self, mode: str = "fusion", timeout_s: float | str = 30.0, **options: Any) -> None:
        if options:
            raise errors.UnknownNameError("option of adapter local", next(iter(options)), ("mode", "timeout_s"))
        self.mode = mode
        self.timeout_s = float(timeout_s)
        self._engines: dict[str, MemoryEngine] = {}
        self._embedder: Embedder | None = None

    def ingest_session(self, session: Session) -> None:
        try:
            self._engine(session.entity_id).insert_batch(memories_of(session))
        except ValueError as error:
            raise errors.AdapterError(f"session {session.session_id} cannot be stored: {error}") from error

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        recall = self._engine(entity_id).recall(query, top_k)
        return QueryResult(tuple(_retrieved(hit) for hit in recall.hits), declared=recall.diagnostics)

    def export_state(self, entity_id: str) -> Snapshot:
        engine = self._engines.get(entity_id)
        return Snapshot(entity_id, tuple(fact_of(memory) for memory in engine.rows.all()) if engine else ())

    def reset(self, entity_id: str) -> None:
        engine = self._engines.pop(entity_id, None)
        if engine is not None:
            engine.rows.close()

    def close(self) -> None:
        for entity_id in list(self._engines):
            self.reset(entity_id)
        if isinstance(self._embedder, CachedEmbedder):
            self._embedder.close()

    def _engine(self, entity_id: str) -> MemoryEngine:
        if entity_id not in self._engines:
            if self._embedder is None:
                self._embedder = minilm() if self.cache_dir is None else CachedEmbedder(minilm(), self.cache_dir)
            self._engines[entity_id] = MemoryEngine(self._embedder, self.mode, self.timeout_s)
        return self._engines[entity_id]


def _retrieved(hit: Hit) -> Retrieved:
    metadata = {**hit.memory.metadata, "ranks": dict(hit.ranks)}
    return Retrieved(hit.memory.memory_id, hit.memory.text, hit.score, hit.signals, metadata)
