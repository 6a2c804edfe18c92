"""``atomicmemory``: an AtomicMemory core; claims with versions, of which the newest is active."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import UNUSED, parse_time, replaced, said, said_at
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session, Snapshot, Turn

_PAGE = 100
_SOURCE = "memx"
_TURN = "memx:turn/"


@dataclass
class _User:
    """What this process knows of a user: the turns that each memory came from, and writes without an answer."""

    turns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pending: int = 0

    def add(self, memory_id: str, turn_id: str) -> None:
        self.turns[memory_id] = tuple(dict.fromkeys((*self.turns.get(memory_id, ()), turn_id)))


class AtomicMemory(MemoryAdapter):
    """AtomicMemory (core with API v1): one user per case, one ingest per turn.

    Facts are the memories and, from the audit trail, the versions that were superseded, invalidated or deleted.
    """

    name = "atomicmemory"
    version = "1"
    keeps_data = True
    exports = (
        "every memory, and every retired version that the audit trail names",
        "source turns: the source address of a memory, and the ids that each ingest says it stored or updated",
        "supersession by the links between versions; earlier wordings of a memory as metadata.history",
    )
    cannot_see = ("why no memory was made of a turn", "lessons, and how memories are packed into a context")
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "api_url": Option("http://localhost:17350", "the address of the core", env="ATOMICMEMORY_API_URL"),
        "api_key": Option("", "its API key, where it wants one", env="ATOMICMEMORY_API_KEY", secret=True),
        "timeout_s": Option(60.0, "how long one request may take, in seconds", least=0.1),
        "mode": Option("text", "text extracts memories, verbatim keeps the turn", choices=("text", "verbatim")),
        "content_class": Option(
            "redacted",
            "how sensitive the text is said to be; a core refuses raw text as it comes",
            choices=("summary", "redacted", "raw"),
        ),
        "settle_s": Option(3.0, "where a write has no answer: how long the store must stay the same", least=0.0),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        package = load_package(self.name, "atomicmemory", "atomicmemory", ("1",))
        url = self.options["api_url"]
        given = {
            "api_url": url,
            "api_key": self.options["api_key"] or None,
            "timeout_seconds": self.options["timeout_s"],
        }
        self._client: Any = package.MemoryClient(providers={"atomicmemory": given})
        self._client.initialize()
        self._handle: Any = self._client.atomicmemory
        self._pending_error = package.PendingIngestError
        self.calls = Calls(self.name, key="ATOMICMEMORY_API_KEY", where=url)
        self._users: dict[str, _User] = {}

    def describe(self) -> Mapping[str, Any]:
        """How turns are stored; a wrong key or address fails here, before any ingest."""
        self._listed(UNUSED)
        return {"mode": self.options["mode"], "content_class": self.options["content_class"]}

    def close(self) -> None:
        self._client.close()

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        user = self._users.setdefault(session.entity_id, _User())
        for turn in session.turns:
            self._ingest(user, session, turn)
            self.calls.stored()
        self.calls.end()

    def _ingest(self, user: _User, session: Session, turn: Turn) -> None:
        at = said_at(session, turn)
        given = {
            "mode": self.options["mode"],
            # The API has no field for a turn's time or speaker, so both stand in the text.
            "content": f"[{at.isoformat(sep=' ', timespec='minutes')}] {said(turn)}" if at else said(turn),
            "scope": {"user": session.entity_id},
            "provenance": {"source": _SOURCE, "source_url": _address(turn.turn_id, at)},
            "content_class": self.options["content_class"],
        }

        def made() -> Any:
            try:
                return self._client.ingest(given)
            except self._pending_error:
                return None

        # A turn ingested twice may be stored twice, so only a call that did nothing is made again.
        result = self.calls.write("ingest", made, "refused")
        if result is None:
            user.pending += 1
            return
        for memory_id in (*result.created, *result.updated):
            user.add(memory_id, turn.turn_id)

    # ------------------------------------------------------------------------------------------------------- readiness

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        """Where the core only accepted a write, nothing says when it is done: wait until the store stays the same."""
        user = self._users.setdefault(entity_id, _User())
        if not user.pending:
            return
        self.note(f"atomicmemory confirmed no result for {user.pending} turns")
        seen: list[int] = []

        def outstanding() -> str:
            seen.append(self._audited("summary", entity_id).total_versions)
            settled = len(seen) > 1 and seen[-1] == seen[-2]
            return "" if settled else f"{user.pending} turns were accepted and may not be stored yet"

        wait_until(self.name, outstanding, timeout_s, every_s=self.options["settle_s"])
        user.pending = 0

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        given = {"query": query, "scope": {"user": entity_id}, "limit": top_k}
        found = self.calls.read("search", lambda: self._client.search(given))
        user = self._users.setdefault(entity_id, _User())
        receipt = found.retrieval
        declared = {} if receipt is None else {n: getattr(receipt, n) for n in ("embedding_model", "trace_id")}
        return QueryResult(tuple(_retrieved(user, row) for row in found.results[:top_k]), declared=declared)

    def export_state(self, entity_id: str) -> Snapshot:
        user = self._users.setdefault(entity_id, _User())
        rows = {row.id: row for row in self._listed(entity_id)}
        versions = self._versions(entity_id, rows)
        facts = [_fact(user, row, _history(row, versions.values())) for row in rows.values()]
        retired, replaced_by = {}, {}
        for version_id, version in versions.items():
            newer = versions.get(version.superseded_by_version_id or "")
            if version.memory_id in rows or (newer is None and version.valid_to is None):
                continue
            fact_id = version.memory_id or version_id
            if newer is not None and newer.memory_id in rows and newer.memory_id != fact_id:
                replaced_by[fact_id] = newer.memory_id
            retired[fact_id] = _retired(user, fact_id, version, superseded=newer is not None)
        return Snapshot(entity_id, tuple(replaced([*facts, *retired.values()], replaced_by)))

    def _versions(self, entity_id: str, rows: Iterable[str]) -> dict[str, Any]:
        """The versions of all claims of the user by id: at once, and by memory where one call does not give all."""
        total = self._audited("summary", entity_id).total_versions
        if not total:
            return {}
        found = {row.id: row for row in self._audited("recent", entity_id, limit=total).mutations}
        if len(found) < total:
            for memory_id in rows:
                found |= {row.version_id: row for row in self._audited("trail", memory_id, entity_id).trail}
            if len(found) < total:
                self.note(f"atomicmemory shows {len(found)} of {total} versions in its audit trail")
        return found

    def _audited(self, what: str, *where: str, **given: Any) -> Any:
        return self.calls.read("read audit trail", lambda: getattr(self._handle.audit, what)(*where, **given))

    def _listed(self, entity_id: str) -> list[Any]:
        scopes = load_package(self.name, "atomicmemory.providers.atomicmemory.handle", "atomicmemory")
        user = scopes.UserScope(user_id=entity_id)

        def page(offset: int) -> Page[Any]:
            found = self.calls.read(
                "list memories",
                lambda: self._handle.list(user, {"limit": _PAGE, "offset": offset}),
            )
            return Page(found.memories, None if found.cursor is None else int(found.cursor))

        return list(pages(self.name, "memories", page, key=lambda row: row.id, first=0))

    def reset(self, entity_id: str) -> None:
        """Delete what memx stored for the user; what another source stored stays."""
        self.calls.write(
            "reset source", lambda: self._handle.lifecycle.reset_source(entity_id, source_site=_SOURCE), "always"
        )
        self._users.pop(entity_id, None)


def _address(turn_id: str, at: datetime | None) -> str:
    """A turn's id and time as an address, the one field of a memory that keeps what it is given."""
    return f"{_TURN}{quote(turn_id, safe='')}" + (f"?at={quote(at.isoformat(), safe=':')}" if at else "")


def _told(source_url: str | None) -> tuple[str, str]:
    """Turn id and time of an address; empty where it is none of ours."""
    if not source_url or not source_url.startswith(_TURN):
        return "", ""
    turn_id, _, at = source_url.removeprefix(_TURN).partition("?at=")
    return unquote(turn_id), unquote(at)


def _turns(user: _User, memory_id: str, source_url: str | None) -> tuple[str, ...]:
    turn_id = _told(source_url)[0]
    return user.turns.get(memory_id) or ((turn_id,) if turn_id else ())


def _history(row: Any, versions: Iterable[Any]) -> list[dict[str, Any]]:
    """Earlier wordings of a memory that was updated in place, oldest first."""
    older = [v for v in versions if v.memory_id == row.id and v.valid_to is not None and v.content != row.content]
    older.sort(key=lambda version: version.valid_from)
    return [{"content": v.content, "until": v.valid_to.isoformat()} for v in older]


def _fact(user: _User, row: Any, history: list[dict[str, Any]]) -> Fact:
    shown = {"importance": row.importance, "episode_id": row.episode_id, "history": history or None}
    return Fact(
        row.id,
        row.content,
        source_turn_ids=_turns(user, row.id, row.source_url),
        created_at=parse_time(_told(row.source_url)[1]) or row.created_at,
        metadata={**(row.metadata or {}), **{name: value for name, value in shown.items() if value is not None}},
    )


def _retired(user: _User, fact_id: str, version: Any, *, superseded: bool) -> Fact:
    status = FactStatus.SUPERSEDED if superseded else FactStatus.INVALIDATED
    if not superseded and version.mutation_type == "delete":
        status = FactStatus.DELETED
    ended = version.valid_to.isoformat() if version.valid_to else None
    shown = {"valid_to": ended, "mutation_reason": version.mutation_reason, "claim_id": version.claim_id}
    return Fact(
        fact_id,
        version.content,
        status,
        source_turn_ids=user.turns.get(fact_id, ()),
        created_at=version.valid_from,
        metadata={name: value for name, value in shown.items() if value is not None},
    )


def _retrieved(user: _User, row: Any) -> Retrieved:
    values = {name: getattr(row, name) for name in ("similarity", "ranking_score", "relevance")}
    memory = row.memory
    source = memory.provenance.source_url if memory.provenance is not None else None
    metadata = {**(memory.metadata or {}), "source_turn_ids": list(_turns(user, memory.id, source))}
    signals = {name: value for name, value in values.items() if value is not None}
    return Retrieved(memory.id, memory.content, row.score, signals, metadata)
