"""The Diagnostic Summary of a run, as ``memx runs show`` prints it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from memx.engine.store.reader import RunRow, Where
from memx.errors import MemxError
from memx.tui.document import Line, plain
from memx.tui.screens.base import BaseScreen
from memx.tui.widgets.page import Page


class SummaryScreen(BaseScreen):
    """Summary, control arms and findings of a run, then all that was noticed case by case."""

    title_words = "Summary"
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, run: RunRow) -> None:
        super().__init__(classes="summary")
        self.run = run

    def body(self) -> ComposeResult:
        yield Page(id="page")

    def on_mount(self) -> None:
        self.give_focus(self.query_one("#page"))
        self.crumb(["runs", self.run.run_id, "summary"])
        self.data_changed()

    def data_changed(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True, exit_on_error=False)

    def _read(self) -> None:
        # Counting 20,000 questions takes a moment, and what counts them is not loaded by the first paint.
        from memx.engine.summary import summarize
        from memx.engine.summary_text import summary_text

        store, run_id = self.debug_app.search_store, self.run.run_id
        try:
            run = store.run(run_id)
            summary = summarize(store, run_id, run.summary.get("llm"), run.summary.get("judge"))
            cases = store.cases(run_id)
        except MemxError as error:
            self.app.call_from_thread(self.debug_app.show_error, error)
            return
        # Where a row has no room its bar goes.
        lines = [Line(row, short=row.rstrip("#.")) for row in summary_text(run, summary).splitlines()]
        lines += [Line(finding, "text", f"{case.case_id}  ") for case in cases for finding in case.findings]
        self.app.call_from_thread(self._show, lines)

    def _show(self, lines: list[Line]) -> None:
        if self.whole:
            self.query_one("#page", Page).show(lines, top=False)

    def copied(self) -> tuple[str, str]:
        return plain(self.query_one("#page", Page).lines, 100), "summary"

    def exported(self) -> tuple[RunRow, Where, str] | None:
        return self.run, Where(), self.run.run_id

    def command(self) -> list[str]:
        return ["memx", "runs", "show", self.run.run_id]
