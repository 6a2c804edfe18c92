"""Reading a whole store page by page, and waiting until it is ready, without trusting the server to be right."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memx.errors import AdapterError, AdapterTimeoutError

T = TypeVar("T")
#: A store of a million rows in pages of a hundred is not read through an API; a server that goes on so long is broken.
MOST_PAGES = 10_000
_EMPTY_PAGES = 3


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page.

    Attributes:
        next: what to ask the next page with (a cursor, an offset, a page number); None after the last page.
        total: how many rows there are in all, where the server says so.
    """

    rows: Sequence[T]
    next: Any = None
    total: int | None = None


def pages(
    system: str,
    what: str,
    fetch: Callable[[Any], Page[T]],
    *,
    key: Callable[[T], Hashable],
    first: Any = None,
) -> Iterator[T]:
    """Every row of a paged listing, each once.

    Args:
        system: the adapter's name, for messages.
        what: what is listed: ``"memories"``.
        fetch: the page of a cursor (``first`` for the first page); go through ``Calls.read`` in it.
        key: the row's id; a row that an earlier page held already is left out.

    Raises:
        AdapterError: a cursor comes twice, a page brings only rows of earlier pages, pages stay empty, or fewer rows
            came than the server said there are.
    """
    cursor, asked = first, set[Hashable]()
    seen: set[Hashable] = set()
    empty = 0
    for number in range(1, MOST_PAGES + 1):
        if cursor in asked:
            raise _broken(system, what, number, f"repeats its cursor '{cursor}'", len(seen))
        asked.add(cursor)
        page = fetch(cursor)
        new = [row for row in page.rows if key(row) not in seen]
        if page.rows and not new:
            raise _broken(system, what, number, "brings only rows that earlier pages held", len(seen))
        for row in new:
            if key(row) not in seen:
                seen.add(key(row))
                yield row
        empty = 0 if page.rows else empty + 1
        if page.next is None:
            if page.total is not None and len(seen) < page.total:
                raise _broken(system, what, number, f"is the last, but {page.total} rows were promised", len(seen))
            return
        if empty >= _EMPTY_PAGES:
            raise _broken(system, what, number, "is empty like those before it, and is not the last", len(seen))
        cursor = page.next
    raise _broken(system, what, MOST_PAGES, "is not the last", len(seen))


def wait_until(system: str, outstanding: Callable[[], str], timeout_s: float, *, every_s: float = 0.1) -> None:
    """Return once nothing is outstanding any more.

    Args:
        outstanding: what is not ready yet, in words (``"3 of 14 documents are being indexed"``); empty when all is.
            All stages count: what is indexed may still wait to be consolidated.
        timeout_s: how long to wait, in seconds.
        every_s: the first pause between two looks; it grows to 20 times that.

    Raises:
        AdapterTimeoutError: something is still outstanding; says what.
    """
    deadline = time.monotonic() + timeout_s
    pause = every_s
    while left := outstanding():
        if time.monotonic() + pause > deadline:
            hint = "Raise --ready-timeout, or look at the system's log."
            raise AdapterTimeoutError(f"{system}: not ready after {timeout_s:g} s: {left}", hint)
        time.sleep(pause)
        pause = min(pause * 1.5, every_s * 20)


def _broken(system: str, what: str, page: int, how: str, rows: int) -> AdapterError:
    hint = "The snapshot would be incomplete, so it is not taken. The system's API may have changed."
    return AdapterError(f"{system}: listing {what}: page {page} {how}; {rows} rows came so far", hint)
