"""Calls that can be walked away from: a blocked request must not keep an interrupted run from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from queue import SimpleQueue
from typing import Any, TypeVar

from memx.errors import Interrupted
from memx.llm.gate import LOOK_EVERY_S

T = TypeVar("T")

#: After an interrupt a call under way may still finish within this time, so that what it costs is not wasted.
GRACE_S = 1.0


class Helpers:
    """Threads that make calls for their callers; they do not keep the process alive, and are used again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._free: list[_Helper] = []

    def call(self, work: Callable[[], T], stopped: Callable[[], bool]) -> T:
        """The result of ``work``, or its exception; waiting for it ends soon after ``stopped``.

        Raises:
            Interrupted: it was stopped, and the call did not end within the grace.
        """
        with self._guard:
            helper = self._free.pop() if self._free else _Helper()
        future = helper.start(work)
        left = GRACE_S
        while True:
            try:
                result = future.result(LOOK_EVERY_S)
            except FutureTimeout:
                # The work's own TimeoutError would be the same class.
                if not future.done():
                    left -= LOOK_EVERY_S if stopped() else 0.0
                    if left <= 0:
                        raise Interrupted("interrupted while a model was asked") from None
                    continue
                self._give_back(helper)
                raise
            except BaseException:
                if future.done():
                    self._give_back(helper)
                raise
            self._give_back(helper)
            return result

    def close(self) -> None:
        """End the threads that have nothing to do."""
        with self._guard:
            free, self._free = self._free, []
        for helper in free:
            helper.end()

    def _give_back(self, helper: _Helper) -> None:
        with self._guard:
            self._free.append(helper)


class _Helper:
    def __init__(self) -> None:
        self._inbox: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="memx-model-call", daemon=True).start()

    def start(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._inbox.put((future, work))
        return future

    def end(self) -> None:
        self._inbox.put(None)

    def _run(self) -> None:
        while (job := self._inbox.get()) is not None:
            future, work = job
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            # A waiting thread must not keep the last reply, or its error's frames, alive.
            del job, future, work
