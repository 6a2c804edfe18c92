"""Runs the checks of the conformance kit on one adapter, one after the other, and cleans up after itself."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from memx.adapters.conformance import search_checks, store_checks
from memx.adapters.conformance.bench import Bench
from memx.adapters.conformance.report import CheckFailed, NotApplicable, Outcome, Report, Result
from memx.adapters.contract import MemoryAdapter
from memx.adapters.failures import words_of
from memx.errors import AdapterError, MemxError, UnknownNameError
from memx.text.secrets import hide


def starts(bench: Bench) -> str:
    """It starts, tells of itself, and closes."""
    adapter = bench.make()
    try:
        facts = dict(adapter.describe())
        json.dumps(facts)
    finally:
        adapter.close()
    return ", ".join(f"{name} {value}" for name, value in facts.items() if isinstance(value, str))[:60] or "it starts"


#: In the order in which they run. The first two are needed by all others.
CHECKS: Mapping[str, Callable[[Bench], str]] = {
    "start": starts,
    "stored": store_checks.stored,
    "ready": search_checks.readiness,
    "isolation": store_checks.isolation,
    "order": store_checks.order,
    "dates": store_checks.dates,
    "names": store_checks.names,
    "sources": store_checks.sources,
    "k": search_checks.k_respected,
    "ids": search_checks.ids_match,
    "determinism": search_checks.determinism,
    "unknown-entity": store_checks.unknown_entity,
    "empty-turn": store_checks.empty_turn,
    "unicode": store_checks.unicode_text,
    "long-text": store_checks.long_text,
    "paging": store_checks.paging,
    "second-instance": search_checks.second_instance,
    "two-at-once": search_checks.two_at_once,
    "reset": store_checks.reset,
}
_NEEDED = ("start", "stored")
#: No check may take longer than so many times what the adapter may take to become ready.
_LONGEST = 10
T = TypeVar("T")


def check_names() -> tuple[str, ...]:
    """The names of all checks, in the order in which they run."""
    return tuple(CHECKS)


def check_adapter(
    make: Callable[[], MemoryAdapter],
    *,
    skip: Collection[str] = (),
    timeout_s: float = 60.0,
    listener: Callable[[Result], None] = lambda result: None,
) -> Report:
    """Run the kit.

    Args:
        make: builds an instance, as a run would: the class itself, or a function that gives it its options.
        skip: names of checks to leave out, such as ``paging`` where each turn costs money.
        timeout_s: how long the adapter may take to become ready, in seconds; a check may take ten times as long.
        listener: told of each result as it comes.

    Raises:
        UnknownNameError: ``skip`` names no check.
        MemxError: the adapter cannot be built, or does not answer at all.
    """
    unknown = next((name for name in skip if name not in CHECKS), None)
    if unknown is not None:
        raise UnknownNameError("check", unknown, CHECKS)
    bench = Bench(make, timeout_s)
    worker = _Worker()
    try:
        name, version, facts = worker.call(lambda: _introduction(make), timeout_s)
    except MemxError:
        raise
    except CheckFailed as error:
        raise AdapterError(f"the adapter cannot start: {error}") from error
    except Exception as error:  # an adapter may raise anything
        raise AdapterError(f"the adapter cannot start: {hide(f'{type(error).__name__}: {words_of(error)}')}") from error
    results = []
    for result in _results(bench, worker, skip, _LONGEST * timeout_s):
        results.append(result)
        listener(result)
    left = bench.entities if worker.stuck else worker.call(lambda: _clean(bench), _LONGEST * timeout_s)
    return Report(name, version, facts, tuple(results), tuple(left))


class _Worker:
    """One thread for all calls, as a run gives each adapter one; a call that hangs leaves it behind."""

    def __init__(self) -> None:
        self.stuck = False
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._go_on, name="conformance", daemon=True).start()

    def call(self, work: Callable[[], T], timeout_s: float) -> T:
        """The result of ``work``, or what it raised.

        Raises:
            CheckFailed: it did not return in time; nothing more can be asked then.
        """
        future: Future[T] = Future()
        self._work.put((future, work))
        done, _ = wait([future], timeout_s)
        if not done:
            self.stuck = True
            raise CheckFailed(f"it does not return within {timeout_s:g} s")
        return future.result()

    def _go_on(self) -> None:
        while True:
            future, work = self._work.get()
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)
            except BaseException as error:  # an adapter that calls sys.exit() must not end the thread
                future.set_exception(CheckFailed(f"it raised {type(error).__name__}: {words_of(error)}"))


def _introduction(make: Callable[[], MemoryAdapter]) -> tuple[str, str, Mapping[str, Any]]:
    """Name, version and what the adapter tells of itself; errors of ours, such as a missing package, end the kit."""
    adapter = make()
    facts: Mapping[str, Any] = {}
    try:
        facts = dict(adapter.describe())
    except MemxError:
        raise
    except Exception:  # the check "start" says it
        facts = {}
    finally:
        adapter.close()
    return type(adapter).name or type(adapter).__name__, str(facts.get("version") or type(adapter).version), facts


def _results(bench: Bench, worker: _Worker, skip: Collection[str], longest_s: float) -> Iterator[Result]:
    broken = ""
    for name, check in CHECKS.items():
        demands = (check.__doc__ or "").strip().partition("\n")[0]
        if name in skip:
            yield Result(name, demands, Outcome.NOT_APPLICABLE, "left out", 0.0)
        elif broken:
            yield Result(name, demands, Outcome.NOT_APPLICABLE, f"not tried, since '{broken}' failed", 0.0)
        else:
            result = _one(bench, worker, name, check, demands, longest_s)
            if result.outcome is Outcome.FAIL and (name in _NEEDED or worker.stuck):
                broken = name
            yield result


def _one(
    bench: Bench, worker: _Worker, name: str, check: Callable[[Bench], str], demands: str, longest_s: float
) -> Result:
    started = time.perf_counter()
    try:
        outcome, why = Outcome.PASS, worker.call(lambda: check(bench), longest_s)
    except NotApplicable as reason:
        outcome, why = Outcome.NOT_APPLICABLE, str(reason)
    except CheckFailed as reason:
        outcome, why = Outcome.FAIL, str(reason)
    except MemxError as error:
        outcome, why = Outcome.FAIL, str(error)
    except Exception as error:  # an adapter may raise anything; that is the finding
        outcome, why = Outcome.FAIL, f"it raised {type(error).__name__}: {words_of(error)}"
    return Result(name, demands, outcome, hide(why), time.perf_counter() - started)


def _clean(bench: Bench) -> list[str]:
    """Delete what the checks stored; returns the namespaces that stay behind."""
    left = []
    try:
        adapter = bench.adapter
    except Exception:  # it never started, so it stored nothing
        return []
    for entity_id in bench.entities:
        try:
            adapter.reset(entity_id)
            if adapter.keeps_data and adapter.export_state(entity_id).facts:
                left.append(entity_id)
        except Exception:  # it may be the very thing that is broken
            left.append(entity_id)
    try:
        adapter.close()
    except Exception:
        return left
    return left
