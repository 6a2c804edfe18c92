"""One case from ingest to verdicts: sessions in order, snapshots, questions, each finished question stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from memx.diagnose.contract import History
from memx.diagnose.diff import diff
from memx.engine.adapter_thread import StepError, Stopped
from memx.engine.events import CaseFailed, Notice, QuestionFinished
from memx.engine.examiner import UNJUDGED, Examiner, failure, timed, unjudged
from memx.engine.measures.retrieval import retrieval_metrics
from memx.engine.memory_side import MemorySide
from memx.engine.workshop import Task, Workshop
from memx.errors import BudgetReached, ContextTooLongError, Interrupted, ModelError, QuotaError, StoreError
from memx.model import (
    Candidate,
    CandidateSource,
    Decider,
    DiffCounts,
    Outcome,
    Question,
    Retrieved,
    StepFailure,
    Trace,
    Verdict,
)

#: Failures of models that meet every question after the first in the same way; the user can mend them.
_TOLD = frozenset(kind.__name__ for kind in (QuotaError, BudgetReached, ContextTooLongError))


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
        self._open = dict(task.questions)

    def run(self) -> None:
        """Ingest the case and ask its questions; returns early when the run is stopped."""
        case = self._task.case
        attempt = self._shop.writer.begin_case(case, self._task.position, case.entity_id)
        entity_id = self._shop.namespace(case, attempt)
        self._shop.writer.set_entity(case.case_id, entity_id)
        earlier = {self._shop.namespace(case, number): None for number in range(1, attempt)}
        earlier.pop(entity_id, None)
        memory = MemorySide(self._shop, self._task, entity_id, attempt, tuple(earlier))
        try:
            ingested = self._ingest(memory, entity_id, attempt)
            waiting = []
            for position, question in self._task.questions:
                if self._shop.stop.is_set():
                    return
                decide = partial(self._decide, ingested, position, *self._asked(memory, ingested, question))
                if self._shop.pool is None:
                    decide()
                else:
                    waiting.append(self._shop.pool.submit(decide))
            for decided in waiting:
                decided.result()
            self._shop.writer.end_case(case.case_id, "done", findings=memory.tell_findings())
        except (Stopped, Interrupted):
            return
        except StepError as error:
            broken = memory.with_partial_store(failure(error.step, error.error))
            self._give_up(memory, broken, entity_id, attempt)
        except StoreError:
            raise
        except Exception as error:  # a fault of ours in one case must not take the others along
            self._give_up(memory, failure("memx", error), entity_id, attempt)
        finally:
            memory.end()

    def _ingest(self, memory: MemorySide, entity_id: str, attempt: int) -> _Ingested:
        case, shop = self._task.case, self._shop
        stored = memory.ingest()
        counts = diff(stored.before, stored.after).counts
        shop.writer.end_case(
            case.case_id,
            "ready",
            facts=len(stored.after.facts),
            diff=counts,
            timings=memory.timings,
            findings=memory.tell_findings(),
        )
        examiner = Examiner(
            History(case, stored.before, stored.after, stored.per_session),
            shop.judge,
            embed=shop.embed,
            errata=shop.errata,
            context_budget=shop.settings.context_budget,
            model=shop.model_rung,
        )
        return _Ingested(counts, case.session_of(), entity_id, attempt, examiner)

    # -------------------------------------------------------------------------------------------------------- questions

    def _asked(
        self, memory: MemorySide, case: _Ingested, question: Question
    ) -> tuple[Trace, str | None, dict[str, float]]:
        """The trace with what was retrieved, the adapter's own answer, and the timings so far."""
        timings: dict[str, float] = {}
        trace = self._blank(case, question)
        try:
            with timed(timings, "query"):
                result = memory.query(question)
        except StepError as error:
            broken = failure(error.step, error.error)
            return replace(trace, verdict=_error_verdict(broken), error=broken), None, timings
        top_k = max(len(result.facts), 1) if memory.adapter.ignores_top_k else self._shop.settings.top_k
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
        if trace.error is not None and trace.error.kind in _TOLD:
            error = trace.error
            text = f"{error.step} failed: {error.message}. {error.hint}".strip()
            self._shop.listener(Notice(text, once=f"{error.step} {error.kind}"))
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

    def _finish(self, trace: Trace, position: int) -> None:
        self._shop.writer.write_trace(trace, position)
        self._open.pop(position, None)
        self._shop.listener(QuestionFinished(trace))

    # ------------------------------------------------------------------------------------------------------------ ends

    def _give_up(self, memory: MemorySide, broken: StepFailure, entity_id: str, attempt: int) -> None:
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
        told = memory.tell_findings()
        self._shop.writer.end_case(case.case_id, "error", error=broken, timings=memory.timings, findings=told)
        self._shop.listener(CaseFailed(case.case_id, broken, len(left)))


def _metrics(case: _Ingested, question: Question, retrieved: Sequence[Retrieved]) -> Any:
    if question.abstention:
        return None
    turns = [case.examiner.sources(item.fact_id) or item.metadata.get("source_turn_ids", ()) for item in retrieved]
    return retrieval_metrics(turns, question.evidence, case.session_of, question.evidence_sessions)


def _error_verdict(broken: StepFailure) -> Verdict:
    said = broken.message if broken.message.startswith(broken.kind) else f"{broken.kind}: {broken.message}"
    return Verdict(Outcome.ERROR, Decider.MEMX, f"{broken.step} failed: {said}")
