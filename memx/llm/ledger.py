"""Counting what models were asked and what it cost, and the caps on both."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from memx.errors import BudgetReached, UsageError
from memx.llm.prices import Price, Prices


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked so far.

    Attributes:
        calls: replies that a server gave, readable or not.
        cached: replies that came from the cache instead.
        retries: requests that failed and were sent again, or given up; servers do not bill them as a rule.
        cost: US dollars; None when a model has no price or a server told no token counts.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


@dataclass(slots=True)
class Reservation:
    """Room for one request within the caps, until it is settled or released."""

    price: Price | None
    input_tokens: int
    output_tokens: int

    @property
    def cost(self) -> float:
        """The most that the request can cost, in US dollars, as far as estimates go."""
        return self.price.cost(self.input_tokens, self.output_tokens) if self.price else 0.0


class Ledger:
    """Counts calls, tokens and cost over all models of a run, by purpose, and holds the caps.

    A request first reserves what it may use, so that concurrent requests cannot overrun a cap together.

    Args:
        max_calls: replies that may be paid for; None for no cap.
        max_cost: US dollars that may be spent; None for no cap.
    """

    def __init__(self, prices: Prices, *, max_calls: int | None = None, max_cost: float | None = None) -> None:
        if max_calls is not None and max_calls < 0:
            raise UsageError(f"--max-calls is 0 or more, not {max_calls}")
        if max_cost is not None and not max_cost >= 0:
            raise UsageError(f"--max-cost is 0 or more, not {max_cost}")
        self.prices = prices
        self.max_calls = max_calls
        self.max_cost = max_cost
        self._guard = threading.Lock()
        self._usage: dict[str, Usage] = {}
        self._open: list[Reservation] = []
        self._spent = 0.0  # by estimate where a server told no counts, so that the cap holds all the same

    def require_price(self, model: str) -> None:
        """Refuse a model without a price when cost is capped: the cap could not hold.

        Raises:
            UsageError: ``--max-cost`` is set and the table does not name the model.
        """
        if self.max_cost is not None and self.prices.of(model) is None:
            raise UsageError(
                f"--max-cost cannot hold: there is no price for model '{model}'",
                "Give its price in a file by MEMX_PRICES, or cap calls by --max-calls.",
            )

    def reserve(self, model: str, input_tokens: int, output_tokens: int) -> Reservation:
        """Make room for one request of at most the given tokens.

        Raises:
            BudgetReached: the request might overrun a cap.
        """
        wanted = Reservation(self.prices.of(model), input_tokens, output_tokens)
        with self._guard:
            total = self._total()
            if self.max_calls is not None and total.calls + len(self._open) >= self.max_calls:
                raise BudgetReached(
                    f"the cap of {self.max_calls} model calls is reached", "Resume the run with a larger --max-calls."
                )
            if self.max_cost is not None:
                open_cost = sum(reservation.cost for reservation in self._open)
                if self._spent + open_cost + wanted.cost > self.max_cost:
                    raise BudgetReached(
                        f"the next call could overrun the cap of ${self.max_cost:g} (${self._spent:.4f} spent)",
                        "Resume the run with a larger --max-cost.",
                    )
            self._open.append(wanted)
        return wanted

    def settle(
        self, reservation: Reservation, purpose: str, input_tokens: int | None, output_tokens: int | None
    ) -> None:
        """Count a reply. Token counts are None where the server told none; estimates then count against the cap."""
        known = input_tokens is not None and output_tokens is not None
        spent = reservation.cost
        if known and reservation.price:
            spent = reservation.price.cost(input_tokens or 0, output_tokens or 0)
        cost = spent if known and reservation.price else None
        with self._guard:
            self._drop(reservation)
            self._spent += spent
            self._add(purpose, Usage(1, 0, 0, input_tokens or 0, output_tokens or 0, cost))

    def release(self, reservation: Reservation, purpose: str) -> None:
        """Give back the room of a request that failed."""
        with self._guard:
            self._drop(reservation)
            self._add(purpose, Usage(retries=1))

    def count_cached(self, purpose: str) -> None:
        """Count a reply that came from the cache."""
        with self._guard:
            self._add(purpose, Usage(cached=1))

    def usage(self, purpose: str | None = None) -> Usage:
        """What was asked for one purpose (``judge``, ``answer``, ``diagnose``), or altogether."""
        with self._guard:
            return self._total() if purpose is None else self._usage.get(purpose, Usage())

    def _drop(self, reservation: Reservation) -> None:
        self._open = [kept for kept in self._open if kept is not reservation]

    def _add(self, purpose: str, more: Usage) -> None:
        self._usage[purpose] = _plus(self._usage.get(purpose, Usage()), more)

    def _total(self) -> Usage:
        total = Usage()
        for usage in self._usage.values():
            total = _plus(total, usage)
        return total


def _plus(a: Usage, b: Usage) -> Usage:
    return Usage(
        a.calls + b.calls,
        a.cached + b.cached,
        a.retries + b.retries,
        a.input_tokens + b.input_tokens,
        a.output_tokens + b.output_tokens,
        None if a.cost is None or b.cost is None else a.cost + b.cost,
    )
