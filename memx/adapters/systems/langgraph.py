"""``langgraph``: LangGraph's store, filled with whole turns or by LangMem's memory manager."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages
from memx.adapters.provenance import SAID_AT, carried, parse_time, said, said_at, sendable, sources
from memx.adapters.refusals import Refusals
from memx.adapters.system_models import MODEL_OPTIONS, described, embedder, llm_address, need_llm, silence, vectors
from memx.errors import UsageError
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session, Snapshot, Turn


@dataclass(slots=True)
class _Told:
    """What the adapter knows of a memory that LangMem wrote and the store does not keep."""

    text: str
    turn_ids: tuple[str, ...]
    at: datetime | None
    history: tuple[dict[str, Any], ...] = ()


class LangGraph(MemoryAdapter):
    """LangGraph's long-term store (langgraph 1.x), in memory or one of your own.

    mode=store puts each turn as it is; mode=langmem lets LangMem's manager extract and rewrite memories.
    """

    name = "langgraph"
    exports = (
        "every item of the namespace",
        "langmem: the turns that wrote each memory, its older wordings, deleted ones; as seen by this process",
    )
    cannot_see = (
        "what a put overwrote in another process: the store keeps no history",
        "langmem: calls of the model that it could not apply and gave up",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "mode": Option("store", "what fills the store", choices=("store", "langmem")),
        "store": Option("memory", "memory, or module.path:name of a BaseStore or of a function that makes one"),
        "namespace": Option("memx/{entity}", "the namespace of an entity, its parts divided by /"),
        "page_size": Option(100, "items in one page", least=1),
        "unit": Option("turn", "langmem: what one call of the manager is given", choices=("turn", "session")),
        "deletes": Option(False, "langmem: the manager may delete memories"),
        "query_limit": Option(5, "langmem: existing memories that the manager looks at", least=4),
        **MODEL_OPTIONS,
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        silence("langgraph", "langmem", "trustcall", "langchain_core", "httpx", LANGSMITH_TRACING="false")
        load_package(self.name, "langgraph.store.memory", "langgraph", versions=("1",))
        self._langmem = self.options["mode"] == "langmem"
        if self._langmem:
            load_package(self.name, "langmem", "langmem", versions=("0.0",))
            load_package(self.name, "langchain_openai", "langchain-openai", versions=("1",))
            need_llm(self.name, self.OPTIONS, self.options)
        if "{entity}" not in self.options["namespace"]:
            raise UsageError(
                "option namespace of adapter langgraph lacks {entity}",
                "Without it the entities of a run would share one memory: write it as in memx/{entity}.",
            )
        self.keeps_data = self.options["store"] != "memory"
        self.calls = Calls(self.name, key="OPENAI_API_KEY", where=llm_address(self.options) if self._langmem else "")
        self._refusals = Refusals(self.note)
        self._opened: Any = None
        self._manager: Any = None
        self._told: dict[str, dict[str, _Told]] = {}

    def describe(self) -> Mapping[str, Any]:
        """Versions, store and models."""
        from importlib.metadata import version

        models = described(self.options)
        if not self._langmem:
            return {
                "version": version("langgraph"),
                "mode": "store",
                "store": self.options["store"],
                **models,
                "llm": "none",
            }
        shown = {"mode": "langmem", "langmem": version("langmem"), "store": self.options["store"]}
        return {"version": version("langgraph"), **shown, **models}

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        if self._langmem:
            self._remember(session)
        else:
            for turn in session.turns:
                self.calls.write(f"put turn {turn.turn_id}", partial(self._put, session, turn), repeat="always")
                self.calls.stored()
        self.calls.end()

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        search = partial(self._store().search, self._namespace(entity_id), query=sendable(query), limit=top_k)
        told = self._told.get(entity_id, {})
        return QueryResult(tuple(_retrieved(item, told) for item in self.calls.read("search", search)))

    def export_state(self, entity_id: str) -> Snapshot:
        space, size = self._namespace(entity_id), self.options["page_size"]

        def fetch(offset: int) -> Page[Any]:
            rows = self.calls.read("list items", partial(self._store().search, space, limit=size, offset=offset))
            return Page(rows, offset + size if len(rows) == size else None)

        items = list(pages(self.name, "items", fetch, key=lambda item: (*item.namespace, item.key), first=0))
        told = self._told.get(entity_id, {})
        there = {item.key for item in items}
        gone = (
            Fact(key, memory.text, FactStatus.DELETED, (), memory.turn_ids, memory.at, {"history": memory.history})
            for key, memory in told.items()
            if key not in there
        )
        return Snapshot(entity_id, (*(_fact(item, told) for item in items), *gone))

    def reset(self, entity_id: str) -> None:
        for fact in self.export_state(entity_id).facts:
            delete = partial(self._store().delete, self._namespace(entity_id), fact.fact_id)
            self.calls.write("delete an item", delete, repeat="always")
        self._told.pop(entity_id, None)

    # ----------------------------------------------------------------------------------------------------------- store

    def _store(self) -> Any:
        if self._opened is None:
            self._opened = self._made_store()
        return self._opened

    def _made_store(self) -> Any:
        if self.options["store"] != "memory":
            return _named(self.options["store"])
        model = embedder(self.options)
        field = "content.content" if self._langmem else "text"
        index = {"dims": model.signature.dimension, "embed": partial(vectors, model), "fields": [field]}
        return importlib.import_module("langgraph.store.memory").InMemoryStore(index=index)

    def _namespace(self, entity_id: str) -> tuple[str, ...]:
        return tuple(part.replace("{entity}", entity_id) for part in self.options["namespace"].split("/"))

    def _put(self, session: Session, turn: Turn) -> None:
        value = {"text": said(turn), **carried(session, turn)}
        self._store().put(self._namespace(session.entity_id), turn.turn_id, value)

    # --------------------------------------------------------------------------------------------------------- langmem

    def _remember(self, session: Session) -> None:
        """Hand the turns to LangMem's manager; what it put and when is noted, as the store keeps neither."""
        from memx.adapters.systems.langgraph_manager import Manager

        if self._manager is None:
            namespace = tuple(self.options["namespace"].split("/"))
            self._manager = Manager(self.options, self._store(), namespace, self.note)
        told = self._told.setdefault(session.entity_id, {})
        by_turn = self.options["unit"] == "turn"
        for turns in [(turn,) for turn in session.turns] if by_turn else [session.turns]:
            if not turns:
                continue
            name = f"turn {turns[0].turn_id}" if by_turn else f"session {session.session_id}"
            # A call that fails has put nothing; its requests to the model are repeated inside.
            work = partial(self._manager.invoke, session, turns)
            puts: list[dict[str, Any]] = []
            with self._refusals.noted():
                puts = self.calls.write(f"remember {name}", work)
            turn_ids, at = tuple(turn.turn_id for turn in turns), said_at(session, turns[-1])
            for put in puts:
                told[put["key"]] = _rewritten(told.get(put["key"]), _text(put["value"]), turn_ids, at)
            self.calls.stored(len(turns))


def _rewritten(before: _Told | None, text: str, turn_ids: tuple[str, ...], at: datetime | None) -> _Told:
    if before is None:
        return _Told(text, turn_ids, at)
    older = {"content": before.text, "source_turn_ids": list(before.turn_ids), "until": at.isoformat() if at else None}
    return _Told(text, (*before.turn_ids, *turn_ids), at, (*before.history, older))


def _fact(item: Any, told: Mapping[str, _Told]) -> Fact:
    known = told.get(item.key)
    value = {name: part for name, part in item.value.items() if name not in ("text", "content")}
    metadata = {**value, "updated_at": str(item.updated_at)}
    if known is None:
        at = parse_time(item.value.get(SAID_AT)) or parse_time(item.created_at)
        return Fact(item.key, _text(item.value), FactStatus.ACTIVE, (), sources(item.value), at, metadata)
    if known.history:
        metadata["history"] = list(known.history)
    return Fact(item.key, _text(item.value), FactStatus.ACTIVE, (), known.turn_ids, known.at, metadata)


def _retrieved(item: Any, told: Mapping[str, _Told]) -> Retrieved:
    known = told.get(item.key)
    turns = known.turn_ids if known else sources(item.value)
    signals = {} if item.score is None else {"cosine": float(item.score)}
    return Retrieved(item.key, _text(item.value), item.score, signals, {"source_turn_ids": list(turns)})


def _text(value: Mapping[str, Any]) -> str:
    """The words of an item: as put here, as LangMem puts them, else the whole value as JSON."""
    content = value.get("content")
    inner = content.get("content") if isinstance(content, Mapping) else content
    found = value.get("text", inner)
    return found if isinstance(found, str) else json.dumps(content or value, ensure_ascii=False, default=str)


def _named(name: str) -> Any:
    """The user's own store.

    Raises:
        UsageError: no such module or name, or what it names is no store.
    """
    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module_name), attribute)
        store = found() if callable(found) else found
    except Exception as error:
        said_by = f"{type(error).__name__}: {error}"
        raise UsageError(f"option store of adapter langgraph: '{name}': {said_by}", "Give module.path:name.") from error
    if not isinstance(store, importlib.import_module("langgraph.store.base").BaseStore):
        raise UsageError(f"option store of adapter langgraph: '{name}' is {type(store).__name__}, no BaseStore")
    return store
