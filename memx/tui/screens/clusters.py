"""FAILs by mechanism: how many share one, and what mending it would be worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from memx.engine.store.reader import RunRow, Where
from memx.errors import MemxError
from memx.tui.actions import bindings
from memx.tui.document import Line, plain
from memx.tui.screens.base import BaseScreen
from memx.tui.widgets.page import Page
from memx.tui.widgets.rows import Cells, Column, Rows

if TYPE_CHECKING:
    from memx.diagnose.clusters import Cluster

_COLUMNS = (
    Column("mechanism", 32),
    Column("count", 6, right=True),
    Column("of FAILs", 9, right=True),
    Column("worth", 9, right=True),
    Column("triaged", 9, right=True, from_width=70),
    Column("example", 0, from_width=70),
)


class ClusterRows:
    """Mechanisms as rows; ``triaged`` are the questions that someone has decided about."""

    def __init__(self, found: list[Cluster], triaged: frozenset[str]) -> None:
        self.found = found
        self._triaged = triaged

    def __len__(self) -> int:
        return len(self.found)

    def cells(self, index: int) -> Cells:
        """The cells of a row."""
        one = self.found[index]
        return {
            "mechanism": (str(one.mechanism), "key"),
            "count": (f"{len(one.question_ids):,}", "text"),
            "of FAILs": (f"{100 * one.share:.0f} %", "text"),
            "worth": (f"+{one.worth:.1f} pt", "text"),
            "triaged": (f"{len(self._triaged.intersection(one.question_ids)):,}", "dim"),
            "example": (one.example, "dim"),
        }


class ClustersScreen(BaseScreen):
    """Choose a mechanism."""

    title_words = "Clusters"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("clusters")]

    def __init__(self, run: RunRow) -> None:
        super().__init__(classes="clusters")
        self.run_row = run
        self.rows = ClusterRows([], frozenset())

    def body(self) -> ComposeResult:
        yield Rows(_COLUMNS, empty="Reading the traces of the run ...", id="table")
        yield Page(id="about", can_focus=False)

    def on_mount(self) -> None:
        self.crumb([self.run_row.run_id, "clusters"])
        self.query_one("#table", Rows).show(self.rows)
        self.give_focus(self.query_one("#table"))
        self.data_changed()

    def data_changed(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True, group="clusters", exit_on_error=False)

    def _read(self) -> None:
        from memx.diagnose.clusters import clusters
        from memx.engine.store.marks import Marks

        store = self.debug_app.search_store
        try:
            found = clusters(store.traces(self.run_row.run_id))
            triaged = Marks(store).triaged(self.run_row)
        except MemxError as error:
            self.app.call_from_thread(self.debug_app.show_error, error)
            return
        self.app.call_from_thread(self._shown, found, triaged)

    def _shown(self, found: list[Cluster], triaged: frozenset[str]) -> None:
        if not self.whole:
            return
        self.rows = ClusterRows(found, triaged)
        table = self.query_one("#table", Rows)
        table.empty = "This run has no diagnosed FAIL."
        table.show(self.rows, table.cursor)
        failed = sum(len(one.question_ids) for one in found)
        self.crumb([self.run_row.run_id, "clusters"], f"{failed:,} FAILs in {len(found)} mechanisms")

    def on_rows_moved(self, message: Rows.Moved) -> None:
        if message.index < len(self.rows):
            self.query_one("#about", Page).show(self._about(self.rows.found[message.index]))

    def _about(self, one: Cluster) -> list[Line]:
        return [
            Line(str(one.mechanism), "head"),
            Line(one.hypothesis),
            Line(
                f"{len(one.question_ids):,} FAILs; passing all of them would add {one.worth:.1f} points of accuracy",
                "dim",
            ),
            Line(one.example, "dim", "surest example  "),
        ]

    def on_rows_opened(self, message: Rows.Opened) -> None:
        one = self.rows.found[message.index]
        self.debug_app.open_run(self.run_row, self._where(one), str(one.mechanism))

    def _where(self, one: Cluster) -> Where:
        return Where(f"question_id IN ({','.join('?' * len(one.question_ids))})", one.question_ids)

    def copied(self) -> tuple[str, str]:
        lines = [Line(f"{len(one.question_ids):>5}  +{one.worth:.1f} pt  {one.mechanism}: {one.hypothesis}")
                 for one in self.rows.found]  # fmt: skip
        return plain(lines, 120), "clusters"

    def exported(self) -> tuple[RunRow, Where, str] | None:
        if not len(self.rows):
            return None
        one = self.rows.found[self.query_one("#table", Rows).cursor]
        return self.run_row, self._where(one), f"{self.run_row.run_id} {one.mechanism}"

    def command(self) -> list[str]:
        return ["memx", "explain", self.run_row.run_id]
