"""``letta``: an agent on a Letta server; its memory is blocks that it rewrites and passages that it files away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.failures import is_web_page
from memx.adapters.options import Option, need, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import UNUSED, said, said_at, with_zone
from memx.errors import AdapterError
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session, Snapshot

_CLOUD = "https://api.letta.com"
_PAGE = 100
_TURN = "turn:"
#: The block in which Letta keeps who the agent is; nothing of a conversation stands there.
_PERSONA = "persona"
_TASK = "You keep in memory what people say in conversations that are shown to you, and correct what has changed."


@dataclass
class _Agent:
    """An agent of Letta and, where the agent itself writes its memory, which turns it wrote what from."""

    agent_id: str
    texts: dict[str, str] = field(default_factory=dict)  # fact id -> its text when last looked at
    turns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # fact id -> turn ids


class Letta(MemoryAdapter):
    """Letta (server 0.16 or cloud): one agent per case.

    ``mode=agent`` shows each session to the agent, whose model decides what it writes into its memory blocks and into
    archival memory. ``mode=archival`` files every turn as a passage and asks no model but the embedder.
    """

    name = "letta"
    version = "1"
    keeps_data = True
    exports = (
        "every passage of archival memory and every memory block but the persona",
        "source turns: by tag where memx filed the passage, else the session in which a block or passage was written",
    )
    cannot_see = (
        "what a block said before it was rewritten: Letta keeps no history (run with --snapshots session to see it)",
        "supersession, which Letta does not model",
        "the agent's messages, which it may also search",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "base_url": Option(_CLOUD, "the address of the server", env="LETTA_BASE_URL"),
        "api_key": Option("", "an API key; a server of one's own may want none", env="LETTA_API_KEY", secret=True),
        "mode": Option("agent", "who writes the memory", choices=("agent", "archival")),
        "model": Option("", "the agent's model, as provider/name; empty leaves it to the server", env="LETTA_MODEL"),
        "embedding": Option("", "the embedder, as provider/name", env="LETTA_EMBEDDING"),
        "timeout_s": Option(60.0, "how long one request may take, in seconds", least=0.1),
        "run_timeout_s": Option(150.0, "how long the agent may work at one session, in seconds", least=0.1),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        package = load_package(self.name, "letta_client", "letta-client", ("1",))
        url = self.options["base_url"]
        key = self.options["api_key"]
        if url == _CLOUD:
            key = need(self.name, self.OPTIONS, self.options, "api_key")
        self._client: Any = package.Letta(
            api_key=key or None, base_url=url, timeout=self.options["timeout_s"], max_retries=0
        )
        self.calls = Calls(self.name, key="LETTA_API_KEY", where=url)
        self._agents: dict[str, _Agent] = {}

    def describe(self) -> Mapping[str, Any]:
        """Who writes the memory, and with which models; a wrong key or address fails here, before any ingest."""
        self._find(UNUSED)
        return {name: self.options[name] for name in ("mode", "model", "embedding") if self.options[name]}

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        agent = self._find(session.entity_id) or self._create(session.entity_id)
        if self.options["mode"] == "archival":
            self._file(agent, session)
        elif session.turns:
            self._show(agent, session)
        self.calls.end()

    def _create(self, entity_id: str) -> _Agent:
        models = {name: self.options[name] for name in ("model", "embedding") if self.options[name]}
        blocks = [{"label": _PERSONA, "value": _TASK}, {"label": "human", "value": ""}]
        made = self.calls.write(
            "create agent",
            lambda: _read(self._client.agents.create(name=entity_id, memory_blocks=blocks, tags=["memx"], **models)),
            "refused",
        )
        self._agents[entity_id] = _Agent(made.id)
        return self._agents[entity_id]

    def _file(self, agent: _Agent, session: Session) -> None:
        for turn in session.turns:
            at = said_at(session, turn)
            tags = [f"{_TURN}{turn.turn_id}", f"session:{session.session_id}"]
            tags += [f"speaker:{turn.speaker}"] if turn.speaker else []
            given: dict[str, Any] = {"text": said(turn), "tags": tags}
            if at is not None:
                given["created_at"] = with_zone(at)
            # A passage filed twice would stay twice, so only a call that did nothing is made again.
            self.calls.write(
                "file passage",
                lambda given=given: _read(self._client.agents.passages.create(agent.agent_id, **given)),  # type: ignore[misc]
                "refused",
            )
            self.calls.stored()

    def _show(self, agent: _Agent, session: Session) -> None:
        lines = []
        for turn in session.turns:
            at = said_at(session, turn)
            lines.append(f"[{at.isoformat(sep=' ', timespec='minutes')}] {said(turn)}" if at else said(turn))
        shown = "\n".join([f"Conversation {session.session_id}:", *lines])
        messages = [{"role": "user", "content": shown}]
        run = self.calls.write(
            "show session",
            lambda: _read(self._client.agents.messages.create_async(agent.agent_id, messages=messages)),
            "refused",
        )

        def outstanding() -> str:
            told = self.calls.read("look at run", lambda: _read(self._client.runs.retrieve(run.id)))
            if told.status in ("failed", "cancelled"):
                why = told.stop_reason or "no reason given"
                where = f"session {session.session_id}; stored so far: {self.calls.so_far()}"
                raise AdapterError(f"letta: the agent's run {told.status}: {why}, at {where}", "Look at its log.")
            return "" if told.status == "completed" else f"the agent is still at session {session.session_id}"

        wait_until(self.name, outstanding, self.options["run_timeout_s"], every_s=0.2)
        self.calls.stored(len(session.turns))
        self._credit(agent, session)

    def _credit(self, agent: _Agent, session: Session) -> None:
        """What is new or rewritten since the last look came from this session."""
        turn_ids = tuple(turn.turn_id for turn in session.turns)
        for fact in [*self._blocks(agent), *self._passages(agent)]:
            if agent.texts.get(fact.fact_id) != fact.content:
                before = agent.turns.get(fact.fact_id, ())
                agent.turns[fact.fact_id] = tuple(dict.fromkeys((*before, *turn_ids)))
                agent.texts[fact.fact_id] = fact.content

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        agent = self._find(entity_id)
        if agent is None:
            return QueryResult(())
        # Blocks are in the agent's context at every question, so they come before anything that is searched for.
        always = [
            Retrieved(f.fact_id, f.content, metadata={**f.metadata, "source_turn_ids": list(f.source_turn_ids)})
            for f in self._blocks(agent)
        ]
        left = top_k - len(always)
        found = []
        if left > 0:
            result = self.calls.read(
                "search", lambda: _read(self._client.agents.passages.search(agent.agent_id, query=query, top_k=left))
            )
            found = [_retrieved(agent, row) for row in result.results[:left]]
        return QueryResult(tuple([*always, *found][:top_k]), declared={"blocks": len(always)})

    def export_state(self, entity_id: str) -> Snapshot:
        agent = self._find(entity_id)
        if agent is None:
            return Snapshot(entity_id, ())
        return Snapshot(entity_id, (*self._blocks(agent), *self._passages(agent)))

    def _blocks(self, agent: _Agent) -> list[Fact]:
        return [
            Fact(
                row.id,
                row.value,
                source_turn_ids=agent.turns.get(row.id, ()),
                metadata={"kind": "block", "label": row.label or ""},
            )
            for row in self._listed("blocks", self._client.agents.blocks.with_raw_response.list, agent.agent_id)
            if row.label != _PERSONA and row.value.strip()
        ]

    def _passages(self, agent: _Agent) -> list[Fact]:
        listing = self._client.agents.passages.with_raw_response.list
        return [
            Fact(
                row.id,
                row.text,
                FactStatus.DELETED if row.is_deleted else FactStatus.ACTIVE,
                source_turn_ids=_tagged(row) or agent.turns.get(row.id, ()),
                created_at=row.created_at,
                metadata={"kind": "passage", "tags": list(row.tags or ())},
            )
            for row in self._listed("passages", listing, agent.agent_id, ascending=True)
        ]

    def _listed(self, what: str, listing: Any, *where: str, **given: Any) -> list[Any]:
        """All rows of a listing. The client's own paging would never end where a server repeats itself."""

        def page(after: str | None) -> Page[Any]:
            cursor = {} if after is None else {"after": after}
            found = self.calls.read(f"list {what}", lambda: _parsed(listing(*where, limit=_PAGE, **cursor, **given)))
            rows = getattr(found, "items", found) or []
            return Page(rows, rows[-1].id if len(rows) >= _PAGE else None)

        return list(pages(self.name, what, page, key=lambda row: row.id))

    def _find(self, entity_id: str) -> _Agent | None:
        """The agent of an entity, of this process or an earlier one; None where there is none."""
        if entity_id not in self._agents:
            rows = self.calls.read(
                "look up agent",
                lambda: _parsed(self._client.agents.with_raw_response.list(name=entity_id, limit=1)).items,
            )
            if not rows:
                return None
            self._agents[entity_id] = _Agent(rows[0].id)
        return self._agents[entity_id]

    def reset(self, entity_id: str) -> None:
        """Delete the agent and the archives that Letta made for it."""
        agent = self._find(entity_id)
        if agent is None:
            return
        archives = self._listed("archives", self._client.archives.with_raw_response.list, agent_id=agent.agent_id)
        self.calls.write("delete agent", lambda: self._client.agents.delete(agent.agent_id), "refused")
        for archive in archives:
            self.calls.write(
                "delete archive",
                lambda archive=archive: self._client.archives.delete(archive.id),  # type: ignore[misc]
                "refused",
            )
        del self._agents[entity_id]


def _read(reply: Any) -> Any:
    """The reply, unless it is a text: the client hands a web page on as it stands."""
    if isinstance(reply, str):
        raise ValueError(reply)
    return reply


def _parsed(raw: Any) -> Any:
    """The rows of a raw reply, unless it is a web page, over which the client would stumble."""
    if is_web_page(raw.http_response.text):
        raise ValueError(raw.http_response.text)
    return raw.parse()


def _tagged(row: Any) -> tuple[str, ...]:
    return tuple(tag.removeprefix(_TURN) for tag in row.tags or () if tag.startswith(_TURN))


def _retrieved(agent: _Agent, row: Any) -> Retrieved:
    turns = _tagged(row) or agent.turns.get(row.id, ())
    metadata = {"kind": "passage", "tags": list(row.tags or ()), "at": row.timestamp, "source_turn_ids": list(turns)}
    return Retrieved(row.id, row.content, metadata=metadata)
