"""``cognee``: cognee in process; text becomes chunks, summaries and a graph of entities."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import sys
import threading
import uuid
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, read_options
from memx.adapters.packages import load_package
from memx.adapters.provenance import SAID_AT, carried, parse_time, said, said_at, sources
from memx.errors import AdapterTimeoutError
from memx.model import Fact, QueryResult, Retrieved, Session, Snapshot, Turn

_SET = "turn:"
#: Edges of cognee's own bookkeeping; what is left relates entities.
_OWN = frozenset({"belongs_to_set", "made_from", "is_part_of", "contains", "is_a", "exists_in"})


class _Loop:
    """One event loop for all instances: cognee keeps engines for the whole process, bound to the loop they began in."""

    _guard: ClassVar[threading.Lock] = threading.Lock()
    _loop: ClassVar[asyncio.AbstractEventLoop | None] = None

    @classmethod
    def run(cls, work: Coroutine[Any, Any, Any], timeout_s: float | None = None) -> Any:
        with cls._guard:
            if cls._loop is None:
                cls._loop = asyncio.new_event_loop()
                threading.Thread(target=cls._loop.run_forever, name="cognee", daemon=True).start()
            # One call at a time: cognee's embedded databases take one writer. What it prints is no data of memx.
            with contextlib.redirect_stdout(sys.stderr):
                return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, timeout_s), cls._loop).result()


class Cognee(MemoryAdapter):
    """cognee 1.6, in process with its embedded databases: one dataset per case, one data item per turn.

    Facts are the chunks, their summaries and the relations between entities. Its models are set as cognee's own
    documentation says (LLM_PROVIDER, LLM_MODEL, LLM_API_KEY, EMBEDDING_PROVIDER, ...).
    """

    name = "cognee"
    version = "1"
    keeps_data = True
    exports = (
        "every chunk, every summary, and every relation between two entities",
        "source turns: the node sets of a chunk or summary, and those that both ends of a relation share",
    )
    cannot_see = (
        "supersession: cognee keeps contradicting relations side by side",
        "scores of the completion searches; memx searches chunks or summaries",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "search_type": Option("CHUNKS", "what a search returns", choices=("CHUNKS", "SUMMARIES")),
        "data_dir": Option("", "where cognee keeps its data; empty leaves it to cognee", env="MEMX_COGNEE_DIR"),
        "telemetry": Option(False, "let cognee send telemetry"),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        self._set_environment()
        self._cognee: Any = load_package(self.name, "cognee", "cognee", ("1",))
        load_package(self.name, "litellm", "litellm").__dict__["suppress_debug_info"] = True
        items = load_package(self.name, "cognee.tasks.ingestion.data_item", "cognee")
        self._item = items.DataItem
        if self.options["data_dir"]:
            root = Path(self.options["data_dir"]).resolve()
            self._cognee.config.data_root_directory(str(root / "data"))
            self._cognee.config.system_root_directory(str(root / "system"))
        self.calls = Calls(self.name, key="LLM_API_KEY")
        self._new: set[str] = set()

    def _set_environment(self) -> None:
        """What cognee reads while it is imported, where the user did not set it."""
        if not self.options["telemetry"]:
            os.environ["TELEMETRY_DISABLED"] = "1"
        os.environ.setdefault("LOG_LEVEL", "CRITICAL")  # what matters of its errors memx tells itself
        # cognee counts tokens with tables that tiktoken would download; litellm carries them.
        litellm = importlib.util.find_spec("litellm")
        tables = Path(litellm.origin if litellm and litellm.origin else "").parent / "litellm_core_utils" / "tokenizers"
        if tables.is_dir():
            os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))

    def describe(self) -> Mapping[str, Any]:
        """What a search returns, and cognee's models as the environment names them."""
        named = {name.lower(): os.environ.get(name, "") for name in ("LLM_MODEL", "EMBEDDING_MODEL")}
        return {"search_type": self.options["search_type"], **{name: value for name, value in named.items() if value}}

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        items = [self._data(session, turn) for turn in session.turns]
        if items:
            # The ids are ours, so that what is added twice is stored once.
            self.calls.write(
                "add",
                lambda: _Loop.run(self._cognee.add(items, dataset_name=session.entity_id)),
                "always",
            )
            self._new.add(session.entity_id)
        self.calls.stored(len(items))
        self.calls.end()

    def _data(self, session: Session, turn: Turn) -> Any:
        at = said_at(session, turn)
        text = f"[{at.isoformat(sep=' ', timespec='minutes')}] {said(turn)}" if at else said(turn)
        return self._item(
            data=text,
            external_metadata=carried(session, turn),
            data_id=uuid.uuid5(uuid.NAMESPACE_URL, f"memx:{session.entity_id}/{turn.turn_id}"),
            node_set=[f"{_SET}{turn.turn_id}"],
            literal_text=True,
        )

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        """Have cognee make its graph of what was added, and wait for it."""
        if entity_id not in self._new:
            return
        work = self._cognee.cognify
        try:
            self.calls.write("cognify", lambda: _Loop.run(work(datasets=[entity_id]), timeout_s), "never")
        except AdapterTimeoutError as error:
            raise AdapterTimeoutError(f"cognee: not ready after {timeout_s:g} s", error.hint) from error
        self._new.discard(entity_id)

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        kind = self._cognee.SearchType[self.options["search_type"]]
        found = self._read(
            "search", lambda: self._cognee.search(query, query_type=kind, datasets=[entity_id], top_k=top_k)
        )
        rows = [row for dataset in found or () for row in dataset["search_result"] or ()]
        return QueryResult(tuple(_retrieved(row) for row in rows[:top_k]))

    def export_state(self, entity_id: str) -> Snapshot:
        graph = self._read("export", lambda: self._cognee.export(entity_id))
        if graph is None:
            return Snapshot(entity_id, ())
        sent = {str(n.id): _metadata(n.external_metadata) for n in graph.nodes if n.type == "DocumentChunk"}
        said_of = {turn: one[SAID_AT] for one in sent.values() for turn in sources(one) if SAID_AT in one}
        return Snapshot(entity_id, (*_texts(graph, sent), *_relations(graph, said_of)))

    def _read(self, step: str, work: Any) -> Any:
        """The result of a read; None where the dataset does not exist or holds no graph yet."""
        return self.calls.read_or_none(step, lambda: _Loop.run(work()))

    def reset(self, entity_id: str) -> None:
        """Delete the dataset with its data and its graph."""
        datasets = self._cognee.datasets

        async def delete() -> None:
            for dataset in await datasets.list_datasets():
                if dataset.name == entity_id:
                    await datasets.empty_dataset(dataset.id)

        self.calls.write("delete dataset", lambda: _Loop.run(delete()), "always")
        self._new.discard(entity_id)


def _listed(node_sets: Any) -> tuple[str, ...]:
    """The turn ids among node sets, which come as names or as nodes."""
    names = (getattr(one, "name", one) for one in node_sets or ())
    return tuple(str(name).removeprefix(_SET) for name in names if str(name).startswith(_SET))


def _metadata(value: Any) -> dict[str, Any]:
    """A chunk's metadata, which cognee keeps as JSON text."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    return {name: one for name, one in found.items() if name != "node_set"} if isinstance(found, Mapping) else {}


def _texts(graph: Any, sent: Mapping[str, Mapping[str, Any]]) -> Iterator[Fact]:
    """The chunks, and their summaries with the metadata of the chunk that each sums up."""
    for node in graph.nodes:
        if node.type in ("DocumentChunk", "TextSummary"):
            kind, chunk = ("chunk", node.id) if node.type == "DocumentChunk" else ("summary", node.source_chunk_id)
            metadata = {**sent.get(str(chunk), {}), "kind": kind}
            yield Fact(
                str(node.id),
                node.text,
                source_turn_ids=_listed(node.belongs_to_set),
                created_at=parse_time(metadata.get(SAID_AT) or node.created_at),
                metadata=metadata,
            )


def _relations(graph: Any, said_of: Mapping[str, str]) -> Iterator[Fact]:
    """The relations between two entities, dated by the last turn that told of both."""
    turns = _turns_of_nodes(graph)
    names = {str(node.id): node.name for node in graph.nodes if node.type == "Entity"}
    for edge in graph.edges:
        source, target = str(edge.source_id), str(edge.target_id)
        if edge.relationship in _OWN or not (names.get(source) and names.get(target)):
            continue
        shared = tuple(turn for turn in turns.get(source, ()) if turn in turns.get(target, ()))
        at = max((said_of[turn] for turn in shared if turn in said_of), default=None)
        yield Fact(
            f"{source}/{edge.relationship}/{target}",
            f"{names[source]} {edge.relationship.replace('_', ' ')} {names[target]}",
            source_turn_ids=shared,
            created_at=parse_time(at or (edge.properties or {}).get("updated_at")),
            metadata={"kind": "relation", "relation": edge.relationship},
        )


def _turns_of_nodes(graph: Any) -> dict[str, tuple[str, ...]]:
    """The turns that each node came from, by the sets that it belongs to."""
    sets = {str(node.id): node.name for node in graph.nodes if node.type == "NodeSet"}
    found: dict[str, tuple[str, ...]] = {}
    for edge in graph.edges:
        if edge.relationship == "belongs_to_set" and str(edge.target_id) in sets:
            node_id = str(edge.source_id)
            found[node_id] = (*found.get(node_id, ()), *_listed([sets[str(edge.target_id)]]))
    return found


def _retrieved(row: Mapping[str, Any]) -> Retrieved:
    """A result. cognee's score is a distance, so memx turns it round."""
    distance = row.get("score")
    sent = _metadata(row.get("external_metadata"))
    turns = list(_listed(row.get("belongs_to_set")) or sources(sent))
    signals = {} if distance is None else {"distance": float(distance)}
    score = None if distance is None else 1.0 - float(distance)
    return Retrieved(str(row["id"]), str(row.get("text") or ""), score, signals, {**sent, "source_turn_ids": turns})
