"""What goes between a run and the process that works off its cases.

The run sends :class:`Kit` once, then tasks; the worker sends calls, which the run answers, and events. The run alone
writes the store and asks models, so there is one writer, one gate per endpoint and one count of what was spent.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memx.engine.settings import RunSettings
from memx.errors import MemxError


@dataclass(frozen=True, slots=True)
class Kit:
    """What a worker builds its side of a run from.

    Attributes:
        cache_dir: None where the worker is to take a temporary directory of its own machine.
        dataset: name and version, for the errata.
        judges, answers: the worker does it itself, by rules; otherwise the run does.
        rung: the run has a last rung of the relevance ladder.
        models_at: address of the endpoint of the run's clients to models; empty where it has none.
    """

    settings: RunSettings
    adapter_options: Mapping[str, Any]
    cache_dir: Path | None
    dataset: tuple[str, str]
    judges: bool
    answers: bool
    rung: bool
    models_at: str


@dataclass(frozen=True, slots=True)
class Call:
    """A worker asks the run to call ``method`` of ``target`` (writer, namespace, judge, ...)."""

    number: int
    target: str
    method: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave: a value, or an error as :func:`packed` made it."""

    number: int
    value: Any = None
    error: bytes | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """An event of the case, for the run's listener."""

    event: Any


@dataclass(frozen=True, slots=True)
class Done:
    """The case is worked off: namespaces left behind and emptied, and what ended it early."""

    left: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    error: bytes | None = None


class Stop:
    """The run is to end; the case returns early."""


def packed(error: BaseException) -> bytes:
    """An error as bytes. Errors take other arguments than they keep, so their parts are sent, not the call."""
    parts: tuple[Any, ...] = (type(error), error.args, dict(error.__dict__))
    with contextlib.suppress(Exception):
        return pickle.dumps(parts)
    return pickle.dumps((MemxError, (f"{type(error).__name__}: {error}",), {"message": str(error), "hint": ""}))


def unpacked(data: bytes) -> BaseException:
    """The error of :func:`packed`."""
    kind, arguments, state = pickle.loads(data)
    error: BaseException = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(state)
    return error
