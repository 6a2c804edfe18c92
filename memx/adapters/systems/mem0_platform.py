"""mem0's hosted platform through its own client: adding is queued, and what a newer fact replaced stays listed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from memx.adapters.calls import Calls
from memx.adapters.failures import Kind, read_failure
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import replaced, with_zone
from memx.adapters.refusals import Refusals
from memx.adapters.systems.mem0_rows import Addition, additions, fact_of, mem0_package, retrieved_of
from memx.errors import AdapterError, UsageError
from memx.model import FactStatus, QueryResult, Session, Snapshot

#: The platform's own limits.
_MOST_RESULTS, _MOST_ROWS = 1000, 200
_LOOKED_AT = 10
_DONE, _FAILED = "SUCCEEDED", "FAILED"


class Mem0Platform:
    """The platform.

    ``add`` answers with an event that is worked off later; :meth:`wait_until_ready` polls every event. Memories that
    newer ones replaced or that were merged are listed with ``include_merged``; those that ``latest_only`` leaves out
    are the retired ones.
    """

    def __init__(self, options: Mapping[str, Any], note: Callable[[str], None]) -> None:
        self._options = options
        self._note = note
        self._refusals = Refusals(note)
        self._package = mem0_package()
        self.calls = Calls("mem0", key="MEM0_API_KEY", where=options["host"])
        self._opened: Any = None
        #: Events that are not known to be worked off: what each adds, by id.
        self._pending: dict[str, str] = {}

    def describe(self) -> Mapping[str, Any]:
        """The client's version and the platform's address; a wrong key shows here, before anything is ingested."""
        self._client()
        return {"mode": "platform", "version": self._package.__version__, "host": self._options["host"]}

    def ingest_session(self, session: Session) -> None:
        client = self._client()
        self.calls.begin(session)
        for addition in additions(session, self._options["unit"]):
            add = partial(self._add, client, addition, session.entity_id)
            with self._refusals.noted():
                self.calls.write(addition.what, add, repeat="refused")
            self.calls.stored(len(addition.turn_ids))
        self.calls.end()

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        wait_until("mem0", self._outstanding, timeout_s)

    def query(self, query: str, entity_id: str, top_k: int, asked_at: datetime | None) -> QueryResult:
        named: dict[str, Any] = {"filters": {"user_id": entity_id}, "threshold": self._options["threshold"]}
        if self._options["latest_only"]:
            named["latest_only"] = True
        if asked_at is not None:
            named["reference_date"] = asked_at.date().isoformat()
        search = partial(self._client().search, query, top_k=min(top_k, _MOST_RESULTS), **named)
        rows = self._list_in("search", self.calls.read("search", search), "results")
        return QueryResult(tuple(retrieved_of(row) for row in rows[:top_k]))

    def export_state(self, entity_id: str) -> Snapshot:
        rows = self._rows(entity_id, include_merged=True)
        current = {str(row["id"]) for row in self._rows(entity_id, latest_only=True)} if rows else set[str]()
        facts = [fact_of(row) for row in rows]
        links = {str(row["id"]): str(row["replaced_by"]) for row in rows if row.get("replaced_by")}
        there = {fact.fact_id for fact in facts}
        links = {old: new for old, new in links.items() if new in there}
        # What is retired and names no successor in this store was merged into another, or replaced by one that is gone.
        replaced_by = {fact.fact_id: "" for fact in facts if fact.fact_id not in current} | links
        marked = replaced(facts, replaced_by)
        unlinked = sum(1 for f in marked if f.status is not FactStatus.ACTIVE and f.fact_id not in links)
        if unlinked:
            self._note(f"{unlinked} retired memories name no memory that took their place")
        return Snapshot(entity_id, tuple(marked))

    def reset(self, entity_id: str) -> None:
        if not entity_id:  # without one, the client would delete every user of the project
            raise UsageError("mem0: reset needs an entity")
        for step in (self._client().delete_all, self._client().delete_users):
            try:
                self.calls.write("delete the user", partial(step, user_id=entity_id), repeat="always")
            except AdapterError as error:
                if error.__cause__ is None or read_failure(error.__cause__).kind is not Kind.NOT_FOUND:
                    raise
        self._pending.clear()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.client.close()
            self._opened = None

    # -------------------------------------------------------------------------------------------------------- requests

    def _client(self) -> Any:
        if self._opened is None:
            self._opened = self.calls.read("sign in", self._sign_in)
        return self._opened

    def _sign_in(self) -> Any:
        httpx = importlib.import_module("httpx")
        http = httpx.Client(timeout=self._options["timeout"])
        return self._package.MemoryClient(api_key=self._options["api_key"], host=self._options["host"], client=http)

    def _add(self, client: Any, addition: Addition, entity_id: str) -> None:
        named: dict[str, Any] = {"user_id": entity_id, "metadata": addition.metadata}
        if addition.at is not None:
            named["timestamp"] = int(with_zone(addition.at).timestamp())
        if not self._options["infer"]:
            named["infer"] = False
        answered = client.add(addition.messages, **named)
        if isinstance(answered, dict) and answered.get("event_id"):
            self._pending[str(answered["event_id"])] = addition.what
        elif not isinstance(answered, dict) or not isinstance(answered.get("results"), list):
            raise AdapterError(f"mem0: {addition.what}: the platform answered neither an event nor results")

    def _outstanding(self) -> str:
        """How many additions wait, in words; some of the oldest are looked at, as they are worked off in turn."""
        total, waiting, states = len(self._pending), 0, set[str]()
        for event_id, what in list(self._pending.items()):
            event = self.calls.read("look at an event", partial(self._event, event_id))
            status = str(event.get("status", "")).upper()
            if status == _FAILED:
                said = event.get("error") or event.get("message") or "it gives no reason"
                hint = "What it held is not in the store. Look at the event on mem0's dashboard, and run again."
                raise AdapterError(f"mem0: {what} failed on the platform: {said}", hint)
            if status == _DONE:
                del self._pending[event_id]
                continue
            states.add(status.lower() or "of unknown state")
            waiting += 1
            if waiting == _LOOKED_AT:
                break
        return f"{len(self._pending)} of {total} additions are {' or '.join(sorted(states))}" if states else ""

    def _event(self, event_id: str) -> Mapping[str, Any]:
        answered = self._client().client.get(f"/v1/event/{event_id}/")
        answered.raise_for_status()
        event = answered.json()
        if not isinstance(event, dict):
            raise AdapterError("mem0: look at an event: the platform's answer is no object")
        return event

    def _rows(self, entity_id: str, **flags: bool) -> list[Mapping[str, Any]]:
        size = min(self._options["page_size"], _MOST_ROWS)
        named = {"filters": {"user_id": entity_id}, "page_size": size, "show_expired": True, **flags}

        def fetch(page: int) -> Page[Mapping[str, Any]]:
            listing = self.calls.read("list memories", partial(self._client().get_all, page=page, **named))
            rows = self._list_in("list memories", listing, "results")
            count = listing.get("count")
            return Page(rows, page + 1 if listing.get("next") else None, count if isinstance(count, int) else None)

        return list(pages("mem0", "memories", fetch, key=lambda row: str(row["id"]), first=1))

    def _list_in(self, step: str, answered: Any, name: str) -> list[Mapping[str, Any]]:
        rows = answered.get(name) if isinstance(answered, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "id" in row for row in rows):
            raise AdapterError(f"mem0: {step}: the platform's answer has no list of '{name}' with ids")
        return rows
