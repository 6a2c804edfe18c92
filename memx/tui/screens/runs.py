"""The first screen: the runs of the directory, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from memx.engine.store.reader import RunRow, Where
from memx.tui.actions import bindings
from memx.tui.document import Line, plain, shortened
from memx.tui.jobs import Pace, clock
from memx.tui.running import Working
from memx.tui.widgets.page import Page
from memx.tui.widgets.rows import Cells, Column, Rows

_COLUMNS = (
    Column("pick", 4),
    Column("run", 20),
    Column("when", 11, from_width=92),
    Column("system", 12, from_width=66),
    Column("dataset", 12, from_width=70),
    Column("score", 7, right=True),
    Column("fail", 5, right=True),
    Column("questions", 11, from_width=110, right=True),
    Column("state", 0),
)
STATE_ROLE = {"finished": "good", "running": "warn", "interrupted": "warn", "failed": "bad"}


class RunList:
    """The runs as rows.

    Args:
        pace: how fast the running ones go.
    """

    def __init__(self, runs: list[RunRow], pace: Pace | None = None) -> None:
        self.runs = runs
        self._pace = pace or Pace()
        self.picked: list[str] = []

    def __len__(self) -> int:
        return len(self.runs)

    def cells(self, index: int) -> Cells:
        run = self.runs[index]
        failed = run.summary.get("failed")
        total = run.question_total
        return {
            "pick": ("AB"[self.picked.index(run.run_id)] if run.run_id in self.picked else "", "mark"),
            "run": (run.run_id, "key"),
            "when": (_short(run.started_at), "text"),
            "system": (f"{run.adapter} (control)" if is_arm(run) else run.adapter, "text"),
            "dataset": (run.dataset, "text"),
            "score": (score(run), "text"),
            "fail": ("" if failed is None else f"{failed:,}", "text"),
            "questions": (f"{run.done:,}" if total in (None, run.done) else f"{run.done:,}/{total:,}", "text"),
            "state": (self._state(run), STATE_ROLE.get(run.state, "text")),
        }

    def _state(self, run: RunRow) -> str:
        left = self._pace.left(run) if run.state == "running" else None
        return state(run) if left is None else f"{state(run)} {clock(left)} left"


class RunsScreen(Working):
    """Choose a run."""

    title_words = "Runs"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("runs", "work")]

    def __init__(self) -> None:
        super().__init__(id="runs")
        self.list = RunList([])
        self._arms_shown = False

    def body(self) -> ComposeResult:
        yield Rows(_COLUMNS, empty="No run is stored here. n starts one, or outside: memx run", id="table")
        yield Page(id="about", can_focus=False)

    def on_mount(self) -> None:
        self.data_changed()
        self.give_focus(self.query_one("#table"))

    def data_changed(self) -> None:
        stored = self.attempt(self.debug_app.store.runs)
        if stored is None:
            return
        # A control that is under way is work like any other; afterwards its result stands with the run it was made for.
        runs = [run for run in stored if self._arms_shown or not is_arm(run) or run.state == "running"]
        hidden = len(stored) - len(runs)
        table = self.query_one("#table", Rows)
        known = {run.run_id for run in self.list.runs}
        here = self.list.runs[table.cursor].run_id if self.list.runs else None
        picked = [run_id for run_id in self.list.picked if run_id in {run.run_id for run in runs}]
        for run in runs:
            if run.state == "running":
                self.debug_app.pace.note(run)
        self.list = RunList(runs, self.debug_app.pace)
        self.list.picked = picked
        ours = {job.pid for job in self.debug_app.jobs if job.code is None}
        # The cursor goes to a run that was just started from here; else it stays on its run.
        begun = next((n for n, run in enumerate(runs) if run.run_id not in known and run.pid in ours), None)
        stays = next((n for n, run in enumerate(runs) if run.run_id == here), 0)
        table.show(self.list, stays if begun is None else begun)
        words = f"{len(runs)} run{'s' * (len(runs) != 1)}"
        words += f", {hidden} control{'s' * (hidden != 1)} (z)" if hidden else ""
        self.crumb(["runs"], f"{words}   {self.debug_app.store.directory}")

    def on_rows_moved(self, message: Rows.Moved) -> None:
        if self.list.runs:
            self.query_one("#about", Page).show(about(self.list.runs[message.index], self.debug_app.pace))

    def on_rows_opened(self, message: Rows.Opened) -> None:
        self.debug_app.open_run(self.list.runs[message.index])

    def action_pick(self) -> None:
        if not self.list.runs:
            return
        table = self.query_one("#table", Rows)
        run_id = self.list.runs[table.cursor].run_id
        picked = self.list.picked
        if run_id in picked:
            picked.remove(run_id)
        else:
            # A third pick takes the place of B.
            del picked[1:]
            picked.append(run_id)
        table.refresh()
        table.action_down()

    def action_compare(self) -> None:
        by_id = {run.run_id: run for run in self.list.runs}
        picked = [by_id[run_id] for run_id in self.list.picked if run_id in by_id]
        if len(picked) != 2:
            self.notify("pick two runs with space: A, then B", timeout=4)
            return
        self.debug_app.open_compare(*picked)

    def chosen_run(self) -> RunRow | None:
        return self.list.runs[self.query_one("#table", Rows).cursor] if self.list.runs else None

    def action_arms(self) -> None:
        self._arms_shown = not self._arms_shown
        self.data_changed()

    def action_summary(self) -> None:
        from memx.tui.screens.summary import SummaryScreen

        run = self._run()
        if run is not None:
            self.app.push_screen(SummaryScreen(run))

    def action_new(self) -> None:
        from memx.tui.running import start_run

        start_run(self, self.chosen_run())

    def action_watch(self) -> None:
        run = self._run()
        if run is None:
            return
        if run.state == "running":
            self.debug_app.watch_run(run)
        else:
            self.notify("it is not running; enter opens it, n starts another", timeout=3)

    def copied(self) -> tuple[str, str]:
        if not self.list.runs:
            return "", "nothing"
        run = self.list.runs[self.query_one("#table", Rows).cursor]
        return plain(about(run), 100), run.run_id

    def exported(self) -> tuple[RunRow, Where, str] | None:
        if not self.list.runs:
            return None
        run = self.list.runs[self.query_one("#table", Rows).cursor]
        return run, Where(), run.run_id

    def action_back(self) -> None:
        """There is nothing behind the first screen; leaving is ``q``."""
        self.notify("q quits", timeout=2)


def state(run: RunRow) -> str:
    """The state of a run in words; a running one says how far it is."""
    if run.state == "running" and run.question_total:
        return f"RUNNING {100 * run.done // run.question_total}%"
    return run.state.upper() if run.state != "finished" else "finished"


def score(run: RunRow) -> str:
    """Accuracy in percent; nothing where no question was judged."""
    value = (run.summary.get("accuracy") or {}).get("value")
    return "" if value is None else f"{100 * value:.1f} %"


def about(run: RunRow, pace: Pace | None = None) -> list[Line]:
    """What the pane under the list says of a run; of a running one with its pace."""
    lines = [Line(f"{run.run_id}  {run.adapter} on {run.dataset}, judged by {run.judge}", "head")]
    summary = run.summary
    # A run that goes on after an interrupt still has the summary of that.
    if summary and run.state != "running":
        counts = ("passed", "failed", "unjudged", "errors")
        lines.append(Line("  ".join(f"{name} {summary[name]:,}" for name in counts if name in summary), "text"))
        causes = summary.get("causes") or {}
        named = "  ".join(f"{name} {n:,}" for name, n in sorted(causes.items(), key=lambda pair: -pair[1]) if n)
        if named:
            lines.append(Line(named, "text", "why  "))
        if controls := summary.get("controls"):
            lines.append(Line(_controls(controls), "text", "controls  "))
        if found := summary.get("findings"):
            more = f"   (i shows {len(found) - 1} more)" if len(found) > 1 else ""
            lines.append(Line(f"{shortened(found[0]['text'], 150)}{more}", "warn", "noticed  "))
    else:
        rate, left = (pace.rate(run), pace.left(run)) if pace and run.state == "running" else (None, None)
        words = [f"{run.done:,} of {run.question_total or '?'} questions are done"]
        words += [f"{rate:.1f} questions/s"] if rate else []
        words += [f"{clock(left)} left"] if left is not None else []
        lines.append(Line("   ".join(words), "text"))
    # What is off, empty or said above already would only hide the rest.
    said = ("dataset", "adapter", "judge_model")
    settings = "  ".join(f"{name} {value}" for name, value in run.settings.items() if value and name not in said)
    return [*lines, Line(settings, "dim")]


def is_arm(run: RunRow) -> bool:
    """Whether it is a control of another run."""
    return "control" in run.manifest


def _controls(controls: Mapping[str, Any]) -> str:
    """Accuracy of each control arm, then how many questions have which tag."""
    arms = [f"{name} {100 * arm['value']:.1f} %" for name, arm in controls["arms"].items() if arm["value"] is not None]
    return "  ".join([*arms, *(f"{tag} {count:,}" for tag, count in controls["tags"].items() if count)])


def _short(when: datetime) -> str:
    return f"{when:%m-%d %H:%M}"
