"""New verdicts and diagnoses on stored candidates: nothing is ingested or queried again.

The outcome is a run of its own that shares the old one's facts, so both can be compared.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from memx.adapters.datasets.errata import errata_for
from memx.diagnose.contract import AsksModel, Embed, History
from memx.engine.events import Listener, QuestionFinished, RunStarted
from memx.engine.examiner import Examiner
from memx.engine.judges.contract import Judge
from memx.engine.last_run import write_last_run
from memx.engine.lazy_embedder import lazy_embedder
from memx.engine.runner import judge_stats, new_run_id
from memx.engine.settings import RunSettings
from memx.engine.side_by_side import side_by_side
from memx.engine.store.reader import RunRow, Store
from memx.engine.store.writer import RunWriter
from memx.engine.summary import Summary, summarize
from memx.errors import Interrupted
from memx.model import Case, Outcome, Snapshot, Trace


@dataclass(frozen=True, slots=True)
class Change:
    """A question whose verdict is another one now."""

    question_id: str
    before: Outcome
    after: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class Rejudged:
    """The new run, and what changed against the old one."""

    run_id: str
    state: str
    summary: Summary
    changes: tuple[Change, ...]


def rejudge(
    directory: Path,
    run_id: str,
    judge: Judge,
    settings: RunSettings,
    *,
    concurrency: int = 4,
    listener: Listener = lambda event: None,
    stop: threading.Event | None = None,
    llm_counts: Any = None,
    model_rung: AsksModel | None = None,
) -> Rejudged:
    """Judge the stored candidates of a run again.

    Args:
        settings: of the old run, with the new judge's settings in place.
        stop: set it to end early; what is judged by then is kept, and the rest left as it was.

    Raises:
        MemxError: the judge cannot be used (said before anything is written), or the store cannot be.
    """
    judge.preflight()
    stop = stop or threading.Event()
    store = Store(directory)
    old = store.run(run_id)
    writer = RunWriter(directory, new_run_id())
    manifest = {**old.manifest, "rejudged_from": old.run_id}
    manifest["judge"] = {"name": judge.name, "decider": str(judge.decider), "prompt_sha256": judge.prompt_sha256}
    writer.copy_run(old.run_id, judge=judge.name, settings=settings.as_dict(), manifest=manifest)
    listener(RunStarted(writer.run_id, old.done, 0))
    changes: list[Change] = []
    state = "finished"
    embed = lazy_embedder(directory / "cache")
    try:
        position = 0
        for traces in _by_case(store, old.run_id):
            examiner = _examiner(store, old, traces, judge, embed, model_rung)
            again = partial(_again, examiner, stop)
            for trace, judged in zip(traces, side_by_side(again, traces, concurrency, stop), strict=True):
                writer.write_trace(judged, position)
                position += 1
                listener(QuestionFinished(judged))
                if judged.verdict.outcome is not trace.verdict.outcome:
                    before, after = trace.verdict.outcome, judged.verdict.outcome
                    changes.append(Change(trace.question.question_id, before, after, judged.verdict.why))
            if stop.is_set():
                state = "interrupted"
    except KeyboardInterrupt:
        stop.set()
        state = "interrupted"
    summary = summarize(store, writer.run_id, llm_counts() if llm_counts else None, judge_stats(judge))
    writer.end(state, summary.as_dict())
    write_last_run(store, writer.run_id)
    writer.close()
    store.close()
    return Rejudged(writer.run_id, state, summary, tuple(changes))


def _examiner(
    store: Store, run: RunRow, traces: Sequence[Trace], judge: Judge, embed: Embed, model: AsksModel | None
) -> Examiner:
    """The examiner of one case, from what the store kept of it."""
    first = traces[0]
    sessions = tuple(store.sessions(run.run_id, first.case_id))
    case = Case(first.case_id, first.case_id, sessions, tuple(trace.question for trace in traces))
    return Examiner(
        stored_history(store, run.run_id, case, first.attempt),
        judge,
        embed=embed,
        errata=errata_for(run.dataset, run.dataset_version),
        context_budget=run.settings.get("context_budget"),
        model=model,
    )


def _again(examiner: Examiner, stop: threading.Event, trace: Trace) -> Trace:
    """The trace with a new verdict and diagnosis; as it was where it has no candidate or the run was stopped."""
    if trace.candidate is None or stop.is_set():
        return trace
    timings = dict(trace.timings_ms)
    for step in ("judge", "diagnose"):
        timings.pop(step, None)
    try:
        return replace(examiner.examine(trace, timings), timings_ms=timings)
    except Interrupted:
        return trace


def stored_history(store: Store, run_id: str, case: Case, attempt: int) -> History:
    """What the store kept of a case's snapshots: before, after, and per session where they were taken."""
    steps = store.snapshot_steps(run_id, case.case_id, attempt)
    empty = Snapshot(case.case_id, (), "before")
    if not steps:
        return History(case, empty, empty)
    snapshots = [store.snapshot(run_id, case.case_id, attempt, step.step) for step in steps]
    per_session = [(step.session_id, shot) for step, shot in zip(steps, snapshots, strict=True) if step.session_id]
    by_session = tuple(per_session) if len(per_session) > 1 else ()
    return History(case, snapshots[0], snapshots[-1], by_session)


def _by_case(store: Store, run_id: str) -> Iterator[list[Trace]]:
    """The traces of a run, one list per case and attempt."""
    group: list[Trace] = []
    for trace in store.traces(run_id):
        if group and (group[0].case_id, group[0].attempt) != (trace.case_id, trace.attempt):
            yield group
            group = []
        group.append(trace)
    if group:
        yield group
