"""Content that a memory system, or the model behind it, refuses for good: named and counted, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memx.adapters.failures import Kind, read_failure
from memx.errors import AdapterError


class Refusals:
    """What is refused after something was taken is content (too long, filtered); before, it is a wrong setting.

    Args:
        note: takes what was refused, in the system's words.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._taken = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Around one call that stores; a refusal of its content is noted instead of raised."""
        try:
            yield
        except AdapterError as error:
            cause = error.__cause__
            failure = read_failure(cause) if cause is not None else None
            if not self._taken or failure is None or failure.kind is not Kind.REJECTED:
                raise
            self._note(f"content was refused, and is not stored: {failure.said}")
        else:
            self._taken = True
