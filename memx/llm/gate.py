"""The one gate in front of an endpoint: how many requests at once, how many a minute, and when to hold back."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from memx.errors import Interrupted, ModelError, UsageError

#: Waiting threads look this often, in seconds, whether the run was interrupted: well under the second that
#: Ctrl-C may take.
LOOK_EVERY_S = 0.25
MINUTE_S = 60.0


class Clock(Protocol):
    """Time, so that tests need not wait for it."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait on a condition that the caller holds, at most ``seconds``."""


class RealClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait on a condition that the caller holds, at most ``seconds``."""
        condition.wait(seconds)


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait that has begun, to be shown: why, for about how many seconds, at which endpoint."""

    reason: str
    seconds: float
    endpoint: str

    def __str__(self) -> str:
        return f"waiting {max(1, round(self.seconds))} s for {self.endpoint or 'the model'}: {self.reason}"


class Window:
    """An exact limit over any 60 seconds: amounts are remembered until they are a minute old."""

    def __init__(self, per_minute: int | None) -> None:
        self._limit = per_minute
        self._past: deque[tuple[float, int]] = deque()
        self._sum = 0

    def delay(self, amount: int, now: float) -> float:
        """Seconds until ``amount`` fits; more than a whole minute's worth fits when nothing else is remembered."""
        if self._limit is None:
            return 0.0
        while self._past and self._past[0][0] <= now - MINUTE_S:
            self._sum -= self._past.popleft()[1]
        free_at, total = now, self._sum
        for at, past in self._past:
            if total + amount <= self._limit:
                break
            free_at, total = at + MINUTE_S, total - past
        return max(0.0, free_at - now)

    def take(self, amount: int, now: float) -> None:
        """Remember an amount that is used now."""
        if self._limit is not None:
            self._past.append((now, amount))
            self._sum += amount


class Gate:
    """Shared by all threads and roles that ask one endpoint.

    Args:
        concurrency: requests at once.
        requests_per_minute, tokens_per_minute: limits over any 60 s; None for none.
        stop: when set, everything that waits or comes is refused with ``Interrupted``.
        on_wait: told of every wait as it begins, one call for a wait that many threads share.
    """

    def __init__(
        self,
        endpoint: str = "",
        *,
        concurrency: int = 16,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        stop: threading.Event | None = None,
        on_wait: Callable[[Wait], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        for name, limit in (
            ("concurrency", concurrency),
            ("requests per minute", requests_per_minute),
            ("tokens per minute", tokens_per_minute),
        ):
            if limit is not None and limit < 1:
                raise UsageError(f"{name} is 1 or more, not {limit}")
        self.endpoint = endpoint
        self.clock: Clock = clock or RealClock()
        self._concurrency = concurrency
        self._requests = Window(requests_per_minute)
        self._tokens = Window(tokens_per_minute)
        self._stop = stop or threading.Event()
        self._on_wait = on_wait
        self._condition = threading.Condition()
        self._active = 0
        self._resume_at = float("-inf")
        self._pause_reason = ""
        self._closed: ModelError | None = None
        self._shown_until = float("-inf")

    @contextmanager
    def slot(self, tokens: int = 0) -> Iterator[None]:
        """Hold one of the endpoint's places for the block, once limits and pauses allow it.

        Raises:
            Interrupted: the run was stopped.
            ModelError: the gate was closed; the error it was closed with.
        """
        with self._condition:
            while (wait := self._enter_or_wait(tokens)) is not None:
                self._hold_back(wait)
        try:
            yield
        finally:
            with self._condition:
                self._active -= 1
                # All, since one that only backs off could take the wake-up meant for one that waits for a place.
                self._condition.notify_all()

    def pause(self, seconds: float, reason: str) -> None:
        """Let nobody through for ``seconds``: the server asked for it."""
        with self._condition:
            self._resume_at = max(self._resume_at, self.clock.now() + seconds)
            self._pause_reason = reason

    def back_off(self, seconds: float, reason: str) -> None:
        """Hold back the calling thread alone. Raises as :meth:`slot` does."""
        with self._condition:
            until = self.clock.now() + seconds
            while (left := until - self.clock.now()) > 0:
                self._refuse_if_over()
                self._hold_back(Wait(reason, left, self.endpoint))
            self._refuse_if_over()

    def close(self, error: ModelError) -> None:
        """Refuse everything from now on with ``error``, what waits too: asking again is no use."""
        with self._condition:
            if self._closed is None:
                self._closed = error
            self._condition.notify_all()

    @property
    def closed(self) -> ModelError | None:
        """What the gate was closed with; None while it is open."""
        return self._closed

    def _refuse_if_over(self) -> None:
        if self._stop.is_set():
            raise Interrupted("interrupted; no further model call is made")
        if self._closed is not None:
            # Each caller gets an error of its own: one raised object would gather the tracebacks of all threads.
            closed = self._closed
            raise type(closed)(closed.message, closed.hint)

    def _enter_or_wait(self, tokens: int) -> Wait | None:
        self._refuse_if_over()
        now = self.clock.now()
        if now < self._resume_at:
            return Wait(self._pause_reason, self._resume_at - now, self.endpoint)
        if self._active >= self._concurrency:
            return Wait("", LOOK_EVERY_S, self.endpoint)
        for window, amount, name in ((self._requests, 1, "requests"), (self._tokens, tokens, "tokens")):
            if delay := window.delay(amount, now):
                return Wait(f"limit of {name} per minute", delay, self.endpoint)
        self._requests.take(1, now)
        self._tokens.take(tokens, now)
        self._active += 1
        return None

    def _hold_back(self, wait: Wait) -> None:
        # A place that another request holds is no news; of a shared wait only the first thread tells.
        until = self.clock.now() + wait.seconds
        if wait.reason and until > self._shown_until + LOOK_EVERY_S:
            self._shown_until = until
            if self._on_wait is not None:
                self._on_wait(wait)
        self.clock.wait(self._condition, min(wait.seconds, LOOK_EVERY_S))


def backoff_s(failures: int, *, base_s: float = 0.5, cap_s: float = 60.0) -> float:
    """Seconds to wait after the n-th failure in a row: ``base * 2^(n-1)``, capped, of which a random half to whole
    (equal jitter), so that requests that failed together do not come back together."""
    whole: float = min(cap_s, base_s * 2 ** (failures - 1))
    return whole * random.uniform(0.5, 1.0)
