"""The run's side of a worker: it hands over a case, answers the worker's calls, and takes what it tells."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from memx.engine.answers.model import ModelAnswerer
from memx.engine.events import CaseFailed, QuestionFinished
from memx.engine.executors.wire import Answer, Call, Done, Kit, Stop, Told, packed, unpacked
from memx.engine.judges.offline import OfflineJudge
from memx.engine.workshop import Task, Workshop
from memx.model import Decider, Outcome, StepFailure, Trace, Verdict

#: How often a waiting run looks whether it was stopped, in seconds.
_LOOK_S = 0.1
#: How long a worker that is told to stop may take to say so, in seconds.
STOP_S = 1.0


_WAY_OUT = "What it printed may tell why; memx run --resume asks these questions again."


class WorkerLost(Exception):
    """The worker's process ended while a case was under way."""


def kit_of(shop: Workshop, dataset: tuple[str, str]) -> Kit:
    """What a worker of this workshop needs to build its own."""
    return Kit(
        settings=shop.settings,
        adapter_options=dict(shop.adapter_options),
        cache_dir=shop.cache_dir.absolute() if shop.cache_dir else None,
        dataset=dataset,
        judges=type(shop.judge) is OfflineJudge,
        answers=not isinstance(shop.answerer, ModelAnswerer),
        rung=shop.model_rung is not None,
        models_at=shop.models.endpoint.base_url if shop.models else "",
    )


class Service:
    """Serves one worker.

    Args:
        shop: the run's own workshop: its writer, judge, models and listener are used on the worker's behalf.
        connection: to the worker, which has its kit already.
    """

    def __init__(self, shop: Workshop, connection: Connection) -> None:
        self._shop = shop
        self._connection = connection
        self._sending = threading.Lock()
        self._case: dict[str, Any] = {}
        self._open: dict[int, Any] = {}

    def serve(self, task: Task) -> None:
        """Hand over a case and serve the worker until the case is done, or the run is stopped.

        A worker that ends meanwhile leaves ERROR traces for the questions it had not finished.

        Raises:
            StoreError: nothing can be written any more.
            WorkerLost: the worker is gone; the case is closed.
        """
        self._open = dict(task.questions)
        self._case = {"attempt": 1, "entity_id": task.case.entity_id}
        try:
            self._send(task)
            self._until_done()
        except (EOFError, OSError):
            if not self._shop.stop.is_set():
                self._give_up(task)
            raise WorkerLost from None

    def _until_done(self) -> None:
        stopped_at: float | None = None
        while True:
            if self._shop.stop.is_set() and stopped_at is None:
                stopped_at = time.monotonic()
                self._send(Stop())
            if not self._connection.poll(_LOOK_S):
                if stopped_at is not None and time.monotonic() - stopped_at > STOP_S:
                    return
                continue
            message = self._connection.recv()
            if isinstance(message, Call):
                self._take(message)
            elif isinstance(message, Told):
                self._shop.listener(message.event)
            elif isinstance(message, Done):
                self._shop.left.extend(message.left)
                self._shop.gone.extend(message.gone)
                if message.error is not None:
                    raise unpacked(message.error)
                return

    def _take(self, call: Call) -> None:
        function = self._function(call)
        if call.target in ("writer", "namespace") or self._shop.pool is None:
            self._answer(call, function)
        else:
            # What asks a model takes long and waits for others at the gate.
            self._shop.pool.submit(self._answer, call, function)

    def _answer(self, call: Call, function: Callable[..., Any]) -> None:
        try:
            answer = Answer(call.number, function(*call.arguments, **call.options))
        except Exception as error:
            answer = Answer(call.number, error=packed(error))
        self._send(answer)

    def _function(self, call: Call) -> Callable[..., Any]:
        shop = self._shop
        if call.target == "namespace":
            return self._named
        if call.target == "writer":
            own: dict[str, Callable[..., Any]] = {"begin_case": self._begin_case, "write_trace": self._write_trace}
            if call.method in own:
                return own[call.method]
        kind, _, name = call.target.partition(":")
        targets: dict[str, Any] = {
            "writer": shop.writer, "judge": shop.judge, "answerer": shop.answerer, "rung": shop.model_rung,
        }  # fmt: skip
        target = getattr(shop.models, kind)(name) if name else targets[kind]
        function: Callable[..., Any] = getattr(target, call.method)
        return function

    def _named(self, case: Any, attempt: int) -> str:
        self._case["entity_id"] = self._shop.namespace(case, attempt)
        return str(self._case["entity_id"])

    def _begin_case(self, *arguments: Any) -> int:
        self._case["attempt"] = self._shop.writer.begin_case(*arguments)
        return int(self._case["attempt"])

    def _write_trace(self, trace: Trace, position: int) -> None:
        self._shop.writer.write_trace(trace, position)
        self._open.pop(position, None)
        self._shop.listener(QuestionFinished(trace))

    def _send(self, message: Any) -> None:
        with self._sending:
            self._connection.send(message)

    def _give_up(self, task: Task) -> None:
        """ERROR traces for what a lost worker had not finished, as for a memory system that broke."""
        broken = StepFailure("worker", "the process that worked on the case ended", "WorkerLost", _WAY_OUT)
        verdict = Verdict(Outcome.ERROR, Decider.MEMX, f"{broken.step} failed: {broken.message}")
        left = list(self._open.items())
        for position, question in left:
            trace = Trace(
                question, task.case.case_id, self._case["entity_id"], self._shop.settings.top_k, verdict,
                error=broken, attempt=self._case["attempt"],
            )  # fmt: skip
            self._write_trace(trace, position)
        self._shop.writer.end_case(task.case.case_id, "error", error=broken)
        self._shop.listener(CaseFailed(task.case.case_id, broken, len(left)))
