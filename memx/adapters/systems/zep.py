"""``zep``: Zep Cloud v4, a temporal knowledge graph; its facts are edges with times of validity."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, need, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import UNUSED, carried, parse_time, replaced, said_at, sources, with_zone
from memx.adapters.validity import Validity, successors
from memx.errors import AdapterError
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session, Snapshot, Turn

_ROLES = ("user", "assistant", "system")
#: Edges and episodes are listed and searched in pages of at most so many.
_PAGE = 50


@dataclass
class _User:
    """A user of Zep with its graph, and what this process sent there."""

    user_uuid: str
    graph_uuid: str
    tasks: dict[str, str] = field(default_factory=dict)  # unfinished: uuid -> the session it stores
    turn_of: dict[str, str] = field(default_factory=dict)  # episode uuid -> turn id


class Zep(MemoryAdapter):
    """Zep Cloud (v4): one user per case, one thread per session, one message per turn.

    Facts are the edges of the user's graph. An edge whose validity ended is retired; the edge that ended it is read
    from Zep's ingestion traces (``traces=on``), else from the times: the one about the same node that begins when it
    ends.
    """

    name = "zep"
    version = "4"
    keeps_data = True
    exports = (
        "every edge of the user's graph, retired ones too, with its times of validity",
        "source turns through the episodes of an edge (message metadata)",
        "supersession: by ingestion traces, else by times of validity",
    )
    cannot_see = (
        "why an edge was never made of a message",
        "node summaries, observations and thread summaries, which a context block may also use",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "api_key": Option("", "the API key of a Zep project", env="ZEP_API_KEY", secret=True),
        "base_url": Option("https://api.getzep.com/api/v4", "the address of the API", env="ZEP_BASE_URL"),
        "timeout_s": Option(60.0, "how long one request may take, in seconds", least=0.1),
        "batch_size": Option(30, "messages sent in one call; Zep takes at most 30", least=1),
        "message_chars": Option(2500, "longer messages are sent in parts; 14000 on a paid plan", least=100),
        "reranker": Option("rrf", "how results are ordered", choices=("rrf", "episode_mentions", "cross_encoder")),
        "traces": Option(False, "read what replaced what from Zep's ingestion traces (enable them for the project)"),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        package = load_package(self.name, "zep_cloud", "zep-cloud", ("4",))
        key = need(self.name, self.OPTIONS, self.options, "api_key")
        url = self.options["base_url"]
        self._client: Any = package.Zep(api_key=key, base_url=url, timeout=self.options["timeout_s"], max_retries=0)
        self._message = package.AddMessage
        self.calls = Calls(self.name, key="ZEP_API_KEY", where=url)
        self._users: dict[str, _User] = {}
        self._nonce = uuid.uuid4()

    def describe(self) -> Mapping[str, Any]:
        """The reranker and where supersession is read from; a wrong key or address fails here, before any ingest."""
        self._find(UNUSED)
        read_from = "ingestion traces" if self.options["traces"] else "times of validity"
        return {"reranker": self.options["reranker"], "supersession": read_from}

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        calls, client = self.calls, self._client
        calls.begin(session)
        user = self._user(session.entity_id, session)
        thread = calls.write(
            "create thread",
            lambda: client.thread.create(user_uuid=user.user_uuid, idempotency_key=self._key(session, "thread")),
            "always",
        )
        messages = [message for turn in session.turns for message in self._messages(session, turn)]
        size = self.options["batch_size"]
        for start in range(0, len(messages), size):
            batch = messages[start : start + size]
            self._add(user, session, thread.uuid_, start, batch)
            calls.stored(sum(last for _, _, last in batch))
        calls.end()

    def _add(
        self, user: _User, session: Session, thread_uuid: str, start: int, batch: list[tuple[str, Any, bool]]
    ) -> None:
        result = self.calls.write(
            "add messages",
            lambda: self._client.thread.add_messages(
                thread_uuid,
                messages=[message for _, message, _ in batch],
                idempotency_key=self._key(session, str(start)),
            ),
            "always",
        )
        accepted = result.messages or []
        if len(accepted) != len(batch):
            raise AdapterError(
                f"zep: add messages: {len(accepted)} of {len(batch)} messages were accepted; stored so far: "
                f"{self.calls.so_far()}",
                "Zep took only part of the session. Look at the project's log.",
            )
        for (turn_id, _, _), message in zip(batch, accepted, strict=True):
            if message.uuid_:
                user.turn_of[message.uuid_] = turn_id
        if result.task is not None and result.task.uuid_:
            user.tasks[result.task.uuid_] = session.session_id

    def _messages(self, session: Session, turn: Turn) -> Iterator[tuple[str, Any, bool]]:
        """The turn as messages: its id, the message, and whether it is the turn's last."""
        at = said_at(session, turn)
        most = self.options["message_chars"]
        parts = [turn.content[i : i + most] for i in range(0, len(turn.content), most)] or [" "]
        for number, part in enumerate(parts, start=1):
            message = self._message(
                role=turn.role if turn.role in _ROLES else "user",
                name=turn.speaker or None,
                content=part,
                reference_time=with_zone(at).isoformat() if at else None,
                metadata=carried(session, turn),
            )
            yield turn.turn_id, message, number == len(parts)

    def _user(self, entity_id: str, session: Session) -> _User:
        found = self._users.get(entity_id) or self._find(entity_id)
        if found is None:
            names = [turn.speaker for turn in session.turns if turn.role == "user" and turn.speaker]
            made = self.calls.write(
                "create user",
                lambda: self._client.user.create(
                    user_id=entity_id,
                    first_name=names[0] if names else None,
                    idempotency_key=str(uuid.uuid5(self._nonce, entity_id)),
                ),
                "always",
            )
            found = _User(made.uuid_, made.graph_uuid)
        self._users[entity_id] = found
        return found

    def _find(self, entity_id: str) -> _User | None:
        """The user of an entity that an earlier run stored; None where there is none."""
        if entity_id not in self._users:
            not_found = load_package(self.name, "zep_cloud", "zep-cloud").NotFoundError

            def look() -> _User | None:
                try:
                    user = self._client.user.lookup(user_id=entity_id)
                except not_found:
                    return None
                return _User(user.uuid_, user.graph_uuid)

            found = self.calls.read("look up user", look)
            if found is None:
                return None
            self._users[entity_id] = found
        return self._users[entity_id]

    def _key(self, session: Session, part: str) -> str:
        """The idempotency key of one write. Zep answers a repeated key with its first answer, so a key must outlive
        neither this instance nor a reset."""
        return str(uuid.uuid5(self._nonce, f"{session.entity_id}/{session.session_id}/{part}"))

    # ------------------------------------------------------------------------------------------------------- readiness

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        user = self._find(entity_id)
        if user is None:
            return
        sent = len(user.tasks)

        def outstanding() -> str:
            for task_uuid in list(user.tasks):
                if self._ended(user, task_uuid):
                    del user.tasks[task_uuid]
            if user.tasks:
                return f"{len(user.tasks)} of {sent} tasks are under way"
            episodes = self._episodes(user)
            waiting = sum(1 for episode in episodes if episode.processed is False)
            return f"{waiting} of {len(episodes)} episodes are not processed" if waiting else ""

        wait_until(self.name, outstanding, timeout_s)

    def _ended(self, user: _User, task_uuid: str) -> bool:
        task = self.calls.read("look at task", lambda: self._client.task.get(task_uuid))
        why = (task.error.message if task.error else "") or "no reason given"
        where = f"session {user.tasks[task_uuid]}"
        if task.status == "failed":
            raise AdapterError(f"zep: ingest of {where} failed: {why}", "See the task in Zep's dashboard.")
        if task.status == "partial":
            self.note(f"zep stored only part of {where}: {why}")
        return task.status in ("succeeded", "partial")

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        user = self._find(entity_id)
        if user is None:
            return QueryResult(())

        def page(cursor: Any) -> Page[Any]:
            found = self.calls.read(
                "search",
                lambda: self._client.graph.search_edges(
                    user.graph_uuid,
                    query=query,
                    page_size=min(top_k, _PAGE),
                    cursor=cursor,
                    reranker=self.options["reranker"],
                ),
            )
            return Page(found.items or [], found.response.next_cursor or None)

        edges = islice(pages(self.name, "results", page, key=lambda edge: edge.uuid_), top_k)
        return QueryResult(tuple(_retrieved(user, edge) for edge in edges))

    def export_state(self, entity_id: str) -> Snapshot:
        user = self._find(entity_id)
        if user is None:
            return Snapshot(entity_id, ())
        for episode in self._episodes(user):
            turn_ids = sources(episode.metadata)
            if turn_ids:
                user.turn_of.setdefault(episode.uuid_, turn_ids[0])
        edges = self._listed(user, "edges", self._client.graph.edge.list)
        times = {edge.uuid_: _validity(edge) for edge in edges}
        told = self._told(user, edges) if self.options["traces"] else {}
        now = datetime.now(UTC)
        status = {edge_id: validity.status(now) for edge_id, validity in times.items()}
        by = {**successors(list(times.values())), **told}
        by = {old: new for old, new in by.items() if {old, new} <= set(times) and status[old] is not FactStatus.ACTIVE}
        facts = [
            Fact(
                edge.uuid_,
                edge.fact or "",
                FactStatus.SUPERSEDED if edge.uuid_ in by else status[edge.uuid_],
                source_turn_ids=_turns(user, edge),
                created_at=times[edge.uuid_].valid_at or times[edge.uuid_].created_at,
                metadata=_shown(edge),
            )
            for edge in edges
        ]
        return Snapshot(entity_id, tuple(replaced(facts, by)))

    def _told(self, user: _User, edges: list[Any]) -> dict[str, str]:
        """Which edge replaced which, from the ingestion traces of the episodes that edges came from."""
        found = {}
        for episode in dict.fromkeys(e for edge in edges for e in edge.episode_uuids or ()):
            for trace in self._listed(user, "traces", self._client.graph.episode.list_ingestion_traces, episode):
                for ended in (trace.output.edge_invalidations if trace.output else None) or ():
                    by = [reference.uuid_ for reference in ended.invalidating_edges or () if reference.uuid_]
                    if ended.invalidated_edge_uuid and by:
                        found[ended.invalidated_edge_uuid] = by[0]
        return found

    def _episodes(self, user: _User) -> list[Any]:
        return self._listed(user, "episodes", self._client.graph.episode.list)

    def _listed(self, user: _User, what: str, listing: Any, *where: str) -> list[Any]:
        def page(cursor: Any) -> Page[Any]:
            found = self.calls.read(
                f"list {what}", lambda: listing(user.graph_uuid, *where, page_size=_PAGE, cursor=cursor)
            )
            return Page(found.items or [], found.response.next_cursor or None)

        return list(pages(self.name, what, page, key=lambda row: row.uuid_))

    def reset(self, entity_id: str) -> None:
        """Delete the user with its threads and graph, and wait until Zep has done so."""
        user = self._find(entity_id)
        if user is None:
            return
        result = self.calls.write("delete user", lambda: self._client.user.delete(user.user_uuid), "refused")
        del self._users[entity_id]
        self._nonce = uuid.uuid4()
        if result.task is not None and result.task.uuid_:
            user.tasks = {result.task.uuid_: "(deletion)"}
            wait_until(self.name, lambda: "" if self._ended(user, result.task.uuid_) else "deletion is under way", 60)


def _turns(user: _User, edge: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(user.turn_of[e] for e in edge.episode_uuids or () if e in user.turn_of))


def _shown(edge: Any) -> dict[str, Any]:
    shown = {name: getattr(edge, name) for name in ("name", "valid_at", "invalid_at", "expired_at", "created_at")}
    return {name: value for name, value in shown.items() if value is not None}


def _retrieved(user: _User, edge: Any) -> Retrieved:
    signals = {"relevance": edge.relevance} if edge.relevance is not None else {}
    metadata = {**_shown(edge), "source_turn_ids": list(_turns(user, edge))}
    return Retrieved(edge.uuid_, edge.fact or "", edge.score, signals, metadata)


def _validity(edge: Any) -> Validity:
    times = (edge.valid_at, edge.invalid_at, edge.created_at, edge.expired_at)
    ends = (edge.source_node_uuid or "", edge.target_node_uuid or "")
    return Validity(edge.uuid_, edge.fact or "", ends, edge.name or "", *map(parse_time, times))
