"""Two runs of one dataset side by side: the four-way table, the flips, and the stage that each side gives."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from memx.engine.store import filters
from memx.engine.store.pairs import PairRow, difference, pair_rows
from memx.engine.store.reader import RunRow, Where
from memx.errors import MemxError, UsageError
from memx.tui.actions import bindings
from memx.tui.document import Line, plain, shortened
from memx.tui.filtering import Filtering
from memx.tui.listing import Listing
from memx.tui.widgets.bars import Bar, Piece
from memx.tui.widgets.filterline import FilterLine
from memx.tui.widgets.page import Page
from memx.tui.widgets.rows import Cells, Column, Rows

_COLUMNS = (
    Column("question id", 14),
    Column("category", 10, from_width=76),
    Column("A says", 16),
    Column("B says", 16),
    Column("question", 0),
)
GROUPS = ("all", "B worse", "B better", "both fail", "both pass")


class PairRows:
    """Pairs as rows."""

    def __init__(self, rows: list[PairRow]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, index: int) -> Cells:
        """The cells of a row."""
        row = self.rows[index]
        return {
            "question id": (row.question_id, "key"),
            "category": (row.category, "text"),
            "A says": (_side(row.outcome_a, row.cause_a), "good" if row.outcome_a == "PASS" else "bad"),
            "B says": (_side(row.outcome_b, row.cause_b), "good" if row.outcome_b == "PASS" else "bad"),
            "question": (row.question, "text"),
        }


class CompareScreen(Filtering):
    """Compare run B with run A."""

    title_words = "Compare"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("compare", "filters")]

    def __init__(self, a: RunRow, b: RunRow) -> None:
        super().__init__(classes="compare")
        self.a, self.b = a, b
        self.group = 1
        self.rows = PairRows([])
        self._all: list[PairRow] = []
        self._filter = ""
        self._p = 1.0

    def body(self) -> ComposeResult:
        yield Page(id="fourway", can_focus=False)
        yield Bar(id="groups")
        yield FilterLine(self.values, id="filter")
        yield Rows(_COLUMNS, empty="Reading both runs ...", id="table")
        yield Page(id="about", can_focus=False)

    def on_mount(self) -> None:
        self.crumb(["compare"])
        self.query_one("#table", Rows).show(self.rows)
        self.give_focus(self.query_one("#table"))
        self.data_changed()

    def data_changed(self) -> None:
        text = self._filter
        self.run_worker(lambda: self._read(text), thread=True, exclusive=True, group="pairs", exit_on_error=False)

    def _read(self, text: str) -> None:
        # The engine's statistics are imported here, in the worker: the first paint does without them.
        from memx.engine.api import mcnemar_exact

        try:
            rows = pair_rows(self.debug_app.search_store, self.a, self.b, filters.parse(text))
        except MemxError as error:
            self.app.call_from_thread(self._refused, error)
            return
        only_a, only_b = (sum(row.group == name for row in rows) for name in ("B worse", "B better"))
        self.app.call_from_thread(self._read_done, text, rows, mcnemar_exact(only_a, only_b))

    def _refused(self, error: MemxError) -> None:
        self.debug_app.go_back()
        self.debug_app.show_error(error)

    def _read_done(self, text: str, rows: list[PairRow], p: float) -> None:
        if text != self._filter or not self.whole:
            return
        self._all, self._p = rows, p
        self.query_one("#fourway", Page).show(four_way(self.a, self.b, rows, p))
        self._draw()

    def _draw(self, cursor: int = 0) -> None:
        name = GROUPS[self.group]
        self.rows = PairRows([row for row in self._all if name in ("all", row.group)])
        table = self.query_one("#table", Rows)
        table.empty = f"No question is in the group '{name}'."
        table.show(self.rows, cursor)
        if not len(self.rows):
            self.query_one("#about", Page).show([])
        pieces: list[Piece] = []
        for number, group in enumerate(GROUPS, start=1):
            count = sum(group in ("all", row.group) for row in self._all)
            words = f"{number} {group} {count:,}"
            here = number - 1 == self.group
            pieces.append(
                (f"[{words}]" if here else f" {words} ", "head" if here else "dim", f"screen.group({number})")
            )
        self.query_one("#groups", Bar).show(pieces)
        self.crumb(["compare"], f"{len(self._all):,} judged by both   McNemar {_chance(self._p)}")

    def on_rows_moved(self, message: Rows.Moved) -> None:
        if message.index < len(self.rows):
            self.query_one("#about", Page).show(self._about(self.rows.rows[message.index]))

    def _about(self, row: PairRow) -> list[Line]:
        lines = [Line(shortened(row.question, 600), "head")]
        for name, run in (("A", self.a), ("B", self.b)):
            trace = self.attempt(self.debug_app.store.trace, run.run_id, row.question_id)
            if trace is None:
                continue
            got = shortened(trace.candidate.text, 200) if trace.candidate else "(none)"
            why = f"  {trace.diagnosis.stage} > {trace.diagnosis.cause}" if trace.diagnosis else ""
            lines.append(Line(f"{trace.verdict.outcome}{why}: {got}", "text", f"{name}  "))
        return lines

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """Open the question as B has it; ``x`` swaps the sides."""
        rows = self.rows.rows
        ids = [row.question_id for row in rows]
        where = Where(f"question_id IN ({','.join('?' * len(ids))})", tuple(ids))
        listing = Listing(self.debug_app.store, self.b, where, GROUPS[self.group])
        listing.order = 1
        if self.attempt(listing.reload) is None and not len(listing):
            return
        place = self.attempt(listing.index_of, ids[message.index])
        if place is not None:
            self.debug_app.open_question(listing, place)

    def action_group(self, number: int) -> None:
        """Show one group of the four-way table, counted from 1; 1 is all."""
        self.group = number - 1
        self._draw()

    def action_swap(self) -> None:
        self.a, self.b = self.b, self.a
        self.data_changed()

    def action_filter(self) -> None:
        self.query_one("#filter", FilterLine).begin()

    def on_filter_line_changed(self, message: FilterLine.Changed) -> None:
        line = self.query_one("#filter", FilterLine)
        try:
            filters.parse(message.text)
        except UsageError as error:
            line.complain(str(error))
            return
        line.complain("")
        self._filter = message.text
        self.data_changed()

    def filtered_run(self) -> RunRow:
        return self.b

    def filter_now(self) -> str:
        return self._filter

    def use_filter(self, text: str) -> None:
        self.query_one("#filter", FilterLine).set(text)
        self._filter = text
        self.data_changed()

    def action_back(self) -> None:
        if self._filter:
            self.use_filter("")
        else:
            super().action_back()

    def copied(self) -> tuple[str, str]:
        flips = [Line(f"{row.question_id}  {row.group}  A: {_side(row.outcome_a, row.cause_a)}  "
                      f"B: {_side(row.outcome_b, row.cause_b)}") for row in self.rows.rows]  # fmt: skip
        return plain([*self.query_one("#fourway", Page).lines, Line(), *flips], 100), "comparison"

    def exported(self) -> tuple[RunRow, Where, str] | None:
        ids = tuple(row.question_id for row in self.rows.rows)
        where = Where(f"question_id IN ({','.join('?' * len(ids))})", ids)
        return (self.b, where, f"{self.b.run_id} {GROUPS[self.group]} than {self.a.run_id}") if ids else None

    def command(self) -> list[str]:
        return ["memx", "compare", self.a.run_id, self.b.run_id]


def four_way(a: RunRow, b: RunRow, rows: list[PairRow], p: float) -> list[Line]:
    """The four-way table, the difference with its interval, and what the two runs do not share."""
    count = {name: sum(row.group == name for row in rows) for name in GROUPS[1:]}
    n = len(rows)
    score_a = 100 * (count["both pass"] + count["B worse"]) / n if n else 0.0
    score_b = 100 * (count["both pass"] + count["B better"]) / n if n else 0.0
    middle, low, high = difference(count["B worse"], count["B better"], n)
    chance = _chance(p)
    table = (
        ("", "B pass", "B fail", f"A {score_a:.1f} %  B {score_b:.1f} %  diff {middle:+.1f} pt"),
        ("A pass", count["both pass"], count["B worse"], f"95 % [{low:+.1f}, {high:+.1f}]  {chance}"),
        ("A fail", count["B better"], count["both fail"], _shared(a, b)),
    )
    return [
        Line(f"{a.run_id}  {a.adapter}", "text", "A  ", "mark"),
        Line(f"{b.run_id}  {b.adapter}", "text", "B  ", "mark"),
        *(Line(f"{one:<7}{two:>7}{three:>7}  {words}") for one, two, three, words in table),
    ]


def _chance(p: float) -> str:
    return "p<0.001" if p < 0.001 else f"p={p:.3f}"


def _shared(a: RunRow, b: RunRow) -> str:
    """Whether judge, k and seed are the same; a difference is written out in capitals."""
    pairs: list[tuple[str, object, object]] = [("judge", a.judge, b.judge)]
    for label, name in (("k", "top_k"), ("seed", "seed")):
        pairs.append((label, a.settings.get(name), b.settings.get(name)))
    return "same: " + ", ".join(f"{name} {'yes' if one == two else 'NO'}" for name, one, two in pairs)


def _side(outcome: str, cause: str | None) -> str:
    return cause or outcome
