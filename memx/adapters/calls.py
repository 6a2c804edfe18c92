"""Calls to a memory system: its exceptions become ``AdapterError`` that say the step, what was stored, what to do.

Only what is safe to repeat is repeated, and a server's ``Retry-After`` is honoured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeVar

from memx.adapters.failures import PASSING, WEB_PAGE, Failure, Kind, read_failure
from memx.errors import AdapterError, AdapterTimeoutError, MemxError
from memx.model import Session

T = TypeVar("T")
#: When a failed call is made again: never; only when the system did nothing (a rate limit, nobody listening); or
#: whenever the failure may pass, because the call reads or may be made twice.
Repeat = Literal["never", "refused", "always"]
_REFUSED = frozenset({Kind.RATE_LIMIT, Kind.DOWN})


class Calls:
    """The calls of one adapter instance.

    Args:
        system: the adapter's name, which begins every message.
        key: what holds the key, for the hint of a refused one: ``"ZEP_API_KEY"``.
        where: the server's address, for the hint when nobody listens there.
        attempts: how often a call is made at most.
        most_wait_s: a longer ``Retry-After`` is not waited for; the error says so.
    """

    def __init__(
        self,
        system: str,
        *,
        key: str = "",
        where: str = "",
        attempts: int = 4,
        most_wait_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._system = system
        self._key = key
        self._where = where
        self._attempts = attempts
        self._most_wait_s = most_wait_s
        self._sleep = sleep
        self._session: Session | None = None
        self._stored = 0
        self._sessions = 0

    # ------------------------------------------------------------------------------------------- what was stored so far

    def begin(self, session: Session) -> None:
        """Ingest of a session begins; what is stored of it is counted from here."""
        self._session, self._stored = session, 0

    def stored(self, turns: int = 1) -> None:
        """So many more turns of the session are in the system."""
        self._stored += turns

    def end(self) -> None:
        """The session is stored whole."""
        self._session, self._sessions = None, self._sessions + 1

    def so_far(self) -> str:
        """What was stored so far, as an error says it; empty outside of an ingest."""
        if self._session is None:
            return ""
        before = f", after {self._sessions} whole sessions" if self._sessions else ""
        return f"{self._stored} of {len(self._session.turns)} turns of session {self._session.session_id}{before}"

    # ------------------------------------------------------------------------------------------------------------ calls

    def read(self, step: str, work: Callable[[], T]) -> T:
        """The result of a call that changes nothing; made again while its failure may pass.

        Args:
            step: what the call does, as the error names it: ``"search"``, ``"list memories"``.

        Raises:
            AdapterError: it failed for good. ``AdapterTimeoutError`` where no answer came in time.
        """
        return self._made(step, work, "always")

    def read_or_none(self, step: str, work: Callable[[], T]) -> T | None:
        """As :meth:`read`; None where the system answers that there is no such thing (404)."""

        def made() -> T | None:
            try:
                return work()
            except Exception as error:
                if read_failure(error).status == 404:
                    return None
                raise

        return self.read(step, made)

    def write(self, step: str, work: Callable[[], T], repeat: Repeat = "never") -> T:
        """The result of a call that changes the store; made again only as ``repeat`` allows.

        Raises:
            AdapterError: it failed for good. ``AdapterTimeoutError`` where no answer came in time.
        """
        return self._made(step, work, repeat)

    def _made(self, step: str, work: Callable[[], T], repeat: Repeat) -> T:
        from tenacity import RetryCallState, Retrying, stop_after_attempt, stop_before_delay, wait_random_exponential

        backoff = wait_random_exponential(multiplier=0.5, max=8)

        def again(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            if error is None or isinstance(error, MemxError) or not isinstance(error, Exception):
                return False
            failure = read_failure(error)
            allowed = {"never": frozenset[Kind](), "refused": _REFUSED, "always": PASSING}[repeat]
            return failure.kind in allowed and (failure.retry_after_s or 0) <= self._most_wait_s

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = read_failure(error).retry_after_s if error is not None else None
            return backoff(state) if asked is None else asked

        # One step of a run may take three minutes by default, repeats included.
        enough = stop_after_attempt(self._attempts) | stop_before_delay(2 * self._most_wait_s)
        retrying = Retrying(stop=enough, wait=wait, retry=again, sleep=self._sleep, reraise=True)
        try:
            return retrying(work)
        except AdapterError as error:
            so_far = self.so_far()
            if not so_far:
                raise
            raise type(error)(f"{error.message}; stored so far: {so_far}", error.hint) from error
        except MemxError:
            raise
        except Exception as error:
            made = int(retrying.statistics.get("attempt_number", 1))
            raise self.failed(step, error, made) from error

    def failed(self, step: str, error: Exception, attempts: int = 1) -> AdapterError:
        """The exception of a call as an :class:`AdapterError`, not raised: step, cause, what was stored, what to do."""
        failure = read_failure(error)
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        so_far = self.so_far()
        stored = f"; stored so far: {so_far}" if so_far else ""
        message = f"{self._system}: {step} failed{tried}: {_cause(failure, error)}{stored}"
        kind = AdapterTimeoutError if failure.kind is Kind.TIMEOUT else AdapterError
        return kind(message, self._hint(failure))

    def _hint(self, failure: Failure) -> str:
        match failure.kind:
            case Kind.RATE_LIMIT:
                wait = f"It asks to wait {failure.retry_after_s:.0f} s. " if failure.retry_after_s else ""
                return f"{wait}Lower --concurrency, or go on later with memx run --resume."
            case Kind.REFUSED:
                return f"Check {self._key or 'the key'} and what it may do, then memx run --resume."
            case Kind.DOWN:
                return f"Is the server up{f' at {self._where}' if self._where else ''}, and its address right?"
            case Kind.TIMEOUT:
                return "Whether it was done is not known. Look at the system's log; --ready-timeout bounds each call."
            case Kind.NOT_FOUND if self._where:
                return f"Is {self._where} the address of its API, path included?"
            case Kind.UNREADABLE:
                return (
                    f"Is {self._where or 'the address'} the address of its API, with no proxy or login page before it?"
                )
            case Kind.SERVER:
                return "Look at the system's log, then go on with memx run --resume."
            case _:
                return ""


def _cause(failure: Failure, error: Exception) -> str:
    status = f" ({failure.status})" if failure.status else ""
    match failure.kind:
        case Kind.RATE_LIMIT:
            return f"rate limit{status}: {failure.said}"
        case Kind.REFUSED:
            return f"refused{status}: {failure.said}"
        case Kind.DOWN:
            return f"cannot be reached: {failure.said}"
        case Kind.TIMEOUT:
            return f"no answer in time{status}: {failure.said}"
        case Kind.UNREADABLE:
            said = f"it sent {failure.said}" if failure.said == WEB_PAGE else failure.said
            return f"a reply that is cut off or no JSON: {said}"
        case Kind.SERVER:
            return f"it failed inside{status}: {failure.said}"
        case _:
            return f"{type(error).__name__}{status}: {failure.said}"
