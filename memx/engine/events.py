"""What a run tells while it goes; a command draws it, a UI draws it, a script may ignore it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memx.model import StepFailure, Trace


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run is set up. ``done`` questions are already stored (a resumed run); ``total`` None when not yet known."""

    run_id: str
    total: int | None
    done: int


@dataclass(frozen=True, slots=True)
class SessionIngested:
    """``done`` of ``total`` sessions of a case are stored."""

    case_id: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class QuestionFinished:
    """One question has its trace, and the trace is in the store."""

    trace: Trace


@dataclass(frozen=True, slots=True)
class CaseFailed:
    """A step of a case failed; its unfinished questions became ERRORs."""

    case_id: str
    failure: StepFailure
    questions: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A line worth showing: what is waited for, a finding about the store.

    ``once``: of all notices with the same mark only the first is worth a line; empty for the text itself.
    ``passing``: it tells of a wait that ends by itself, which those who want to see problems only need not know.
    """

    text: str
    once: str = ""
    passing: bool = False


Event = RunStarted | SessionIngested | QuestionFinished | CaseFailed | Notice
#: Called from several threads, one call at a time.
Listener = Callable[[Event], None]
