"""A memory service driven by messages: what ``http`` and ``command`` have in common, whatever carries the messages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from memx.adapters.calls import Calls, Repeat
from memx.adapters.contract import MemoryAdapter
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.systems import messages
from memx.errors import AdapterError
from memx.model import Fact, QueryResult, Session, Snapshot


class ServiceMemory(MemoryAdapter):
    """Speaks the memory service contract; a subclass carries one message there and its reply back."""

    exports = (
        "whatever the service lists: ids, content, status, supersedes, source turns, times",
        "scores and signals of each search result, where the service gives them",
    )
    cannot_see = ("what the service does not list",)

    calls: Calls
    page_size: int
    _told: Mapping[str, Any] | None = None

    @abstractmethod
    def ask(self, method: str, params: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        """Send one message and return its reply; raises whatever the carrier raises.

        Args:
            method: ``system``, ``ingest``, ``ready``, ``query``, ``export`` or ``reset``.
            timeout_s: for the reply, in seconds; None takes the option's.
        """

    def describe(self) -> Mapping[str, Any]:
        """Name and version of the service and what it tells of itself."""
        told = self.system()
        known = {name: told[name] for name in ("name", "version") if told.get(name)}
        details = told.get("describe")
        return {**(details if isinstance(details, Mapping) else {}), **known, "protocol": messages.PROTOCOL}

    def system(self) -> Mapping[str, Any]:
        """What the service says of itself, asked once.

        Raises:
            AdapterError: it speaks another version of the contract, or none.
        """
        if self._told is None:
            told = self.calls.read("system", lambda: self.ask("system", {}))
            protocol = told.get("protocol")
            if protocol != messages.PROTOCOL:
                said = f"speaks '{protocol}'" if protocol else "does not say what contract it speaks"
                hint = f'memx speaks {messages.PROTOCOL}; its reply to "system" should say "protocol": that.'
                raise AdapterError(f"{self.name}: the service {said}", hint)
            # What a user says of their service counts for this instance alone.
            self.deep_query = bool(told.get("deep_query", True))
            self.keeps_data = bool(told.get("keeps_data", self.keeps_data))
            self._told = told
        return self._told

    def ingest_session(self, session: Session) -> None:
        repeat: Repeat = "always" if self.system().get("idempotent_ingest") is True else "refused"
        self.calls.begin(session)
        reply = self.calls.write("ingest", lambda: self.ask("ingest", messages.ingest(session)), repeat)
        self.calls.stored(len(session.turns))
        self.calls.end()
        notes = reply.get("notes")
        for note in notes if isinstance(notes, list) else ():
            self.note(str(note))

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        self.system()
        wait_until(self.name, lambda: self._outstanding(entity_id), timeout_s, every_s=0.05)

    def _outstanding(self, entity_id: str) -> str:
        reply = self.calls.read("ready", lambda: self.ask("ready", {"entity_id": entity_id}))
        if reply.get("ready") is True:
            return ""
        if reply.get("failed"):
            raise AdapterError(f"{self.name}: the service failed to process what it was given: {reply['failed']}")
        return str(reply.get("outstanding") or "the service does not say what is outstanding")

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        self.system()
        params = messages.query(query, entity_id, top_k, self.asked_at)
        return messages.read_result(self.calls.read("query", lambda: self.ask("query", params)), self.name)

    def export_state(self, entity_id: str) -> Snapshot:
        self.system()

        def fetch(cursor: Any) -> Page[Fact]:
            params = {"entity_id": entity_id, "cursor": cursor, "limit": self.page_size}
            return messages.read_facts(self.calls.read("export", lambda: self.ask("export", params)), self.name)

        return Snapshot(entity_id, tuple(pages(self.name, "facts", fetch, key=lambda fact: fact.fact_id)))

    def reset(self, entity_id: str) -> None:
        self.system()
        self.calls.write("reset", lambda: self.ask("reset", {"entity_id": entity_id}), "always")
