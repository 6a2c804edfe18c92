"""``local``: the built-in memory behind the adapter contract. One turn is one memory, kept verbatim."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, read_options
from memx.adapters.systems.verbatim import fact_of, memories_of
from memx.errors import AdapterError, InputError, UnknownNameError, UsageError
from memx.memory.case_cache import CaseCache
from memx.memory.embedders import embedder_named
from memx.memory.embedding import Embedder
from memx.memory.embedding_cache import CachedEmbedder
from memx.memory.engine import MODES, Hit, MemoryEngine
from memx.memory.ranking import NOVELTY, Weights
from memx.memory.rows import Memory
from memx.model import QueryResult, Retrieved, Session, Snapshot

#: So many memories wait to be indexed at once; more are indexed as they come, and no cache of their case is read.
MOST_WAITING = 2000


@dataclass
class _Entity:
    """One isolated memory and what is not indexed yet."""

    engine: MemoryEngine
    waiting: list[Memory] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)


class LocalMemory(MemoryAdapter):
    """Keeps every turn as ``Speaker: text`` and finds it by embedding, by words or by both."""

    name = "local"
    version = "1"
    exports = ("every turn word for word, with its time, its speaker and the turn it came from",)
    cannot_see = ("a fact that replaces another: nothing is ever retired",)
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "mode": Option("fusion", "how it searches: dense, bm25, raw, fusion or full"),
        "embedder": Option("minilm", "minilm, st:NAME (sentence-transformers) or openai:NAME (an endpoint)"),
        "weights": Option("", 'a JSON file of signal weights, as {"semantic": 6.5}, for mode full'),
        "timeout_s": Option(30.0, "how long a query waits for its workers, in seconds", least=0),
        "workers": Option(4, "threads that extract entities and attributes; 0 extracts without threads", least=0),
        "batch_size": Option(1000, "texts embedded and written at a time", least=0),
        "skip_embedding": Option(False, "store without vectors"),
        "case_cache": Option(True, "keep and read whole indexed cases"),
        "rebuild_cache": Option(False, "read no cached case; write each anew"),
        "dataset_sha256": Option("", "of the dataset's file; a cached case of another is not read"),
    }

    def __init__(self, **options: Any) -> None:
        given = read_options(self.name, self.OPTIONS, options)
        if given["mode"] not in MODES:
            raise UnknownNameError("retrieval mode", given["mode"], MODES)
        self.options: Mapping[str, Any] = given
        self._weights = read_weights(Path(given["weights"])) if given["weights"] else Weights()
        self._entities: dict[str, _Entity] = {}
        self._embedder: Embedder | None = None

    def describe(self) -> Mapping[str, Any]:
        """The embedding model and the retrieval mode, for the manifest."""
        signature = embedder_named(self.options["embedder"], self.models).signature
        return {
            "embedder": signature.model,
            "embedding_dimension": signature.dimension,
            "embedding_sha256": signature.sha256,
            "retrieval_mode": self.options["mode"],
            "sources": list(MODES[self.options["mode"]].workers),
            "ranking": MODES[self.options["mode"]].ranking,
        }

    def ingest_session(self, session: Session) -> None:
        memories = memories_of(session)
        entity = self._entity(session.entity_id)
        for memory in memories:
            if memory.memory_id in entity.ids:
                raise AdapterError(
                    f"session {session.session_id} cannot be stored: memory '{memory.memory_id}' is stored already",
                    "Ingest each session once, or reset the entity first.",
                )
            entity.ids.add(memory.memory_id)
        entity.waiting.extend(memories)
        if len(entity.waiting) > MOST_WAITING:
            self._index(entity)

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        if entity_id in self._entities:
            self._index(self._entities[entity_id])

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        entity = self._entity(entity_id)
        self._index(entity)
        recall = entity.engine.recall(query, top_k)
        self._note_what_failed(recall.diagnostics["sources"])
        return QueryResult(tuple(_retrieved(hit) for hit in recall.hits), declared=recall.diagnostics)

    def _note_what_failed(self, sources: Mapping[str, Any]) -> None:
        """Queries go on without a worker that failed or was late; a run says so, since its figures are the poorer."""
        for name, why in sources["failed"].items():
            self.note(f"a query was answered without worker {name}: {why}")
        for name in sources["pending"]:
            self.note(f"a query was answered without worker {name}: not done after {self.options['timeout_s']:g} s")

    def export_state(self, entity_id: str) -> Snapshot:
        entity = self._entities.get(entity_id)
        if entity is None:
            return Snapshot(entity_id, ())
        memories = [*entity.engine.rows.all(), *entity.waiting]
        return Snapshot(entity_id, tuple(fact_of(memory) for memory in memories))

    def reset(self, entity_id: str) -> None:
        entity = self._entities.pop(entity_id, None)
        if entity is not None:
            entity.engine.rows.close()

    def close(self) -> None:
        for entity_id in list(self._entities):
            self.reset(entity_id)
        if isinstance(self._embedder, CachedEmbedder):
            self._embedder.close()

    def _entity(self, entity_id: str) -> _Entity:
        if entity_id not in self._entities:
            if self._embedder is None:
                model = embedder_named(self.options["embedder"], self.models)
                self._embedder = model if self.cache_dir is None else CachedEmbedder(model, self.cache_dir)
            engine = MemoryEngine(self._embedder, self.options["mode"], self.options["timeout_s"], self._weights)
            self._entities[entity_id] = _Entity(engine)
        return self._entities[entity_id]

    def _index(self, entity: _Entity) -> None:
        if not entity.waiting:
            return
        waiting, options = entity.waiting, self.options
        cache = self._case_cache() if not len(entity.engine.rows) and len(waiting) <= MOST_WAITING else None
        if cache is None or not cache.load(entity.engine, waiting):
            entity.engine.insert_batch(
                waiting,
                batch_size=max(1, options["batch_size"]),
                skip_embedding=options["skip_embedding"],
                parallel_extract=options["workers"] > 0,
                max_workers=options["workers"],
            )
            if cache is not None:
                cache.save(entity.engine, waiting)
        entity.waiting = []

    def _case_cache(self) -> CaseCache | None:
        if self.cache_dir is None or not self.options["case_cache"] or self.options["skip_embedding"]:
            return None
        return CaseCache(self.cache_dir / "cases", self.options["dataset_sha256"], self.options["rebuild_cache"])


def read_weights(path: Path) -> Weights:
    """Signal weights from a JSON file: a flat object of numbers; ``novelty`` among them is MMR's.

    Raises:
        InputError: the file is missing, no JSON, or no object.
        UsageError: it names what is no signal, or gives no number.
    """
    try:
        values = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", "Give a JSON file of weights.", path=path) from None
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", 'Give an object such as {"semantic": 6.5}.', path=path) from None
    if not isinstance(values, dict):
        raise InputError("is no JSON object", 'Give an object such as {"semantic": 6.5}.', path=path)
    novelty = values.pop(NOVELTY, Weights().novelty)
    if isinstance(novelty, bool) or not isinstance(novelty, int | float):
        raise UsageError(f"the weight of {NOVELTY} is no number: {novelty!r}")
    return Weights(values, float(novelty))


def _retrieved(hit: Hit) -> Retrieved:
    metadata = {**hit.memory.metadata, "ranks": dict(hit.ranks)}
    return Retrieved(hit.memory.memory_id, hit.memory.text, hit.score, hit.signals, metadata)
