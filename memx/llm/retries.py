"""How long to wait after a failed request, and when to give it up: the same for every kind of request."""

from __future__ import annotations

from memx.errors import ModelError
from memx.llm.endpoint import Endpoint
from memx.llm.failures import Failure, Kind, shown_url
from memx.llm.gate import backoff_s

#: Enough for an outage of two minutes; of calls that fail four times in ten, one in 10,000 is lost.
ATTEMPTS = 10
#: Where the server says how long to wait, the own back-off counts by this share only.
SHORT_BACKOFF = 0.1
#: Before a run one would rather be told: attempts by kind of failure, where they are fewer.
PREFLIGHT_ATTEMPTS = {Kind.TRANSIENT: 6, Kind.SILENT: 3, Kind.DOWN: 2}
PREFLIGHT_TIMEOUT_S = 30.0
#: A server that asks to wait longer than this in all means a daily limit: the run is better resumed later.
PATIENCE_S = 900.0
#: So many calls given up in a row, with no success between, mean that the endpoint is down for good.
GIVE_UP_AFTER = 5


class Retries:
    """The failures of one request so far.

    Args:
        attempts: how often it is sent in all when transient faults strike; rate limits do not count.
        preflight: give up sooner.
    """

    def __init__(self, endpoint: Endpoint, attempts: int = ATTEMPTS, *, preflight: bool = False) -> None:
        self._endpoint = endpoint
        self._attempts = attempts
        self._preflight = preflight
        self._failures = self._limited = 0
        self._waited = 0.0

    def hold_back(self, failure: Failure) -> None:
        """Wait after a failure that may pass, as long as the server or the back-off says.

        Raises:
            ModelError: it failed too often; it is not to be sent again.
            Interrupted: the run was stopped.
        """
        if failure.kind is Kind.RATE_LIMIT:
            self._limited += 1
        else:
            self._failures += 1
        limit = self._attempts
        if self._preflight:
            limit = min(limit, PREFLIGHT_ATTEMPTS.get(failure.kind, limit))
        delay = backoff_s(self._failures + self._limited)
        if failure.retry_after_s is not None:
            # A server that keeps asking for no wait at all is still given more and more of one.
            delay = max(failure.retry_after_s, delay * SHORT_BACKOFF)
        self._waited += delay
        if self._failures >= limit or (self._waited > PATIENCE_S and failure.kind is Kind.RATE_LIMIT):
            raise self._give_up(failure, delay)
        if failure.kind is Kind.RATE_LIMIT:
            self._endpoint.gate.pause(delay, "rate limit (429)")
        else:
            self._endpoint.gate.back_off(delay, failure.error.message)

    def _give_up(self, failure: Failure, delay: float) -> ModelError:
        where = shown_url(self._endpoint.base_url)
        if failure.kind is Kind.RATE_LIMIT:
            error = ModelError(
                f"{where} asks to wait {delay:.0f} s more ({failure.error.message})",
                "Resume the run later, or set MEMX_REQUESTS_PER_MINUTE.",
            )
            self._endpoint.gate.close(error)
            return error
        if self._endpoint.count_given_up(True) >= GIVE_UP_AFTER:
            self._endpoint.gate.close(
                ModelError(
                    f"{where} failed {GIVE_UP_AFTER} calls in a row ({failure.error.message})",
                    "Resume the run when it is back.",
                )
            )
        return failure.error
