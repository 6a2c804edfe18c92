"""What an interrupt of a command means that keeps the replies of models, and nothing else, before it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memx.errors import Interrupted


@contextmanager
def repeatable(command: str = "the same command") -> Iterator[None]:
    """Let an interrupt end the command with how to go on.

    Raises:
        Interrupted: instead of ``KeyboardInterrupt``.
    """
    try:
        yield
    except KeyboardInterrupt:
        hint = f"Go on with {command}: the replies that models gave by then are kept and not asked for again."
        raise Interrupted("interrupted", hint) from None
