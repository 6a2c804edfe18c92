"""mem0's open source library, run in this process: a model of one's own extracts, a local vector store keeps."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from memx.adapters.calls import Calls
from memx.adapters.provenance import parse_time
from memx.adapters.refusals import Refusals
from memx.adapters.system_models import described, embedder, llm_address, llm_key
from memx.adapters.systems.mem0_rows import additions, fact_of, mem0_package, retrieved_of
from memx.adapters.systems.mem0_store import Kept, Store
from memx.errors import AdapterError, InputError
from memx.model import Fact, FactStatus, QueryResult, Session, Snapshot
from memx.text.secrets import remember

_KEPT = Kept()
_SECRET = re.compile(r"key|token|secret|password|credential", re.I)


class Mem0Library:
    """The library.

    mem0 takes silence for success: facts that cannot be read, embedded or inserted are logged and left out. Here each
    of them is an error that says what was stored.
    """

    def __init__(self, options: Mapping[str, Any], note: Callable[[str], None]) -> None:
        self._options = options
        self._refusals = Refusals(note)
        self._package = mem0_package()
        self._config = _read_config(options["config"])
        self.calls = Calls("mem0", key="OPENAI_API_KEY", where=llm_address(options))
        self._open: dict[str, Store] = {}
        #: The turns that brought each memory, by entity and id; a deleted memory no longer tells.
        self._sources: dict[str, dict[str, tuple[str, ...]]] = {}

    def describe(self) -> Mapping[str, Any]:
        """Version, models and vector store."""
        models = {} if "embedder" in self._config else described(self._options)
        store = self._config.get("vector_store", {}).get("provider", "qdrant, local")
        shown = {"mode": "library", "version": self._package.__version__, "vector_store": store, **models}
        return shown if self._options["infer"] else {**shown, "llm": "none"}

    def ingest_session(self, session: Session) -> None:
        store = self._store(session.entity_id)
        brought = self._sources.setdefault(session.entity_id, {})
        self.calls.begin(session)
        for addition in additions(session, self._options["unit"]):
            add = partial(store.add, addition, session.entity_id, self._options["infer"])
            # Its requests to the model are repeated inside; the call as a whole is not safe to make twice.
            with self._refusals.noted():
                for row in self.calls.write(addition.what, add):
                    brought[str(row["id"])] = addition.turn_ids
            if store.lost:
                error = next(iter(store.lost.values()))
                what = f"{addition.what}: {len(store.lost)} extracted facts were left out"
                raise self.calls.failed(what, error) from error
            self.calls.stored(len(addition.turn_ids))
        self.calls.end()

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        """add() returns when all is stored."""

    def query(self, query: str, entity_id: str, top_k: int, asked_at: datetime | None) -> QueryResult:
        if self._absent(entity_id):
            return QueryResult(())
        memory, threshold = self._store(entity_id).memory, self._options["threshold"]
        search = partial(memory.search, query, top_k=top_k, filters={"user_id": entity_id}, explain=True)
        rows = self.calls.read("search", partial(search, threshold=threshold))["results"]
        return QueryResult(tuple(retrieved_of(row) for row in rows))

    def export_state(self, entity_id: str) -> Snapshot:
        if self._absent(entity_id):
            return Snapshot(entity_id, ())
        store = self._store(entity_id)
        rows = self.calls.read("list memories", partial(store.rows, entity_id))
        known = self._sources.setdefault(entity_id, {})
        facts = {str(row["id"]): _with_history(fact_of(row), row, store) for row in rows}
        known.update({fact.fact_id: fact.source_turn_ids for fact in facts.values() if fact.source_turn_ids})
        # The vector store lists in no order; the history tells in which they came, and of those that were deleted.
        ids = dict.fromkeys([*store.ids_of_history(), *known, *facts])
        told = [facts.get(fact_id) or _deleted(fact_id, store, known.get(fact_id, ())) for fact_id in ids]
        return Snapshot(entity_id, tuple(fact for fact in told if fact is not None))

    def reset(self, entity_id: str) -> None:
        self._sources.pop(entity_id, None)
        if self._config:
            memory = self._store(entity_id).memory
            self.calls.write("delete memories", partial(memory.delete_all, user_id=entity_id), repeat="always")
            return
        store = self._open.pop(entity_id, None)
        if self._kept:
            _KEPT.let_go(self._folder(entity_id), all_users=True)
            shutil.rmtree(self._folder(entity_id), ignore_errors=True)
        elif store is not None:
            store.close()

    def close(self) -> None:
        for name, store in self._open.items():
            if self._kept:
                _KEPT.let_go(self._folder(name))
            else:
                store.close()
        self._open.clear()

    @property
    def _kept(self) -> bool:
        """Each entity's store lies in a folder of its own below ``path``."""
        return bool(self._options["path"]) and not self._config

    def _store(self, entity_id: str) -> Store:
        # A local vector store is locked by who opened it, so each entity has its own; a configured one serves all.
        name = "" if self._config else entity_id
        if name not in self._open:
            make = partial(self._made_store, name)
            self._open[name] = _KEPT.take(self._folder(name), make) if self._kept else make()
        return self._open[name]

    def _made_store(self, name: str) -> Store:
        try:
            memory = self._package.Memory.from_config(self._settings(name))
        except Exception as error:
            raise self._opening_failed(error) from error
        return Store(memory, self._options, own=not self._config)

    def _folder(self, name: str) -> Path:
        return Path(self._options["path"]).expanduser().resolve() / (name or "configured")

    def _absent(self, entity_id: str) -> bool:
        """Nothing was ever stored of the entity: looking for it must not make a store."""
        return self._kept and entity_id not in self._open and not self._folder(entity_id).exists()

    def _opening_failed(self, error: Exception) -> AdapterError:
        failed = self.calls.failed("open the store", error)
        if "already accessed by another instance" in str(error):
            hint = "A local store serves one process, and one case at a time: --concurrency 1, or use a server for it."
            return AdapterError(failed.message, hint)
        return failed

    def _settings(self, name: str) -> dict[str, Any]:
        vectors_in = history = ":memory:"
        if self._options["path"]:
            folder = self._folder(name)
            folder.mkdir(parents=True, exist_ok=True)
            vectors_in, history = str(folder / "qdrant"), str(folder / "history.db")
        if self._config:
            return {"history_db_path": history, **self._config}
        dimension = embedder(self._options).signature.dimension
        place = {"path": vectors_in, "collection_name": "memx", "embedding_model_dims": dimension}
        model = {"openai_base_url": llm_address(self._options), "api_key": llm_key(self._options)}
        return {
            "vector_store": {"provider": "qdrant", "config": {**place, "on_disk": bool(self._options["path"])}},
            "llm": {"provider": "openai", "config": {**model, "model": self._options["llm"], "temperature": 0}},
            # Stands in until the embedder of memx is put in its place: mem0 takes no object here.
            "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": dimension}},
            "history_db_path": history,
        }


def _with_history(fact: Fact, row: Mapping[str, Any], store: Store) -> Fact:
    """The fact with its older wordings, where it was ever rewritten."""
    if row.get("updated_at") in (None, row.get("created_at")):
        return fact
    changes = [
        {"content": change["old_memory"], "until": change["updated_at"]}
        for change in store.history(fact.fact_id)
        if change["event"] == "UPDATE"
    ]
    return Fact(
        fact.fact_id,
        fact.content,
        source_turn_ids=fact.source_turn_ids,
        created_at=fact.created_at,
        metadata={**fact.metadata, "history": changes},
    )


def _deleted(memory_id: str, store: Store, turn_ids: tuple[str, ...]) -> Fact | None:
    """A memory that the history still tells of."""
    change = next((change for change in reversed(store.history(memory_id)) if change["event"] == "DELETE"), None)
    if change is None:
        return None
    metadata = {"deleted_at": change["updated_at"]}
    content, created_at = str(change["old_memory"] or ""), parse_time(change["created_at"])
    return Fact(memory_id, content, FactStatus.DELETED, (), turn_ids, created_at, metadata)


def _read_config(path: str) -> dict[str, Any]:
    """mem0's own configuration from a JSON file; empty where none is given."""
    if not path:
        return {}
    try:
        config = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", "Give mem0's configuration as JSON.", path=path) from None
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", "Give the object that Memory.from_config takes.", path=path) from None
    if not isinstance(config, dict) or not config:
        raise InputError("holds no settings", "Give the object that Memory.from_config takes.", path=path)
    _remember_secrets(config)
    return config


def _remember_secrets(settings: Any, name: str = "") -> None:
    """Keys and passwords of a configuration are shown nowhere."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            _remember_secrets(value, str(key))
    elif isinstance(settings, list):
        for value in settings:
            _remember_secrets(value, name)
    elif isinstance(settings, str) and _SECRET.search(name):
        remember(settings)
