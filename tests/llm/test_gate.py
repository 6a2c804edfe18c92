"""The gate: limits over any minute, pauses, closing and stopping."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memx.errors import Interrupted, QuotaError, UsageError
from memx.llm.gate import Gate, Wait, Window, backoff_s
from tests.llm.fixtures import FastClock


@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(5, 40),
    asked=st.lists(st.tuples(st.integers(1, 5), st.floats(0, 20)), min_size=1, max_size=60),
)
def test_window_never_lets_more_than_the_limit_into_any_minute(limit: int, asked: list[tuple[int, float]]) -> None:
    window, now, taken = Window(limit), 0.0, []
    for amount, pause in asked:
        now += pause
        delay = window.delay(amount, now)
        now += delay
        assert window.delay(amount, now) == pytest.approx(0.0, abs=1e-6)
        window.take(amount, now)
        taken.append((now, amount))
    for at, _ in taken:
        # A hair is cut off the minute: sums of floats meet its edge.
        assert sum(amount for other, amount in taken if at - 60 + 1e-6 < other <= at) <= limit


def test_window_lets_one_oversized_request_through_when_it_is_alone() -> None:
    window = Window(10)
    assert window.delay(50, 0.0) == 0.0
    window.take(50, 0.0)
    assert window.delay(1, 1.0) == pytest.approx(59.0)


def test_no_more_than_the_set_number_are_inside_at_once() -> None:
    gate = Gate(concurrency=3)
    inside, most, guard = 0, 0, threading.Lock()
    meet = threading.Barrier(3)

    def work(number: int) -> None:
        nonlocal inside, most
        with gate.slot():
            with guard:
                inside += 1
                most = max(most, inside)
            if number < 3:
                meet.wait(5)  # three are inside together
            with guard:
                inside -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(12)))
    assert most == 3


def test_a_pause_holds_everybody_back_and_is_told_once() -> None:
    clock, waits = FastClock(), list[Wait]()
    gate = Gate("server", clock=clock, on_wait=waits.append)
    gate.pause(30, "rate limit")
    for _ in range(3):
        with gate.slot():
            assert clock.now() >= 1030
    assert [(wait.reason, wait.seconds, wait.endpoint) for wait in waits] == [("rate limit", 30, "server")]


def test_requests_per_minute_are_spread_and_said() -> None:
    clock, waits = FastClock(), list[Wait]()
    gate = Gate(requests_per_minute=2, clock=clock, on_wait=waits.append)
    for _ in range(5):
        with gate.slot():
            pass
    assert clock.now() >= 1120
    assert waits[0].reason == "limit of requests per minute"


def test_a_closed_gate_refuses_what_comes_and_what_waits() -> None:
    gate = Gate()
    gate.pause(1000, "rate limit")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: gate.slot().__enter__())
        gate.close(QuotaError("no credit", "top up"))
        with pytest.raises(QuotaError, match="no credit"):
            waiting.result(5)
    with pytest.raises(QuotaError, match="top up"), gate.slot():
        pass


def test_stopping_ends_every_wait() -> None:
    stop = threading.Event()
    gate = Gate(stop=stop)
    gate.pause(1000, "rate limit")
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(lambda: gate.slot().__enter__()), pool.submit(gate.back_off, 1000, "error")]
        stop.set()
        for wait in waiting:
            with pytest.raises(Interrupted):
                wait.result(5)


@given(st.integers(1, 200))
def test_backoff_grows_with_jitter_up_to_its_cap(failures: int) -> None:
    whole = min(60.0, 0.5 * 2 ** (failures - 1))
    assert whole / 2 <= backoff_s(failures) <= whole


def test_limits_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="concurrency is 1 or more"):
        Gate(concurrency=0)
