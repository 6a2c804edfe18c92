"""Watching a run, or another command, while it goes: how far, how fast, what it says, and stopping it."""

from __future__ import annotations

import time
from collections import Counter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from memx.engine.store.reader import RunRow, Where
from memx.errors import MemxError
from memx.tui.actions import bindings
from memx.tui.document import Line, plain
from memx.tui.jobs import Job, clock, tail
from memx.tui.running import Working
from memx.tui.screens.runs import about, score
from memx.tui.widgets.page import Page

#: Seconds between two looks.
_EVERY_S = 0.5
_BAR = 24


class WatchScreen(Working):
    """One command of this UI (``job``), or a run that another process writes (``run``)."""

    title_words = "Watch"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("watch", "work")]

    def __init__(self, job: Job | None = None, run: RunRow | None = None) -> None:
        super().__init__(classes="watch")
        self.job = job
        self.run_row = run
        self._said = ""

    def body(self) -> ComposeResult:
        yield Page(id="facts", can_focus=False)
        yield Page(id="page")

    def on_mount(self) -> None:
        self.give_focus(self.query_one("#page"))
        self._look()
        self.set_interval(_EVERY_S, self.tick)

    def chosen_run(self) -> RunRow | None:
        return self.run_row

    def tick(self) -> None:
        """Look again."""
        if self.whole:
            self._look()

    def _look(self) -> None:
        try:
            self._find()
        except MemxError as error:
            self.query_one("#facts", Page).show([Line(str(error), "bad")])
            return
        facts = self.query_one("#facts", Page)
        facts.show(self._facts(), top=False)
        self._show_output()
        name = self.run_row.run_id if self.run_row else f"memx {self.job.verb if self.job else 'run'}"
        self.crumb(["runs", name], self._state())

    def _find(self) -> None:
        store = self.debug_app.store
        if self.run_row is not None:
            self.run_row = store.run(self.run_row.run_id)
        elif self.job is not None:
            self.run_row = self.job.run_of(store)
        if self.run_row is not None:
            self.debug_app.pace.note(self.run_row)

    def _state(self) -> str:
        if self.job is not None and self.job.code is None:
            return "STOPPING" if self.job.stopping else "RUNNING"
        if self.job is not None and self.job.code not in (0, 130):
            return f"ended with {self.job.code}"
        if self.run_row is None:
            return "ended"
        return self.run_row.state.upper() if self.run_row.state != "finished" else "finished"

    def _facts(self) -> list[Line]:
        lines = []
        if self.job is not None:
            lines.append(Line(f"memx {' '.join(self.job.arguments)}", "dim"))
        run = self.run_row
        if run is None:
            going = self.job is not None and self.job.code is None
            elapsed = clock(time.monotonic() - self.job.begun) if self.job and going else ""
            return [*lines, Line(f"{'going since' if going else 'ended'} {elapsed}".strip(), "text")]
        lines.append(Line(f"{run.adapter} on {run.dataset}, judged by {run.judge}", "head"))
        lines += [_bar(run), *self._pace(run)]
        if run.state == "running":
            return lines + self._counts(run)
        score_words = f"score {score(run) or 'none'}" + ("" if run.state == "finished" else "   R goes on with it")
        return [*lines, Line(score_words, "head"), *about(run)[1:-1]]

    def _pace(self, run: RunRow) -> list[Line]:
        pace, words = self.debug_app.pace, []
        if run.state == "running":
            rate, left = pace.rate(run), pace.left(run)
            words.append("no question is finished yet" if not run.done else "")
            words.append(f"{rate:.1f} questions/s" if rate else "")
            words.append(f"{clock(left)} left" if left is not None else "")
        if self.job is not None and self.job.code is None:
            words.append(f"{clock(time.monotonic() - self.job.begun)} so far")
        elif run.finished_at is not None:
            words.append(f"took {clock((run.finished_at - run.started_at).total_seconds())}")
        shown = "   ".join(filter(None, words))
        return [Line(shown, "text")] if shown else []

    def _counts(self, run: RunRow) -> list[Line]:
        store = self.debug_app.store
        outcomes = store.facets(run.run_id, "outcome")
        causes = store.facets(run.run_id, "cause", Where("outcome = 'FAIL'"))
        lines = [Line("  ".join(f"{name} {n:,}" for name, n in outcomes.items()), "text")] if outcomes else []
        if causes:
            lines.append(Line("  ".join(f"{name} {n:,}" for name, n in causes.items()), "text", "why  "))
        states = Counter(case.state for case in store.cases(run.run_id))
        lines.append(Line("  ".join(f"{n} {name}" for name, n in states.items()) or "none yet", "dim", "cases  "))
        return lines

    def _show_output(self) -> None:
        page = self.query_one("#page", Page)
        if self.job is not None:
            words = self.job.output() or "(it has said nothing yet)"
        else:
            # A run in the background has its log there.
            logs = self.debug_app.store.directory / "logs"
            words = tail(logs / f"{self.run_row.run_id}.log") if self.run_row else ""
            words = words or "This run was started elsewhere; what it says stands there."
        if words == self._said:
            return
        self._said = words
        at_end = page.scroll_y >= page.max_scroll_y
        page.show([Line(row) for row in words.splitlines()], top=False)
        if at_end:
            page.action_last()

    def data_changed(self) -> None:
        self.tick()

    def action_enter(self) -> None:
        """Go to the questions that are finished by now."""
        if self.run_row is None:
            self.notify("there is no run to open yet", timeout=3)
        else:
            self.debug_app.open_run(self.run_row)

    def copied(self) -> tuple[str, str]:
        return plain([*self.query_one("#facts", Page).lines, *self.query_one("#page", Page).lines], 120), "output"

    def exported(self) -> tuple[RunRow, Where, str] | None:
        return (self.run_row, Where(), self.run_row.run_id) if self.run_row else None

    def command(self) -> list[str]:
        if self.job is not None:
            return ["memx", *self.job.arguments[:-2]]
        return ["memx", "runs", "show", self.run_row.run_id] if self.run_row else ["memx", "runs", "ls"]


def _bar(run: RunRow) -> Line:
    total = run.question_total
    if not total:
        return Line(f"{run.done:,} questions are done", "text")
    filled = min(_BAR, _BAR * run.done // total)
    shown = f"[{'#' * filled}{'.' * (_BAR - filled)}]"
    return Line(f"{shown} {100 * run.done // total:>3} %   {run.done:,} of {total:,} questions", "key")
