"""One thread per adapter instance, each call with a deadline.

An adapter may keep things bound to their thread (an SQLite connection), so all its calls come from one. A call that
hangs cannot be ended from outside; its thread is left behind as a daemon, and every later call fails at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from memx.adapters.failures import words_of
from memx.errors import AdapterError, AdapterTimeoutError, MemxError

T = TypeVar("T")
#: How often a waiting caller looks whether the run was stopped, in seconds.
_LOOK_S = 0.2


class Stopped(Exception):
    """The run was stopped while a call was under way."""


class StepError(Exception):
    """A step of a case failed: which one, and the error in the adapter's own words."""

    def __init__(self, step: str, error: BaseException) -> None:
        super().__init__(step)
        self.step = step
        self.error = error


class AdapterThread:
    """Runs the calls of one adapter one after the other.

    Args:
        name: of the adapter, for messages.
        stop: set when the run is to end; waiting callers then raise ``Stopped``.
    """

    def __init__(self, name: str, stop: threading.Event) -> None:
        self._name = name
        self._stop = stop
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._stuck_in = ""
        self._thread = threading.Thread(target=self._work, name=f"adapter-{name}", daemon=True)
        self._thread.start()

    def call(self, step: str, timeout_s: float, work: Callable[[], T]) -> T:
        """The result of ``work()``, run in the adapter's thread.

        Raises:
            StepError: it raised, or took longer than ``timeout_s`` seconds.
            Stopped: the run was stopped meanwhile.
        """
        if self._stuck_in:
            message = f"{self._name} is still busy with an earlier call ({self._stuck_in})"
            raise StepError(step, AdapterTimeoutError(message))
        future: Future[T] = Future()
        self._calls.put((future, work))
        waited = 0.0
        while True:
            pause = min(_LOOK_S, timeout_s - waited)
            try:
                return future.result(timeout=max(pause, 0.001))
            except FutureTimeout as error:
                # On Python 3.11 this is also what an adapter's own TimeoutError looks like.
                if future.done():
                    raise StepError(step, error) from error
                waited += pause
            except MemxError as error:
                raise StepError(step, error) from error
            except Exception as error:
                raise StepError(step, error) from error
            if self._stop.is_set():
                raise Stopped
            if waited >= timeout_s:
                self._stuck_in = step
                message = f"{self._name} did not return from {step} within {timeout_s:g} s"
                raise StepError(step, AdapterTimeoutError(message, "Raise --ready-timeout, or look at its log."))

    @property
    def stuck(self) -> bool:
        """True when a call has not returned in time; no other will be made."""
        return bool(self._stuck_in)

    def try_last(self, work: Callable[[], Any], seconds: float) -> None:
        """Have ``work()`` done in the adapter's thread if that is free in time; for a run that is being stopped."""
        if not self._stuck_in:
            future: Future[Any] = Future()
            self._calls.put((future, work))
            wait((future,), seconds)

    def end(self) -> None:
        """Let the thread go once its queue is empty."""
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, work = item
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)
            except BaseException as error:  # an adapter that calls sys.exit() must not end the run
                said = f"{self._name} raised {type(error).__name__}: {words_of(error)}".rstrip(": ")
                future.set_exception(AdapterError(said))
