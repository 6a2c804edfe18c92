"""Runs the workers of one query side by side and reports on each: a worker that fails or is late sinks nothing."""

from __future__ import annotations

import _thread
import queue
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from memx.errors import BudgetReached, Interrupted, QuotaError
from memx.memory.query import Query
from memx.memory.workers import Ranking, Worker

#: Failures that every later query would share: these are raised, since a whole run without vectors measures nothing.
LASTING = (Interrupted, QuotaError, BudgetReached)


@dataclass(frozen=True, slots=True)
class Sources:
    """What came back.

    Attributes:
        rankings: by worker name, in the order the workers were submitted.
        failed: worker name to the error's text.
        pending: workers that were not done at the deadline.
        timings_ms: by worker name.
        waited_ms: how long the query waited for the last that it took.
    """

    submitted: tuple[str, ...]
    rankings: dict[str, Ranking] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    timings_ms: dict[str, float] = field(default_factory=dict)
    waited_ms: float = 0.0

    @property
    def finish_reason(self) -> str:
        """``all_completed``, ``source_failed`` or ``deadline``."""
        if self.pending:
            return "deadline"
        return "source_failed" if self.failed else "all_completed"


def collect(workers: Sequence[Worker], query: Query, limit: int, timeout_s: float) -> Sources:
    """Run all workers and wait for each until ``timeout_s`` seconds have passed since the start.

    Raises:
        Interrupted, QuotaError, BudgetReached: a worker met one of them.
    """
    started = time.perf_counter()
    done: queue.SimpleQueue[tuple[str, Ranking | None, BaseException | None, float]] = queue.SimpleQueue()

    def run(worker: Worker) -> None:
        begun = time.perf_counter()
        ranking: Ranking | None = None
        error: BaseException | None = None
        try:
            ranking = worker.search(query, limit)
        except BaseException as failure:  # also what would end the thread without a word, such as SystemExit
            error = failure
        done.put((worker.name, ranking, error, (time.perf_counter() - begun) * 1000))

    if len(workers) == 1 and timeout_s == float("inf"):
        run(workers[0])
    else:
        for worker in workers:
            # As threading's daemons these cannot keep the process alive; but their start is not waited for, which
            # took longer than most searches.
            _thread.start_new_thread(run, (worker,))
    rankings: dict[str, Ranking] = {}
    failed: dict[str, str] = {}
    timings: dict[str, float] = {}
    open_workers = {worker.name for worker in workers}
    while open_workers:
        left = max(0.0, timeout_s - (time.perf_counter() - started))
        try:
            name, ranking, error, elapsed = done.get(timeout=None if left == float("inf") else left)
        except queue.Empty:
            break
        open_workers.discard(name)
        timings[name] = round(elapsed, 3)
        if isinstance(error, LASTING):
            raise error
        if ranking is None:
            failed[name] = f"{type(error).__name__}: {error}"
        else:
            rankings[name] = ranking
    names = tuple(worker.name for worker in workers)
    return Sources(
        submitted=names,
        rankings={name: rankings[name] for name in names if name in rankings},
        failed=failed,
        pending=tuple(name for name in names if name in open_workers),
        timings_ms=timings,
        waited_ms=round((time.perf_counter() - started) * 1000, 3),
    )
