"""The memory system's side of one case: start, ingest, snapshots, searches, cleaning up. What it shows is checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from memx.adapters.contract import MemoryAdapter
from memx.adapters.returned import checked_result, checked_snapshot
from memx.engine.adapter_thread import AdapterThread, StepError, Stopped
from memx.engine.events import Notice, SessionIngested
from memx.engine.examiner import failure, timed
from memx.engine.findings import Findings
from memx.engine.redaction import redact_text
from memx.engine.settings import DEEP_K
from memx.engine.workshop import Task, Workshop
from memx.errors import AdapterError, MemxError
from memx.model import QueryResult, Question, Session, Snapshot, StepFailure

#: How long facts are waited for that should be in the store already, in seconds.
EMPTY_PATIENCE_S = 5.0
#: How long the adapter of a run that is being stopped may take to close, in seconds.
_LAST_S = 0.7


@dataclass(frozen=True, slots=True)
class Ingested:
    """The store before and after ingest, and after each session where that was asked for."""

    before: Snapshot
    after: Snapshot
    per_session: tuple[tuple[str, Snapshot], ...]


class MemorySide:
    """Drives the adapter of one case. Every method but the last two raises ``StepError`` when a step fails, and
    ``Stopped`` when the run is stopped meanwhile.

    Args:
        entity_id: the namespace that the adapter sees.
        attempt: which ingest of the case this is, from 1.
        earlier: the namespaces of the attempts before, which nothing reads any more.
    """

    def __init__(self, shop: Workshop, task: Task, entity_id: str, attempt: int, earlier: tuple[str, ...] = ()) -> None:
        self.name = shop.adapter_class.name or shop.adapter_class.__name__
        self.timings: dict[str, float] = {}
        self._shop = shop
        self._case = task.case
        self._entity_id = entity_id
        self._attempt = attempt
        self._earlier = earlier
        self._thread = AdapterThread(self.name, shop.stop)
        self._adapter: MemoryAdapter | None = None
        self._findings = Findings()
        self._told: list[str] = []
        #: The last snapshot and its step; whether anything was handed over, and how many sessions went in whole.
        self._last: tuple[int, Snapshot] | None = None
        self._began = False
        self._sessions_in = 0

    @property
    def adapter(self) -> MemoryAdapter:
        """The adapter's instance, made in its thread when it is asked for first."""
        if self._adapter is None:
            self._adapter = self._thread.call("start", self._shop.settings.ready_timeout, self._make)
        return self._adapter

    def ingest(self) -> Ingested:
        """Store the case, session by session, and take the snapshots."""
        case, settings, adapter = self._case, self._shop.settings, self.adapter
        if settings.skip_ingest:
            before = Snapshot(self._entity_id, (), "before")
            self._write_snapshot(0, before, None, None)
            after = self._store_after()
            self._write_snapshot(max(1, len(case.sessions)), after, before, None)
            return Ingested(before, after, ())
        if adapter.shares_entity_ids or settings.entity_prefix:
            self._call("reset", lambda: adapter.reset(self._entity_id))
        before = last = self._snapshot("before")
        self._write_snapshot(0, before, None, None)
        per_session: list[tuple[str, Snapshot]] = []
        by_session = settings.snapshots == "session"
        for number, session in enumerate(case.sessions, start=1):
            self._ingest_session(number, session)
            if by_session and number < len(case.sessions):
                self._wait_until_ready()
                now = self._snapshot(f"after {session.session_id}")
                self._write_snapshot(number, now, last, session.session_id)
                per_session.append((session.session_id, now))
                last = now
        self._wait_until_ready()
        after = self._store_after()
        last_id = case.sessions[-1].session_id if by_session and case.sessions else None
        self._write_snapshot(max(1, len(case.sessions)), after, last, last_id)
        if last_id is not None:
            per_session.append((last_id, after))
        return Ingested(before, after, tuple(per_session))

    def query(self, question: Question) -> QueryResult:
        """What a search for the question brings back, checked, as deep as the adapter may be asked."""
        found = self._query(question)
        self._findings.saw(found.facts)
        return found

    def tell_findings(self) -> list[str]:
        """All findings so far; those that were not told yet are told to the listener."""
        lines = self._findings.lines()
        for line in lines:
            if line not in self._told:
                self._shop.listener(Notice(f"{self._case.case_id}: {line}"))
        self._told = lines
        return lines

    def with_partial_store(self, broken: StepFailure) -> StepFailure:
        """The failure of an ingest with what is in the store all the same, counted and kept as a snapshot."""
        if broken.step not in ("ingest", "ready") or self._thread.stuck or self._last is None:
            return broken
        into = f"{self._sessions_in} of {len(self._case.sessions)} sessions went in whole"
        try:
            left = self._snapshot(f"after {broken.step} failed")
            step, before = self._last
            self._write_snapshot(step + 1, left, before, None)
        except (StepError, Stopped):
            return replace(broken, message=f"{broken.message} ({into}; what is stored cannot be read)")
        return replace(broken, message=f"{broken.message} ({into}; {len(left.facts)} facts are stored)")

    def end(self) -> None:
        """Clean up where that was asked for, tell what stays behind, and close the adapter."""
        adapter = self._adapter
        if adapter is not None:
            mine = (self._entity_id,) if self._began else ()
            for entity_id in (*self._earlier, *mine):
                if self._cleaned(adapter, entity_id):
                    self._shop.gone.append(entity_id)
                elif adapter.keeps_data:
                    self._shop.left.append(entity_id)
            if self._thread.stuck:
                self._shop.listener(Notice(f"{self._case.case_id}: {self.name} hangs and was left; it was not closed"))
            elif self._shop.stop.is_set():
                self._thread.try_last(adapter.close, _LAST_S)
            else:
                try:
                    self._call("close", adapter.close)
                except StepError as error:
                    said = failure(error.step, error.error).message
                    self._shop.listener(Notice(f"{self._case.case_id}: closing {self.name} failed: {said}"))
                except Stopped:
                    pass
        self._thread.end()

    # ------------------------------------------------------------------------------------------------------------ calls

    def _make(self) -> MemoryAdapter:
        adapter = self._shop.adapter_class(**self._shop.adapter_options)
        adapter.cache_dir, adapter.models = self._shop.cache_dir, self._shop.models
        return adapter

    def _call(self, step: str, work: Callable[[], Any]) -> Any:
        done = self._thread.call(step, self._shop.settings.ready_timeout, work)
        if self._adapter is not None:
            self._findings.add(*map(redact_text, self._adapter.take_notes()))
        return done

    def _ingest_session(self, number: int, session: Session) -> None:
        handed = replace(session, entity_id=self._entity_id)
        self._began = True
        with timed(self.timings, "ingest"):
            self._call("ingest", partial(self.adapter.ingest_session, handed))
        self._sessions_in = number
        self._shop.listener(SessionIngested(self._case.case_id, number, len(self._case.sessions)))

    def _wait_until_ready(self) -> None:
        timeout = self._shop.settings.ready_timeout
        with timed(self.timings, "ready"):
            self._call("ready", lambda: self.adapter.wait_until_ready(self._entity_id, timeout))

    def _query(self, question: Question) -> QueryResult:
        adapter, top_k = self.adapter, self._shop.settings.top_k
        depth = max(top_k, DEEP_K) if adapter.deep_query else top_k
        adapter.asked_at = question.asked_at
        if adapter.sees_gold:
            self._call("query", lambda: adapter.show_gold(question))
        answered = self._call("query", lambda: adapter.query(question.text, self._entity_id, depth))
        try:
            return checked_result(answered, self.name, None if adapter.ignores_top_k else depth)
        except MemxError as error:
            raise StepError("query", error) from error

    # -------------------------------------------------------------------------------------------------------- the store

    def _snapshot(self, label: str) -> Snapshot:
        with timed(self.timings, "snapshot"):
            exported = self._call("snapshot", lambda: self.adapter.export_state(self._entity_id))
        try:
            snapshot, findings = checked_snapshot(exported, self.name)
        except MemxError as error:
            raise StepError("snapshot", error) from error
        self._findings.add(*findings)
        return replace(snapshot, label=label)

    def _write_snapshot(self, step: int, snapshot: Snapshot, before: Snapshot | None, session_id: str | None) -> None:
        self._shop.writer.write_snapshot(self._case.case_id, self._attempt, step, snapshot, before, session_id)
        self._last = (step, snapshot)

    def _store_after(self) -> Snapshot:
        """The snapshot after ingest. One that is empty is looked at again, before anything is asked of it."""
        case, adapter = self._case, self.adapter
        turns = sum(len(session.turns) for session in case.sessions)
        after = self._snapshot("after")
        if not after.facts and turns:
            after = self._late_store() or after
        # A system may search what it cannot list; then its answers count, and diagnosis says what it can.
        if not after.facts and turns and adapter.retrieves and case.questions and self._query(case.questions[0]).facts:
            self._findings.add("export_state shows nothing, and searches find facts: what is stored cannot be seen")
        elif not after.facts and turns:
            raise StepError("store", self._nothing_stored(turns))
        self._findings.store_is(after, case)
        return after

    def _late_store(self) -> Snapshot | None:
        """What appears in an empty store within a short while; None when nothing does."""
        patience = min(EMPTY_PATIENCE_S, self._shop.settings.ready_timeout)
        started = time.monotonic()
        while time.monotonic() - started < patience and not self._shop.stop.wait(patience / 20):
            if self._snapshot("after").facts:
                waited = time.monotonic() - started
                self._wait_until_ready()
                self._findings.add(f"not ready when it said so: the first facts appeared {waited:.1f} s later")
                return self._snapshot("after")
        return None

    def _nothing_stored(self, turns: int) -> AdapterError:
        if self._shop.settings.skip_ingest:
            hint = "Is it the --entity-prefix of the run that ingested?"
            return AdapterError(f"nothing is stored under {self._entity_id}", hint)
        went_in = f"{len(self._case.sessions)} sessions with {turns} turns went in"
        hint = "Look at the system's log: its model may refuse, or answer nothing. memx adapters check tries it alone."
        return AdapterError(f"nothing is stored: {went_in}, and the store is empty", hint)

    def _cleaned(self, adapter: MemoryAdapter, entity_id: str) -> bool:
        """Delete what the case stored, where that was asked for; True when the store is empty then."""
        settings = self._shop.settings
        if not settings.cleanup or self._shop.stop.is_set() or self._thread.stuck:
            return False
        try:
            self._call("cleanup", lambda: adapter.reset(entity_id))
            return not self._call("cleanup", lambda: adapter.export_state(entity_id)).facts
        except StepError as error:
            said = failure(error.step, error.error).message
            self._shop.listener(Notice(f"{self._case.case_id}: cleanup failed: {said}"))
        except Stopped:
            pass
        return False
