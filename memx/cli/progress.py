"""Progress of a run on stderr: a live bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, redirect_stdout
from types import TracebackType
from typing import TYPE_CHECKING

from memx.cli.main import say
from memx.engine.events import CaseFailed, Event, Notice, QuestionFinished, RunStarted, SessionIngested
from memx.model import Outcome
from memx.text.gate import safe_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Seconds between two lines where there is no terminal.
_EVERY_S = 5.0


class RunProgress(AbstractContextManager["RunProgress"]):
    """Draws the events of a run. Call it with each event, from any thread, one at a time.

    Args:
        quiet: show problems only.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._away = redirect_stdout(sys.stderr)
        self._live = not quiet and sys.stderr.isatty()
        self._counts: Counter[Outcome] = Counter()
        self._done = 0
        self._asked = 0
        self._total: int | None = None
        self._started = time.monotonic()
        self._first: float | None = None
        self._last_line = self._started
        self._ingest: dict[str, tuple[int, int]] = {}
        self._told: set[str] = set()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._start(event)
            case SessionIngested():
                self._ingest[event.case_id] = (event.done, event.total)
                self._show()
            case QuestionFinished():
                self._count(event)
            case CaseFailed():
                self._say(f"{event.case_id}: {event.failure.step} failed: {event.failure.message}")
                if event.failure.hint:
                    self._say(f"  {event.failure.hint}")
                self._say(f"  its {event.questions} unfinished questions are ERROR; the other cases go on")
            case Notice(passing=True) if self._quiet:
                pass
            case Notice():
                # The same trouble comes once a question; it is worth one line.
                mark = event.once or event.text
                if mark not in self._told:
                    self._told.add(mark)
                    self._say(event.text)

    def __enter__(self) -> RunProgress:
        # Standard output is for the run's data; what a memory system or its SDK prints meanwhile is none.
        self._away.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._away.__exit__(kind, error, trace)

    def seen(self, done: int, counts: Mapping[str, int], ingesting: Mapping[str, int]) -> None:
        """Draw how far a run is that another process makes.

        Args:
            done: finished questions.
            counts: of them by outcome.
            ingesting: sessions of the cases that are being ingested.
        """
        self._asked += done - self._done
        self._done = done
        self._counts = Counter({Outcome(name): n for name, n in counts.items()})
        self._ingest = {case: (0, sessions) for case, sessions in ingesting.items()}
        self._show()

    def _start(self, event: RunStarted) -> None:
        self._done, self._total = event.done, event.total
        if not self._live:
            return
        self._bar = _bar()
        self._task = self._bar.add_task("starting", total=self._total, completed=self._done, numbers="")
        self._bar.start()

    def _count(self, event: QuestionFinished) -> None:
        if self._first is None:
            self._first = time.monotonic()
        self._counts[event.trace.verdict.outcome] += 1
        self._done += 1
        self._asked += 1
        self._show()

    def _show(self) -> None:
        if self._quiet:
            return
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=self._doing(), completed=self._done, numbers=self._numbers())
        elif time.monotonic() - self._last_line >= _EVERY_S:
            self._last_line = time.monotonic()
            say(f"memx: {self._doing()}  {self._numbers()}")

    def _doing(self) -> str:
        going = [(case, done, total) for case, (done, total) in self._ingest.items() if done < total]
        if not going:
            return "asking"
        case, done, total = going[0]
        more = f" (+{len(going) - 1} more)" if len(going) > 1 else ""
        of = f"{done}/{total}" if done else f"{total} sessions"
        return safe_line(f"ingesting {case} {of}{more}", 34)

    def _numbers(self) -> str:
        parts = _pace(self._done, self._total, self._asked, time.monotonic() - self._started)
        parts += [f"{outcome} {self._counts[outcome]}" for outcome in Outcome if self._counts[outcome]]
        return "  ".join(parts)

    def _say(self, text: str) -> None:
        if self._bar is not None:
            from rich.text import Text

            from memx.text.gate import safe

            self._bar.console.print(Text(f"memx: {safe(text)}"))
        else:
            say(f"memx: {text}")


class CountProgress(AbstractContextManager["CountProgress"]):
    """Draws how many of a known number of things are done, how fast that goes and what time is left.

    Args:
        doing: what is done, in a word.
        total: how many there are.
    """

    def __init__(self, doing: str, total: int) -> None:
        self._doing = doing
        self._total = total
        self._done = 0
        self._started = self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> CountProgress:
        if sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task(self._doing, total=self._total, numbers=f"0/{self._total}")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more is done. Call it from one thread."""
        self._done += 1
        numbers = "  ".join(_pace(self._done, self._total, self._done, time.monotonic() - self._started))
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, numbers=numbers)
        elif time.monotonic() - self._last_line >= _EVERY_S or self._done == self._total:
            self._last_line = time.monotonic()
            say(f"memx: {self._doing}  {numbers}")


def _bar() -> Progress:
    """A bar on stderr that goes when it is done; each task has a field ``numbers``."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[numbers]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True, highlight=False, markup=False),
        transient=True,
    )


def _pace(done: int, total: int | None, asked: int, elapsed: float) -> list[str]:
    """How far, how fast and what time is left; ``asked`` of the ``done`` were done in ``elapsed`` seconds."""
    parts = [f"{done}/{total}" if total is not None else str(done)]
    if asked and elapsed > 0.5:
        rate = asked / elapsed
        parts.append(f"{rate:.1f} q/s")
        if total is not None:
            parts.append(f"{_clock((total - done) / rate)} left")
    return parts


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def say_notice(event: Event) -> None:
    """The listener of commands that draw no progress: what is waited for, as a line on stderr."""
    if isinstance(event, Notice):
        say(f"memx: {event.text}")


class DownloadProgress(AbstractContextManager["DownloadProgress"]):
    """Draws the arrival of files: a bar with rate and time left in a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last_line = time.monotonic()

    def __enter__(self) -> DownloadProgress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True, highlight=False, markup=False),
            )
            self._bar.start()
        return self

    def __call__(self, path: str, done: int, total: int | None) -> None:
        if self._bar is not None:
            if path not in self._tasks:
                self._tasks[path] = self._bar.add_task(safe_line(path, 40), total=total)
            self._bar.update(self._tasks[path], completed=done, total=total)
        elif time.monotonic() - self._last_line >= _EVERY_S:
            self._last_line = time.monotonic()
            of = f" of {total / 1e6:.1f}" if total else ""
            say(f"memx: {path}: {done / 1e6:.1f}{of} MB")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
