"""One piece of work for many items in several threads, results in order; an interrupt ends it soon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: What is under way at an interrupt gets so long to finish, in seconds: a reply that is about to come is paid for.
GRACE_S = 1.0


def side_by_side(
    work: Callable[[T], R], items: Iterable[T], workers: int, stop: threading.Event | None = None
) -> Iterator[R]:
    """``work`` of every item, ``workers`` at a time, in the items' order as they become ready.

    Whatever ends this early is raised after :data:`GRACE_S` at most, also while a call hangs, whose thread is left.

    Args:
        stop: set as soon as anything ends this early.
    """
    pool = ThreadPoolExecutor(workers)
    futures = []
    try:
        futures = [pool.submit(work, item) for item in items]
        for future in futures:
            yield future.result()
    except BaseException:
        if stop is not None:
            stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        wait(futures, GRACE_S)
        raise
    pool.shutdown()
