"""``supermemory``: Supermemory v5; documents go in, memories with versions are made of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, need, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import SAID_AT, UNUSED, carried, parse_time, replaced, said, said_at, sources, with_zone
from memx.errors import AdapterError
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session, Snapshot, Turn

#: Rows of a page, results of a search: Supermemory gives at most so many.
_MOST = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass
class _Sent:
    """What this process sent into a namespace."""

    documents: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)


class Supermemory(MemoryAdapter):
    """Supermemory (v5): one namespace per case, one document per turn.

    Facts are the memories that Supermemory makes of the documents, every version of them; with ``search_mode`` hybrid
    or chunks also the chunks of the documents, since a search then returns those too.
    """

    name = "supermemory"
    version = "5"
    keeps_data = True
    exports = (
        "every version of every memory, forgotten ones too; chunks where the search mode returns them",
        "source turns through the metadata of the document that a memory came from",
        "supersession by versions: the memories that a newer version updates",
    )
    cannot_see = (
        "why no memory was made of a document",
        "the profile, which is drawn from the same memories",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "api_key": Option("", "an API key of Supermemory", env="SUPERMEMORY_API_KEY", secret=True),
        "base_url": Option("https://api.supermemory.ai", "the address of the API", env="SUPERMEMORY_BASE_URL"),
        "timeout_s": Option(60.0, "how long one request may take, in seconds", least=0.1),
        "batch_size": Option(100, "documents sent in one call; Supermemory takes at most 600", least=1),
        "search_mode": Option("hybrid", "what a search returns", choices=("hybrid", "memories", "chunks")),
        "threshold": Option(0.0, "results below this similarity are left out", least=0.0),
        "rerank": Option("none", "ordering after the search", choices=("none", "order", "aggregate")),
        "dreaming": Option("dynamic", "instant is ready sooner and bills more", choices=("dynamic", "instant")),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        package = load_package(self.name, "supermemory", "supermemory", ("5",))
        key = need(self.name, self.OPTIONS, self.options, "api_key")
        url = self.options["base_url"]
        self._client: Any = package.Supermemory(
            api_key=key, base_url=url, timeout=self.options["timeout_s"], max_retries=0
        )
        self.calls = Calls(self.name, key="SUPERMEMORY_API_KEY", where=url)
        self._sent: dict[str, _Sent] = {}

    def describe(self) -> Mapping[str, Any]:
        """What a search looks through and how it is ordered; a wrong key or address fails here, before any ingest."""
        self._listed(UNUSED, "documents")
        return {name: self.options[name] for name in ("search_mode", "rerank", "dreaming")}

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        sent = self._sent.setdefault(session.entity_id, _Sent())
        size = self.options["batch_size"]
        for start in range(0, len(session.turns), size):
            documents = [_document(session, turn) for turn in session.turns[start : start + size]]
            # The same text under the same id is an unchanged duplicate to Supermemory, so a batch may be sent again.
            result = self.calls.write(
                "add documents",
                lambda documents=documents: self._client.documents.batch_add(  # type: ignore[misc]
                    session.entity_id, documents=documents, dreaming=self.options["dreaming"]
                ),
                "always",
            )
            refused = [item for item in result.results if item.status == "error"]
            for item in refused:
                self.note(f"supermemory refused document {item.id or '?'}: {item.error or 'no reason given'}")
            if len(refused) == len(documents):
                raise AdapterError(
                    f"supermemory: add documents: every document was refused: {refused[0].error or 'no reason given'}; "
                    f"stored so far: {self.calls.so_far()}"
                )
            sent.documents |= {item.id for item in result.results if item.status != "error"}
            self.calls.stored(len(documents) - len(refused))
        self.calls.end()

    # ------------------------------------------------------------------------------------------------------- readiness

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        sent = self._sent.setdefault(entity_id, _Sent())

        def outstanding() -> str:
            documents = self._listed(entity_id, "documents")
            for document in documents:
                if document.system.status == "failed" and document.id not in sent.failed:
                    sent.failed.add(document.id)
                    self.note(f"supermemory could not process document {document.id}")
            # A document that failed is deleted by Supermemory after two minutes.
            lost = sent.documents - sent.failed - {document.id for document in documents}
            going = [document for document in documents if document.id not in sent.failed]
            stages = (
                (len(lost), "not listed yet"),
                (sum(1 for d in going if d.system.status != "done"), "being indexed"),
                (sum(1 for d in going if d.system.dreaming_status != "done"), "waiting for their memories to be made"),
            )
            if documents and not going:
                raise AdapterError(f"supermemory: all {len(documents)} documents failed", "See them in its console.")
            total = max(len(documents), len(sent.documents))
            return next((f"{n} of {total} documents are {what}" for n, what in stages if n), "")

        wait_until(self.name, outstanding, timeout_s, every_s=0.25)

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = self.calls.read_or_none(
            "search",
            lambda: self._client.search(
                entity_id,
                query=query,
                limit=min(top_k, _MOST),
                search_mode=self.options["search_mode"],
                threshold=self.options["threshold"],
                rerank=self.options["rerank"],
            ),
        )
        if found is None:
            return QueryResult(())
        facts = tuple(_retrieved(result) for result in found.results[:top_k])
        return QueryResult(facts, declared={"search_ms": found.search_time})

    def export_state(self, entity_id: str) -> Snapshot:
        mode = self.options["search_mode"]
        sent = {document.id: document.metadata or {} for document in self._listed(entity_id, "documents")}
        facts: list[Fact] = []
        if mode != "chunks":
            facts += self._memories(entity_id)
        if mode != "memories":
            facts += [_chunk(row, sent.get(row.document_id, {})) for row in self._listed(entity_id, "chunks")]
        return Snapshot(entity_id, tuple(facts))

    def _memories(self, entity_id: str) -> list[Fact]:
        rows = {row.id: row for row in self._listed(entity_id, "memories")}
        metadata: dict[str, Mapping[str, Any]] = {row_id: row.metadata or {} for row_id, row in rows.items()}
        replaced_by: dict[str, str] = {}
        for row in list(rows.values()):
            if row.version <= 1 and sources(metadata[row.id]):
                continue
            included = self._included(entity_id, row.id)
            document = getattr(included, "document", None)
            if not sources(metadata[row.id]) and document is not None:
                metadata[row.id] = {**(document.metadata or {}), **metadata[row.id]}
            related = getattr(included, "related", None)
            for parent in (related.parents if related is not None else None) or ():
                if parent.relation == "updates":
                    rows.setdefault(parent.id, parent)
                    metadata.setdefault(parent.id, parent.metadata or {})
                    replaced_by[parent.id] = row.id
        facts = [_memory(row, metadata[row_id], row_id in replaced_by) for row_id, row in rows.items()]
        return replaced(facts, replaced_by)

    def _included(self, entity_id: str, memory_id: str) -> Any:
        found = self.calls.read(
            "read memory",
            lambda: self._client.memories.get(entity_id, memory_id, include=["related", "documents"], related_limit=50),
        )
        return found.included

    def _listed(self, entity_id: str, what: str) -> list[Any]:
        """All rows of a namespace; none where nothing was ever stored in it."""
        include = {"forgotten": True} if what == "memories" else None

        def fetch(number: int) -> Any:
            more = {"include": include} if include else {}
            return self._client.list(entity_id, what, page=number, limit=_MOST, sort="createdAt", order="asc", **more)

        def page(number: int) -> Page[Any]:
            found = self.calls.read_or_none(f"list {what}", lambda: fetch(number))
            if found is None:
                return Page([])
            told = found.pagination
            last = number >= told.total_pages
            return Page(getattr(found, what) or [], None if last else number + 1, int(told.total_items))

        return list(pages(self.name, what, page, key=lambda row: row.id, first=1))

    def reset(self, entity_id: str) -> None:
        """Delete the namespace with everything in it."""

        def delete() -> None:
            try:
                self._client.namespaces.delete(entity_id)
            except Exception as error:
                if getattr(error, "status_code", None) != 404:
                    raise

        self.calls.write("delete namespace", delete, "always")
        self._sent.pop(entity_id, None)


def _document(session: Session, turn: Turn) -> dict[str, Any]:
    at = said_at(session, turn)
    # A text that is a web address alone would be fetched, so a turn without a speaker begins with its role.
    content = said(turn) if turn.speaker else f"{turn.role or 'user'}: {turn.content}"
    document: dict[str, Any] = {
        "content": content,
        "id": _document_id(turn.turn_id),
        "metadata": carried(session, turn),
    }
    if at is not None:
        document["date"] = with_zone(at).isoformat()
    return document


def _document_id(turn_id: str) -> str:
    """The turn id with what an address may not hold replaced, and a digest of it where something was."""
    safe = _UNSAFE.sub("-", turn_id)[:60]
    return safe if safe == turn_id else f"{safe}-{hashlib.sha256(turn_id.encode()).hexdigest()[:8]}"


def _memory(row: Any, sent: Mapping[str, Any], superseded: bool) -> Fact:
    """A listed memory, or an older version of which only its successor tells."""
    forgotten, latest = getattr(row, "is_forgotten", False), getattr(row, "is_latest", False)
    if superseded or not (latest or forgotten):
        status = FactStatus.SUPERSEDED
    else:
        status = FactStatus.INVALIDATED if forgotten else FactStatus.ACTIVE
    shown = {name: getattr(row, name, None) for name in ("version", "is_static", "is_inference", "is_forgotten")}
    metadata = {**sent, "kind": "memory", **{name: value for name, value in shown.items() if value is not None}}
    made = getattr(row.system, "created_at", None) or row.system.updated_at
    at = parse_time(sent.get(SAID_AT) or made)
    return Fact(row.id, row.memory, status, source_turn_ids=sources(sent), created_at=at, metadata=metadata)


def _chunk(row: Any, sent: Mapping[str, Any]) -> Fact:
    sent = {**sent, **(row.metadata or {})}
    return Fact(
        row.id,
        row.content,
        source_turn_ids=sources(sent),
        created_at=parse_time(sent.get(SAID_AT) or row.system.created_at),
        metadata={**sent, "kind": "chunk", "document_id": row.document_id, "position": row.position},
    )


def _retrieved(result: Any) -> Retrieved:
    text = result.memory if result.memory is not None else result.chunk
    shown = {"kind": "memory" if result.memory is not None else "chunk", "is_latest": result.is_latest}
    metadata = {**(result.metadata or {}), **shown, "source_turn_ids": list(sources(result.metadata))}
    return Retrieved(result.id, text or "", result.similarity, {"similarity": result.similarity}, metadata)
