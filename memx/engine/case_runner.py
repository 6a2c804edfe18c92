"""One case from ingest to verdicts: sessions in order, snapshots, questions, each finished question stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memx.adapters.contract import MemoryAdapter
from memx.diagnose.contract import AsksModel, Embed, History
from memx.diagnose.diff import diff
from memx.engine.adapter_checks import checked_result, checked_snapshot
from memx.engine.adapter_thread import AdapterThread, StepError, Stopped
from memx.engine.events import CaseFailed, Listener, Notice, QuestionFinished, SessionIngested
from memx.engine.examiner import UNJUDGED, Examiner, failure, timed, unjudged
from memx.engine.judges.contract import Judge
from memx.engine.measures.retrieval import retrieval_metrics
from memx.engine.settings import DEEP_K, RunSettings
from memx.errors import Interrupted, MemxError, ModelError, QuotaError, StoreError
from memx.model import (
    Candidate,
    CandidateSource,
    Case,
    Decider,
    DiffCounts,
    Outcome,
    QueryResult,
    Question,
    Retrieved,
    Snapshot,
    StepFailure,
    Trace,
    Verdict,
)

if TYPE_CHECKING:
    from memx.engine.answers import Answerer
    from memx.engine.store.writer import RunWriter


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all cases of a run share.

    Attributes:
        namespace: the entity id that the adapter sees, from case id, the case's own entity id and attempt.
        errata: corrections of the dataset by question id.
        stop: set when the run is to end.
        pool: where answers and verdicts are asked of models side by side; None works them off in the case's thread.
    """

    settings: RunSettings
    adapter_class: type[MemoryAdapter]
    adapter_options: Mapping[str, Any]
    cache_dir: Path | None
    writer: RunWriter
    judge: Judge
    answerer: Answerer
    embed: Embed | None
    errata: Mapping[str, Any] | None
    model_rung: AsksModel | None
    namespace: Callable[[Case, int], str]
    listener: Listener
    stop: threading.Event
    pool: Executor | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A case and the questions of it that are to be asked, each with its place in the run."""

    case: Case
    position: int
    questions: Sequence[tuple[int, Question]]


@dataclass(frozen=True, slots=True)
class _Ingested:
    """What all questions of an ingested case share."""

    counts: DiffCounts
    session_of: Mapping[str, str]
    entity_id: str
    attempt: int
    examiner: Examiner


class CaseRunner:
    """Runs one case through its own adapter instance. Errors of the adapter become ERROR traces, never exceptions.

    Raises (from :meth:`run`):
        StoreError: nothing can be written any more; the run ends.
    """

    def __init__(self, shop: Workshop, task: Task) -> None:
        self._shop = shop
        self._task = task
        self._name = shop.adapter_class.name or shop.adapter_class.__name__
        self._thread = AdapterThread(self._name, shop.stop)
        self._timings: dict[str, float] = {}
        self._findings: list[str] = []
        self._open = dict(task.questions)

    def run(self) -> None:
        """Ingest the case and ask its questions; returns early when the run is stopped."""
        case = self._task.case
        attempt = self._shop.writer.begin_case(case, self._task.position, case.entity_id)
        entity_id = self._shop.namespace(case, attempt)
        self._shop.writer.set_entity(case.case_id, entity_id)
        adapter: MemoryAdapter | None = None
        try:
            adapter = self._call("start", self._make_adapter)
            ingested = self._ingest(adapter, entity_id, attempt)
            waiting = []
            for position, question in self._task.questions:
                if self._shop.stop.is_set():
                    return
                decide = partial(self._decide, ingested, position, *self._asked(adapter, ingested, question))
                if self._shop.pool is None:
                    decide()
                else:
                    waiting.append(self._shop.pool.submit(decide))
            for decided in waiting:
                decided.result()
            self._shop.writer.end_case(case.case_id, "done")
        except (Stopped, Interrupted):
            return
        except StepError as error:
            self._give_up(failure(error.step, error.error), entity_id, attempt)
        except StoreError:
            raise
        except Exception as error:  # a fault of ours in one case must not take the others along
            self._give_up(failure("memx", error), entity_id, attempt)
        finally:
            self._close(adapter)

    def _make_adapter(self) -> MemoryAdapter:
        adapter = self._shop.adapter_class(**self._shop.adapter_options)
        adapter.cache_dir = self._shop.cache_dir
        return adapter

    def _call(self, step: str, work: Callable[[], Any]) -> Any:
        return self._thread.call(step, self._shop.settings.ready_timeout, work)

    # ------------------------------------------------------------------------------------------------------- ingest

    def _ingest(self, adapter: MemoryAdapter, entity_id: str, attempt: int) -> _Ingested:
        case, settings = self._task.case, self._shop.settings
        empty = Snapshot(entity_id, (), "before")
        per_session: list[tuple[str, Snapshot]] = []
        if settings.skip_ingest:
            before = empty
            self._write_snapshot(attempt, 0, before, None, None)
        else:
            if adapter.shares_entity_ids or settings.entity_prefix:
                self._call("reset", lambda: adapter.reset(entity_id))
            before = self._snapshot(adapter, entity_id, "before")
            self._write_snapshot(attempt, 0, before, None, None)
            last = before
            for number, session in enumerate(case.sessions, start=1):
                handed = replace(session, entity_id=entity_id)
                with timed(self._timings, "ingest"):
                    self._call("ingest", partial(adapter.ingest_session, handed))
                self._shop.listener(SessionIngested(case.case_id, number, len(case.sessions)))
                if settings.snapshots == "session" and number < len(case.sessions):
                    self._wait_until_ready(adapter, entity_id)
                    now = self._snapshot(adapter, entity_id, f"after {session.session_id}")
                    self._write_snapshot(attempt, number, now, last, session.session_id)
                    per_session.append((session.session_id, now))
                    last = now
            self._wait_until_ready(adapter, entity_id)
        after = self._snapshot(adapter, entity_id, "after")
        step = max(1, len(case.sessions))
        per_session_wanted = settings.snapshots == "session" and not settings.skip_ingest
        last_session = case.sessions[-1].session_id if case.sessions and per_session_wanted else None
        self._write_snapshot(attempt, step, after, per_session[-1][1] if per_session else before, last_session)
        if last_session is not None:
            per_session.append((last_session, after))
        return self._ingested(before, after, tuple(per_session), entity_id, attempt)

    def _ingested(
        self,
        before: Snapshot,
        after: Snapshot,
        per_session: tuple[tuple[str, Snapshot], ...],
        entity_id: str,
        attempt: int,
    ) -> _Ingested:
        case, shop = self._task.case, self._shop
        counts = diff(before, after).counts
        turns = sum(len(session.turns) for session in case.sessions)
        if turns and not after.facts:
            self._findings.append(f"the store is empty after {len(case.sessions)} sessions with {turns} turns")
        for finding in dict.fromkeys(self._findings):
            shop.listener(Notice(f"{case.case_id}: {finding}"))
        shop.writer.end_case(
            case.case_id,
            "ready",
            facts=len(after.facts),
            diff=counts,
            timings=self._timings,
            findings=list(dict.fromkeys(self._findings)),
        )
        examiner = Examiner(
            History(case, before, after, per_session),
            shop.judge,
            embed=shop.embed,
            errata=shop.errata,
            context_budget=shop.settings.context_budget,
            model=shop.model_rung,
        )
        return _Ingested(counts, case.session_of(), entity_id, attempt, examiner)

    def _wait_until_ready(self, adapter: MemoryAdapter, entity_id: str) -> None:
        timeout = self._shop.settings.ready_timeout
        with timed(self._timings, "ready"):
            self._call("ready", lambda: adapter.wait_until_ready(entity_id, timeout))

    def _snapshot(self, adapter: MemoryAdapter, entity_id: str, label: str) -> Snapshot:
        with timed(self._timings, "snapshot"):
            exported = self._call("snapshot", lambda: adapter.export_state(entity_id))
        try:
            snapshot, findings = checked_snapshot(exported, self._name)
        except MemxError as error:
            raise StepError("snapshot", error) from error
        self._findings += findings
        return replace(snapshot, label=label)

    def _write_snapshot(
        self, attempt: int, step: int, snapshot: Snapshot, before: Snapshot | None, session_id: str | None
    ) -> None:
        self._shop.writer.write_snapshot(self._task.case.case_id, attempt, step, snapshot, before, session_id)

    # -------------------------------------------------------------------------------------------------------- questions

    def _asked(
        self, adapter: MemoryAdapter, case: _Ingested, question: Question
    ) -> tuple[Trace, str | None, dict[str, float]]:
        """The trace with what was retrieved, the adapter's own answer, and the timings so far."""
        timings: dict[str, float] = {}
        trace = self._blank(case, question)
        try:
            with timed(timings, "query"):
                result = self._query(adapter, case, question)
        except StepError as error:
            broken = failure(error.step, error.error)
            return replace(trace, verdict=_error_verdict(broken), error=broken), None, timings
        top_k = max(len(result.facts), 1) if adapter.ignores_top_k else self._shop.settings.top_k
        metrics = _metrics(case, question, result.facts)
        trace = replace(trace, retrieved=result.facts, top_k=top_k, declared=result.declared, metrics=metrics)
        return trace, result.answer, timings

    def _decide(
        self, case: _Ingested, position: int, trace: Trace, answer: str | None, timings: dict[str, float]
    ) -> None:
        """Candidate, verdict, diagnosis; then the question is finished. Runs in any thread."""
        if trace.error is None:
            trace = self._answered(trace, case, answer, timings)
        if trace.error is None:
            trace = case.examiner.examine(trace, timings)
        if trace.error is not None and trace.error.kind == QuotaError.__name__:
            self._shop.listener(Notice(trace.verdict.why))
        self._finish(replace(trace, timings_ms=timings), position)

    def _answered(self, trace: Trace, case: _Ingested, answer: str | None, timings: dict[str, float]) -> Trace:
        """The trace with its candidate; an answer model that fails leaves it UNJUDGED."""
        if answer is not None:
            return replace(trace, candidate=Candidate(answer, CandidateSource.ADAPTER))
        try:
            with timed(timings, "answer"):
                dates = case.examiner.dates(trace.top)
                return replace(trace, candidate=self._shop.answerer.answer(trace.question, trace.top, dates))
        except ModelError as error:
            return unjudged(trace, "answer", error)

    def _blank(self, case: _Ingested, question: Question) -> Trace:
        return Trace(
            question=question,
            case_id=self._task.case.case_id,
            entity_id=case.entity_id,
            top_k=self._shop.settings.top_k,
            verdict=UNJUDGED,
            diff=case.counts,
            attempt=case.attempt,
        )

    def _query(self, adapter: MemoryAdapter, case: _Ingested, question: Question) -> QueryResult:
        top_k = self._shop.settings.top_k
        depth = max(top_k, DEEP_K) if adapter.deep_query else top_k
        adapter.asked_at = question.asked_at
        if adapter.sees_gold:
            self._call("query", lambda: adapter.show_gold(question))
        answered = self._call("query", lambda: adapter.query(question.text, case.entity_id, depth))
        try:
            return checked_result(answered, self._name, None if adapter.ignores_top_k else depth)
        except MemxError as error:
            raise StepError("query", error) from error

    def _finish(self, trace: Trace, position: int) -> None:
        self._shop.writer.write_trace(trace, position)
        self._open.pop(position, None)
        self._shop.listener(QuestionFinished(trace))

    # ------------------------------------------------------------------------------------------------------------ ends

    def _give_up(self, broken: StepFailure, entity_id: str, attempt: int) -> None:
        """ERROR traces for every question of the case that has none yet."""
        case = self._task.case
        left = list(self._open.items())
        for position, question in left:
            trace = Trace(
                question=question,
                case_id=case.case_id,
                entity_id=entity_id,
                top_k=self._shop.settings.top_k,
                verdict=_error_verdict(broken),
                error=broken,
                attempt=attempt,
            )
            self._finish(trace, position)
        self._shop.writer.end_case(case.case_id, "error", error=broken, timings=self._timings, findings=self._findings)
        self._shop.listener(CaseFailed(case.case_id, broken, len(left)))

    def _close(self, adapter: MemoryAdapter | None) -> None:
        if adapter is not None and not self._shop.stop.is_set():
            try:
                self._call("close", adapter.close)
            except (StepError, Stopped) as error:
                self._shop.listener(Notice(f"{self._task.case.case_id}: closing {self._name} failed: {error}"))
        self._thread.end()


def _metrics(case: _Ingested, question: Question, retrieved: Sequence[Retrieved]) -> Any:
    if question.abstention:
        return None
    turns = [case.examiner.sources(item.fact_id) or item.metadata.get("source_turn_ids", ()) for item in retrieved]
    return retrieval_metrics(turns, question.evidence, case.session_of, question.evidence_sessions)


def _error_verdict(broken: StepFailure) -> Verdict:
    return Verdict(Outcome.ERROR, Decider.MEMX, f"{broken.step} failed: {broken.kind}: {broken.message}")
