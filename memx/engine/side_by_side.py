"""One piece of work for many items in several threads, results in order; an interrupt ends it soon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(
    work: Callable[[T], R], items: Iterable[T], workers: int, stop: threading.Event | None = None
) -> Iterator[R]:
    """``work`` of every item, ``workers`` at a time, in the items' order as they become ready.

    Args:
        stop: set as soon as anything ends this early, before calls under way are waited for.
    """
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from pool.map(work, items)
        except BaseException:
            if stop is not None:
                stop.set()
            raise
