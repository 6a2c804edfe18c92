"""The second screen: the questions of a run, failed first, filtered as one types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.worker import get_current_worker

from memx.engine.store import filters
from memx.engine.store.marks import Triage
from memx.engine.store.reader import QuestionRow, RunRow, Store, Where
from memx.errors import MemxError, UsageError
from memx.model import Cause
from memx.tui.actions import bindings
from memx.tui.document import Line, plain
from memx.tui.filtering import Filtering
from memx.tui.listing import ORDERS, Listing
from memx.tui.question_rows import COLUMNS, QuestionRows, preview
from memx.tui.triage import TriageScreen, progress_words
from memx.tui.widgets.filterline import FilterLine
from memx.tui.widgets.page import Page
from memx.tui.widgets.rows import Rows


class QuestionsScreen(TriageScreen, Filtering):
    """Choose a question.

    Args:
        run: whose questions.
        store: read in the thread of the app.
        base, name: the part of the run that is listed, and what it is called; all of it by default.
    """

    title_words = "Questions"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("questions", "triage", "filters")]

    def __init__(self, run: RunRow, store: Store, base: Where | None = None, name: str = "questions") -> None:
        super().__init__(classes="questions")
        self.listing = Listing(store, run, base, name)
        self.selected: set[int] = set()
        self._zoomed = False
        self._progress = ""
        self._previewed: tuple[QuestionRow | None, Triage] = (None, Triage())

    def body(self) -> ComposeResult:
        yield FilterLine(self.values, id="filter")
        with Container(id="split"):
            yield Rows(COLUMNS, id="table")
            yield Page(id="preview", can_focus=False)

    def on_mount(self) -> None:
        self.data_changed()
        self.give_focus(self.table)
        self.call_after_refresh(self._warm_up)

    def _warm_up(self) -> None:
        """Have the run ready for searching before the first letter is typed."""
        search = self.attempt(self.debug_app.run_search)
        if search is not None:
            run_id = self.listing.run.run_id
            self.run_worker(lambda: search.count(run_id), thread=True, group="warm-up", exit_on_error=False)

    @property
    def table(self) -> Rows:
        """The table."""
        return self.query_one("#table", Rows)

    def data_changed(self) -> None:
        self._count_triage()
        self._shown(self.attempt(self._reload, self.table.cursor) or 0)

    def _reload(self, cursor: int) -> int:
        """Read the list again; returns where the question under the cursor stands now."""
        here = self.listing.row(cursor)
        self.listing.reload()
        self.selected &= set(self.listing.keys)
        return (self.listing.index_of(here.question_id) if here else None) or 0

    def _shown(self, cursor: int = 0) -> None:
        """Draw what the listing holds now."""
        listing = self.listing
        if listing.gone:
            self.table.empty = "This run is no longer stored; esc goes back."
        elif listing.filter:
            self.table.empty = "No question matches the filter; esc clears it."
        else:
            self.table.empty = "No question is stored yet."
        self.table.show(QuestionRows(listing, self.triage_of, self.selected), cursor)
        if not len(listing):
            self._previewed = (None, Triage())
            self.query_one("#preview", Page).show([])
        self._say_where()

    def _count_triage(self) -> None:
        """Read how far the triage is; not at each keystroke of a filter, which does not change it."""
        counts = self.attempt(self.debug_app.marks.progress, self.listing.run) or {}
        self._progress = progress_words(dict(counts))

    def _say_where(self) -> None:
        listing = self.listing
        words = [
            self._progress,
            listing.order_name,
            f"{len(self.selected):,} selected" if self.selected else "",
            f"{len(listing):,} of {listing.total:,} shown",
        ]
        # What matters more stands further to the right; what has no room beside the way here goes from the left.
        words = [word for word in words if word]
        room = self.size.width - len(f" memx > {listing.run.run_id} > {listing.name}  ")
        while len(words) > 1 and len("   ".join(words)) > room:
            del words[0]
        if len(words[0]) > room:
            words = [words[0].removesuffix(" shown")]
        self.crumb([listing.run.run_id, listing.name], "   ".join(words))

    def on_resize(self) -> None:
        super().on_resize()
        self._say_where()

    def on_rows_moved(self, message: Rows.Moved) -> None:
        row = self.attempt(self.listing.row, message.index)
        triage = self.triage_of(row.question_id) if row else Triage()
        if (row, triage) != self._previewed:
            self._previewed = (row, triage)
            self.query_one("#preview", Page).show(self._preview(row, triage) if row else [])

    def _preview(self, row: QuestionRow, triage: Triage) -> list[Line]:
        tag = self.attempt(self.debug_app.store.tag, self.listing.run.run_id, row.question_id)
        return preview(row, triage, tag or "")

    def on_rows_opened(self, message: Rows.Opened) -> None:
        self.debug_app.open_question(self.listing, message.index)

    def go_to(self, index: int) -> None:
        """Put the cursor on a row; for the question screen, which moves along the list."""
        self.table.cursor = index

    # ------------------------------------------------------------------------------------------------ filter and order

    def on_filter_line_changed(self, message: FilterLine.Changed) -> None:
        self.search(message.text, self.listing.order)

    def search(self, text: str, order: int) -> None:
        """Filter and sort in a worker; the newest request wins."""
        line = self.query_one("#filter", FilterLine)
        try:
            filters.parse(text)
        except UsageError as error:
            line.complain(str(error))
            return
        line.complain("")
        store = self.attempt(self.debug_app.run_search)
        if store is not None:
            self.run_worker(
                lambda: self._search(text, order, store),
                thread=True, exclusive=True, group="search", exit_on_error=False,
            )  # fmt: skip

    def _search(self, text: str, order: int, store: Store) -> None:
        worker = get_current_worker()
        try:
            found = self.listing.search(text, order, store)
        except MemxError as error:
            self.app.call_from_thread(self.debug_app.show_error, error)
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._found, text, order, *found)

    def _found(self, text: str, order: int, keys: list[int], total: int) -> None:
        if not self.whole:
            return
        same = keys == self.listing.keys and order == self.listing.order and not self.listing.gone
        self.listing.accept(text, order, keys, total)
        if same and keys:
            # One more letter of a word that is clear already: nothing but the way here has changed.
            self._say_where()
            self.table.cursor = 0
        else:
            self._shown()

    def filtered_run(self) -> RunRow:
        return self.listing.run

    def filter_now(self) -> str:
        return self.listing.filter

    def use_filter(self, text: str) -> None:
        self.query_one("#filter", FilterLine).set(text)
        self.search(text, self.listing.order)

    def action_filter(self) -> None:
        self.query_one("#filter", FilterLine).begin()

    def action_cycle_sort(self) -> None:
        self.search(self.listing.filter, (self.listing.order + 1) % len(ORDERS))

    def action_cycle_cause(self) -> None:
        """Put the next cause that the run has into the filter, and after the last take it out again."""
        rest, now = without_cause(self.listing.filter)
        facets = self.attempt(self.debug_app.store.facets, self.listing.run.run_id, "cause", self.listing.where(rest))
        if not facets:
            self.notify("no question here has a cause", timeout=3)
            return
        causes = list(facets)
        place = causes.index(now) + 1 if now in causes else 0
        self.use_filter(f"cause={causes[place]} {rest}".strip() if place < len(causes) else rest)

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self.set_class(self._zoomed, "-no-preview")

    def action_back(self) -> None:
        if self.selected:
            self._select(set())
        elif self.listing.filter or self.query_one("#filter", FilterLine).text:
            self.use_filter("")
        else:
            super().action_back()

    def action_clusters(self) -> None:
        self.debug_app.open_clusters(self.listing.run)

    # ---------------------------------------------------------------------------------------------- selection and marks

    def _select(self, keys: set[int]) -> None:
        self.selected.clear()
        self.selected |= keys
        self.table.refresh()
        self._say_where()

    def action_select(self) -> None:
        if len(self.listing):
            self._select(self.selected ^ {self.listing.key(self.table.cursor)})
            self.table.action_down()

    def action_select_all(self) -> None:
        keys = set(self.listing.keys)
        self._select(set() if keys <= self.selected else keys)

    def marked_run(self) -> RunRow:
        return self.listing.run

    def _chosen(self) -> list[int]:
        """Keys of the selected rows, in order, or of the row under the cursor."""
        if self.selected:
            return [key for key in self.listing.keys if key in self.selected]
        return [self.listing.key(self.table.cursor)] if len(self.listing) else []

    def targets(self) -> Sequence[str]:
        return self.debug_app.store.question_ids(self._chosen())

    def marked(self) -> None:
        self.table.refresh()
        self.on_rows_moved(Rows.Moved(self.table.cursor))
        self._count_triage()
        self._say_where()

    def action_repeat(self) -> None:
        mark = self.debug_app.last_mark
        if mark is None:
            self.notify("nothing to repeat yet; m marks", timeout=3)
            return
        self.put(self.attempt(self.targets) or (), mark)
        self.table.action_down()

    # --------------------------------------------------------------------------------------------------- taking it out

    def copied(self) -> tuple[str, str]:
        row = self.attempt(self.listing.row, self.table.cursor)
        if row is None:
            return "", "nothing"
        return plain(self._preview(row, self.triage_of(row.question_id)), 100), row.question_id

    def exported(self) -> tuple[RunRow, Where, str]:
        from memx.tui.exporting import among

        if self.selected:
            return self.listing.run, among(self._chosen()), f"{self.listing.run.run_id}-selected"
        name = f"{self.listing.run.run_id} {self.listing.name} {self.listing.filter}".strip()
        return self.listing.run, self.listing.where(self.listing.filter), name

    def command(self) -> list[str]:
        where = ["--where", self.listing.filter] if self.listing.filter else []
        return ["memx", "show", self.listing.run.run_id, *where]


def without_cause(text: str) -> tuple[str, str]:
    """A filter without its ``cause=`` term, and the cause that it named."""
    for term in filters.terms(text):
        if term.name == "cause" and term.op == "=" and term.value in tuple(Cause):
            return f"{text[: term.start]}{text[term.end :]}".strip(), term.value
    return text, ""
