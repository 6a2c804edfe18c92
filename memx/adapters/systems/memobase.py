"""``memobase``: Memobase keeps a profile of slots about a user, and a log of events."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, need, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import wait_until
from memx.adapters.provenance import UNUSED, said_at
from memx.errors import AdapterError
from memx.model import Fact, QueryResult, Retrieved, Session, Snapshot

_ALL_TOKENS = 10_000_000
_ROLES = ("user", "assistant")


@dataclass
class _User:
    """What this process knows of a user: which turns each row was written from, and what it said last."""

    blobs: int = 0
    failed: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    turns: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Memobase(MemoryAdapter):
    """Memobase: one user per case, one chat blob per session, flushed at the session's end.

    Facts are the slots of the profile, which Memobase rewrites in place, and the events, which log each change. A query
    brings the profile, which is in every context anyway, for at most half of k, and fills up with the events that a
    search finds.
    """

    name = "memobase"
    version = "0.0"
    keeps_data = True
    exports = (
        "every slot of the profile, with its earlier wordings as far as the events hold them (metadata.history)",
        "the events, as many as --adapter-option most_events",
        "source turns: those of the session in which a slot or event was written",
    )
    cannot_see = (
        "which turn of a session a slot came from: Memobase keeps no source",
        "supersession, which Memobase does not model: a slot is rewritten in place",
        "slots beyond what one call returns: the profile has no paging",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "api_key": Option("", "the token of a Memobase project", env="MEMOBASE_API_KEY", secret=True),
        "project_url": Option("https://api.memobase.dev", "the address of the server", env="MEMOBASE_PROJECT_URL"),
        "timeout_s": Option(60.0, "how long one request may take, in seconds", least=0.1),
        "flush_timeout_s": Option(150.0, "how long Memobase may work at one session, in seconds", least=0.1),
        "most_events": Option(10_000, "events have no paging; so many are asked for at once", least=1),
        "similarity": Option(0.0, "events below this similarity are left out", least=0.0),
        "days": Option(36_500, "events older than so many days are left out", least=1),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        package = load_package(self.name, "memobase", "memobase", ("0.0",))
        key = need(self.name, self.OPTIONS, self.options, "api_key")
        url = self.options["project_url"]
        self._client: Any = package.MemoBaseClient(project_url=url, api_key=key)
        self._client.client.timeout = self.options["timeout_s"]
        self._package = package
        self.calls = Calls(self.name, key="MEMOBASE_API_KEY", where=url)
        self._users: dict[str, _User] = {}

    def describe(self) -> Mapping[str, Any]:
        """Nothing that is not among the options; a wrong key or address fails here, before any ingest."""
        self._find(UNUSED)
        return {}

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        entity_id = session.entity_id
        if self._find(entity_id) is None:
            # The id is ours, so that a user who was made by a call without an answer is found again.
            self.calls.write(
                "add user", lambda: self._client.add_user({"memx": entity_id}, _user_id(entity_id)), "refused"
            )
            self._users[entity_id] = _User()
        if session.turns:
            blob = self._package.ChatBlob(messages=_messages(session), fields={"session_id": session.session_id})
            self.calls.write("insert chat", lambda: self._user(entity_id).insert(blob), "refused")
            self._users[entity_id].blobs += 1
            self.calls.stored(len(session.turns))
            self._flush(session)
            self._credit(session)
        self.calls.end()

    def _flush(self, session: Session) -> None:
        """Have Memobase work the session off, and wait for it."""
        user = self._user(session.entity_id)
        self.calls.write("flush", lambda: user.flush(), "always")

        def outstanding() -> str:
            states = {state: self._buffer(session.entity_id, state) for state in ("idle", "processing", "failed")}
            failed = states["failed"] - self._users[session.entity_id].failed
            if failed:
                self._users[session.entity_id].failed |= failed
                raise AdapterError(
                    f"memobase: it could not process session {session.session_id} ({len(failed)} blobs failed)",
                    "Look at the server's log: most often its model refused.",
                )
            left = len(states["idle"] | states["processing"])
            return f"{left} blobs of session {session.session_id} are being processed" if left else ""

        wait_until(self.name, outstanding, self.options["flush_timeout_s"], every_s=0.2)

    def _buffer(self, entity_id: str, state: str) -> set[str]:
        user = self._user(entity_id)
        return {str(i) for i in self.calls.read("look at buffer", lambda: user.buffer("chat", status=state))}

    def _credit(self, session: Session) -> None:
        """What is new or rewritten since the last look came from this session."""
        user, turn_ids = self._users[session.entity_id], tuple(turn.turn_id for turn in session.turns)
        for row_id, text in self._texts(session.entity_id).items():
            if user.texts.get(row_id) != text:
                user.turns[row_id] = tuple(dict.fromkeys((*user.turns.get(row_id, ()), *turn_ids)))
                user.texts[row_id] = text

    def _texts(self, entity_id: str) -> dict[str, str]:
        slots = {str(slot.id): _slot_text(slot) for slot in self._slots(entity_id)}
        return slots | {str(event.id): _event_text(event) for event in self._events(entity_id)}

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        known = self._find(entity_id)
        if known is None:
            return QueryResult(())
        user, options = self._user(entity_id), self.options
        slots = self._slots(entity_id)
        # The client puts the query into the address as it stands, so "&" or "#" in it would cut it off.
        events = self.calls.read(
            "search",
            lambda: user.search_event(
                quote(query),
                topk=top_k,
                similarity_threshold=options["similarity"],
                time_range_in_days=options["days"],
            ),
        )
        share = max(top_k // 2, top_k - len(events))
        always = [
            Retrieved(str(slot.id), _slot_text(slot), metadata=_sourced(known, str(slot.id), "profile"))
            for slot in slots[:share]
        ]
        found = [
            Retrieved(
                str(event.id),
                _event_text(event),
                event.similarity,
                {} if event.similarity is None else {"similarity": event.similarity},
                _sourced(known, str(event.id), "event"),
            )
            for event in events[: top_k - len(always)]
        ]
        return QueryResult((*always, *found), declared={"profile_slots": len(slots)})

    def export_state(self, entity_id: str) -> Snapshot:
        known = self._find(entity_id)
        if known is None:
            return Snapshot(entity_id, ())
        events = self._events(entity_id)
        history = _history(events)
        facts = []
        for slot in self._slots(entity_id):
            metadata: dict[str, Any] = {"kind": "profile", "topic": slot.topic, "sub_topic": slot.sub_topic}
            if older := [old for old in history.get((slot.topic, slot.sub_topic), ()) if old != slot.content]:
                metadata["history"] = [{"content": old} for old in older]
            turns = known.turns.get(str(slot.id), ())
            facts.append(
                Fact(
                    str(slot.id),
                    _slot_text(slot),
                    source_turn_ids=turns,
                    created_at=slot.updated_at,
                    metadata=metadata,
                )
            )
        facts += [
            Fact(
                str(event.id),
                _event_text(event),
                source_turn_ids=known.turns.get(str(event.id), ()),
                created_at=event.created_at,
                metadata={"kind": "event"},
            )
            for event in events
        ]
        return Snapshot(entity_id, tuple(facts))

    def _slots(self, entity_id: str) -> list[Any]:
        user = self._user(entity_id)
        found: list[Any] = self.calls.read("read profile", lambda: user.profile(max_token_size=_ALL_TOKENS))
        return found

    def _events(self, entity_id: str) -> list[Any]:
        user, most = self._user(entity_id), self.options["most_events"]
        found: list[Any] = self.calls.read("read events", lambda: user.event(topk=most))
        if len(found) >= most:
            self.note(f"memobase has {most} events or more; raise --adapter-option most_events to see them all")
        return found

    def _user(self, entity_id: str) -> Any:
        return self._client.get_user(_user_id(entity_id), no_get=True)

    def _find(self, entity_id: str) -> _User | None:
        """The user of an entity, of this process or an earlier one; None where there is none."""
        if entity_id not in self._users:
            refusal = load_package(self.name, "memobase.error", "memobase").ServerError

            def look() -> bool:
                try:
                    self._client.get_user(_user_id(entity_id))
                except refusal as error:
                    if "not found" in str(error).lower():
                        return False
                    raise
                return True

            if not self.calls.read("look up user", look):
                return None
            self._users[entity_id] = _User()
        return self._users[entity_id]

    def reset(self, entity_id: str) -> None:
        """Delete the user with profile, events and blobs."""
        if self._find(entity_id) is None:
            return
        self.calls.write("delete user", lambda: self._client.delete_user(_user_id(entity_id)), "refused")
        del self._users[entity_id]


def _user_id(entity_id: str) -> str:
    """Memobase wants a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"memx:{entity_id}"))


def _messages(session: Session) -> list[dict[str, Any]]:
    messages = []
    for turn in session.turns:
        at = said_at(session, turn)
        message = {"role": turn.role if turn.role in _ROLES else "user", "content": turn.content}
        message |= {"alias": turn.speaker} if turn.speaker else {}
        message |= {"created_at": at.isoformat(sep=" ", timespec="seconds")} if at else {}
        messages.append(message)
    return messages


def _slot_text(slot: Any) -> str:
    return f"{slot.topic} / {slot.sub_topic}: {slot.content}"


def _deltas(event: Any) -> Sequence[Any]:
    return event.event_data.profile_delta if event.event_data is not None else ()


def _event_text(event: Any) -> str:
    tip = event.event_data.event_tip if event.event_data is not None else None
    return tip or "; ".join(delta.content for delta in _deltas(event))


def _history(events: Sequence[Any]) -> dict[tuple[str, str], list[str]]:
    """What was written into each slot, oldest first, as far as the events tell."""
    found: dict[tuple[str, str], list[str]] = {}
    for event in sorted(events, key=lambda event: event.created_at):
        for delta in _deltas(event):
            attributes = delta.attributes or {}
            where = (str(attributes.get("topic", "")), str(attributes.get("sub_topic", "")))
            found.setdefault(where, []).append(delta.content)
    return found


def _sourced(user: _User, row_id: str, kind: str) -> dict[str, Any]:
    return {"kind": kind, "source_turn_ids": list(user.turns.get(row_id, ()))}
