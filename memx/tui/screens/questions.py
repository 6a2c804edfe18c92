"""The second screen: the questions of a run, failed first, filtered as one types."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.worker import get_current_worker

from memx.engine.store import filters
from memx.engine.store.reader import QuestionRow, RunRow, Store
from memx.errors import MemxError, UsageError
from memx.model import Cause
from memx.tui.actions import bindings
from memx.tui.document import Line, shortened
from memx.tui.listing import ORDERS, Listing
from memx.tui.pages.verdict import OUTCOME_ROLE, labelled
from memx.tui.screens.base import BaseScreen
from memx.tui.widgets.filterline import FilterLine
from memx.tui.widgets.page import Page
from memx.tui.widgets.rows import Cells, Column, Rows

_COLUMNS = (
    Column("verdict", 8),
    Column("stage", 10, from_width=70),
    Column("cause", 16),
    Column("rank", 4, right=True),
    Column("category", 11, from_width=70),
    Column("question", 0),
)
#: Characters of a text that the preview shows.
_PREVIEW = 1500


class QuestionRows:
    """The listing as rows of the table."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing

    def __len__(self) -> int:
        return len(self.listing)

    def cells(self, index: int) -> Cells:
        try:
            row = self.listing.row(index)
        except MemxError as error:
            return {"question": (str(error), "bad")}
        if row is None:
            return {"question": ("(no longer stored; r reads again)", "dim")}
        return {
            "verdict": (row.outcome, OUTCOME_ROLE.get(row.outcome, "text")),
            "stage": (row.stage or "", "text"),
            "cause": (row.cause or "", "text"),
            "rank": ("" if row.rank is None else str(row.rank), "text"),
            "category": (row.category, "text"),
            "question": (row.question, "text"),
        }


class QuestionsScreen(BaseScreen):
    """Choose a question."""

    title_words = "Questions"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("questions")]

    def __init__(self, run: RunRow, store: Store) -> None:
        super().__init__(classes="questions")
        self.run_row = run
        self.listing = Listing(store, run)
        self._zoomed = False

    def body(self) -> ComposeResult:
        yield FilterLine(id="filter")
        with Container(id="split"):
            yield Rows(_COLUMNS, id="table")
            yield Page(id="preview", can_focus=False)

    def on_mount(self) -> None:
        self.data_changed()
        self.give_focus(self.query_one("#table"))

    def data_changed(self) -> None:
        table = self.query_one("#table", Rows)
        self._shown(self.attempt(self._reload, table.cursor) or 0)

    def _reload(self, cursor: int) -> int:
        """Read the list again; returns where the question under the cursor stands now."""
        here = self.listing.row(cursor)
        self.listing.reload()
        return (self.listing.index_of(here.question_id) if here else None) or 0

    def _shown(self, cursor: int = 0) -> None:
        """Draw what the listing holds now."""
        listing = self.listing
        table = self.query_one("#table", Rows)
        if listing.gone:
            table.empty = "This run is no longer stored; esc goes back."
        else:
            table.empty = (
                "No question matches the filter; esc clears it." if listing.filter else "No question is stored yet."
            )
        table.show(QuestionRows(listing), cursor)
        if not len(listing):
            self.query_one("#preview", Page).show([])
        self.crumb(
            [self.run_row.run_id, self.run_row.adapter, "questions"],
            f"{listing.order_name}   {len(listing):,} of {listing.total:,} shown",
        )

    def on_rows_moved(self, message: Rows.Moved) -> None:
        row = self.attempt(self.listing.row, message.index)
        self.query_one("#preview", Page).show(preview(row) if row else [])

    def on_rows_opened(self, message: Rows.Opened) -> None:
        self.debug_app.open_question(self.listing, message.index)

    def go_to(self, index: int) -> None:
        """Put the cursor on a row; for the question screen, which moves along the list."""
        self.query_one("#table", Rows).cursor = index

    # ------------------------------------------------------------------------------------------------ filter and order

    def on_filter_line_changed(self, message: FilterLine.Changed) -> None:
        self.search(message.text, self.listing.order)

    def on_filter_line_left(self, message: FilterLine.Left) -> None:
        self.give_focus(self.query_one("#table"))

    def search(self, text: str, order: int) -> None:
        """Filter and sort in a worker; the newest request wins."""
        line = self.query_one("#filter", FilterLine)
        try:
            filters.parse(text)
        except UsageError as error:
            line.complain(str(error))
            return
        line.complain("")
        self.run_worker(
            lambda: self._search(text, order), thread=True, exclusive=True, group="search", exit_on_error=False
        )

    def _search(self, text: str, order: int) -> None:
        worker = get_current_worker()
        try:
            found = self.listing.search(text, order, self.debug_app.search_store)
        except MemxError as error:
            self.app.call_from_thread(self.debug_app.show_error, error)
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._found, text, order, *found)

    def _found(self, text: str, order: int, keys: list[int], total: int) -> None:
        self.listing.accept(text, order, keys, total)
        self._shown()

    def action_filter(self) -> None:
        self.query_one("#filter", FilterLine).begin()

    def action_cycle_sort(self) -> None:
        self.search(self.listing.filter, (self.listing.order + 1) % len(ORDERS))

    def action_cycle_cause(self) -> None:
        """Put the next cause that the run has into the filter, and after the last take it out again."""
        rest, now = without_cause(self.listing.filter)
        facets = self.attempt(self.debug_app.store.facets, self.run_row.run_id, "cause", filters.parse(rest))
        if not facets:
            self.notify("no question here has a cause", timeout=3)
            return
        causes = list(facets)
        place = causes.index(now) + 1 if now in causes else 0
        wanted = f"cause={causes[place]} {rest}".strip() if place < len(causes) else rest
        self.query_one("#filter", FilterLine).set(wanted)
        self.search(wanted, self.listing.order)

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self.set_class(self._zoomed, "-no-preview")

    def action_back(self) -> None:
        if self.listing.filter or self.query_one("#filter", FilterLine).text:
            self.query_one("#filter", FilterLine).set("")
            self.search("", self.listing.order)
            return
        super().action_back()


def without_cause(text: str) -> tuple[str, str]:
    """A filter without its ``cause=`` term, and the cause that it named."""
    for term in filters.terms(text):
        if term.name == "cause" and term.op == "=" and term.value in tuple(Cause):
            return f"{text[: term.start]}{text[term.end :]}".strip(), term.value
    return text, ""


def preview(row: QuestionRow) -> list[Line]:
    """What the pane beside the list says of a question."""
    lines = [
        Line(shortened(row.question, _PREVIEW), "head"),
        labelled("gold", shortened(row.gold, _PREVIEW) or "(empty)"),
        labelled("got", "(none)" if row.candidate is None else shortened(row.candidate, 600) or "(empty)"),
        labelled(row.outcome, shortened(row.why, _PREVIEW), OUTCOME_ROLE.get(row.outcome, "text")),
    ]
    if row.cause:
        lines.append(labelled("why", f"{row.stage} > {row.cause}: {shortened(row.reason or '', _PREVIEW)}", "warn"))
    lines.append(labelled("id", row.question_id, "dim"))
    return lines
