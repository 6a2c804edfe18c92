"""The third screen: one question, tab by tab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from memx.engine.record import Record, lost_at
from memx.engine.store import filters
from memx.engine.store.marks import Mark
from memx.engine.store.reader import QuestionRow, RunRow, Where
from memx.tui.actions import bindings
from memx.tui.document import Line, Pair, plain
from memx.tui.listing import Listing
from memx.tui.pages.facts import diff_page, near_misses_page, retrieved_page
from memx.tui.pages.notes import notes_page
from memx.tui.pages.observed import trace_page
from memx.tui.pages.timeline import timeline_page
from memx.tui.pages.verdict import OUTCOME_ROLE, evidence_page, verdict_page
from memx.tui.screens.pick import PromptScreen
from memx.tui.triage import TriageScreen
from memx.tui.widgets.bars import Bar, Piece
from memx.tui.widgets.page import Page

#: Names of the tabs, and shorter ones for narrow terminals.
TABS: tuple[tuple[str, str], ...] = (
    ("Verdict", "Verdict"), ("Evidence trail", "Trail"), ("Retrieved", "Got"), ("Store diff", "Diff"),
    ("Near misses", "Near"), ("Trace", "Trace"), ("Timeline", "Time"), ("Notes", "Notes"),
)  # fmt: skip
#: Characters of a text that a tab shows before ``v`` asks for all.
_LIMIT = 800


class QuestionScreen(TriageScreen):
    """One question.

    Args:
        listing: the list it is part of; ``[`` and ``]`` move along it.
        index: its place there.
        question_id: names the question when the list does not hold it.
    """

    title_words = "Question"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("question", "triage")]

    def __init__(self, listing: Listing, index: int | None, question_id: str | None = None) -> None:
        super().__init__(classes="question")
        self.listing = listing
        self.index = index
        self.record: Record | None = None
        self.tab = 1
        self.rival = 0
        self.full = False
        self.everything = False
        self._question_id = question_id
        self._row: QuestionRow | None = None

    def body(self) -> ComposeResult:
        yield Bar(id="tabs")
        yield Page(id="page")

    def on_mount(self) -> None:
        self._load()
        self.give_focus(self.query_one("#page"))

    def on_resize(self) -> None:
        super().on_resize()
        self._draw_head()

    def _load(self) -> None:
        self._row = self.attempt(self.listing.row, self.index) if self.index is not None else None
        question_id = self._row.question_id if self._row else self._question_id
        if question_id is None:
            self.query_one("#page", Page).show([Line("This question is no longer stored.", "bad")])
            return
        self._question_id = question_id
        self.record = self.attempt(Record, self.debug_app.store, self.listing.run, question_id)
        self.rival = 0
        self._draw()

    def _draw(self, top: bool = True) -> None:
        if self.record is None:
            self.query_one("#page", Page).show([Line("This question cannot be shown.", "bad")])
            return
        self._draw_head()
        lines = self.attempt(self._pages()[self.tab - 1], self.record)
        self.query_one("#page", Page).show(lines or [Line("This page cannot be shown.", "bad")], top=top)

    def _draw_head(self) -> None:
        if self.record is None:
            return
        trace = self.record.trace
        here = "" if self.index is None else f"   [{self.index + 1:,} of {len(self.listing):,}]"
        rank = self._rank()
        words = str(trace.verdict.outcome)
        if trace.diagnosis is not None:
            roomy = self.size.width >= 80
            words += f"  {lost_at(trace)}{rank}" if roomy else f"  {trace.diagnosis.cause}"
        mark = self.triage_of(trace.question.question_id).mark
        words += f"  {mark}" if mark is not Mark.OPEN else ""
        run = [self.listing.run.run_id] if self.size.width >= 100 else []
        self.crumb([*run, trace.question.question_id], words + here, OUTCOME_ROLE[trace.verdict.outcome])
        self._draw_tabs()

    def _rank(self) -> str:
        row = self._row
        return f"  rank {row.rank}/{self.record.trace.top_k}" if row and row.rank and self.record else ""

    def _pages(self) -> tuple[Callable[[Record], Sequence[Line | Pair]], ...]:
        limit = None if self.full else _LIMIT
        return (
            lambda record: verdict_page(record, limit),
            lambda record: evidence_page(record, limit),
            lambda record: retrieved_page(record, limit),
            lambda record: diff_page(record, limit, self.everything),
            lambda record: near_misses_page(record, self.rival, limit),
            lambda record: trace_page(record),
            lambda record: timeline_page(record, limit),
            self._notes,
        )

    def _notes(self, record: Record) -> list[Line]:
        question_id = record.trace.question.question_id
        history = self.debug_app.marks.history(self.listing.run, question_id)
        return notes_page(self.triage_of(question_id), history)

    def marked_run(self) -> RunRow:
        return self.listing.run

    def targets(self) -> Sequence[str]:
        return [self._question_id] if self._question_id is not None else []

    def marked(self) -> None:
        self._draw(top=False)

    def copied(self) -> tuple[str, str]:
        lines = self.query_one("#page", Page).lines
        return plain(lines, 100), f"page {TABS[self.tab - 1][0]}"

    def exported(self) -> tuple[RunRow, Where, str] | None:
        if self._question_id is None:
            return None
        return self.listing.run, Where("question_id = ?", (self._question_id,)), self._question_id

    def command(self) -> list[str]:
        return ["memx", "debug", self._question_id or "", "--run", self.listing.run.run_id, "--plain"]

    def _draw_tabs(self) -> None:
        names = [long for long, _ in TABS]
        if sum(len(name) + 4 for name in names) + 1 > self.size.width:
            names = [short for _, short in TABS]
        # Where even those have no room only the open tab has its name.
        short = sum(len(name) + 4 for name in names) + 1 > self.size.width
        pieces: list[Piece] = [(" ", "dim", "")]
        for number, name in enumerate(names, start=1):
            here = number == self.tab
            name = name if here or not short else ""
            # Brackets say which tab is open where colours do not show.
            words = f"[{number} {name}]" if here else f" {number} {name}".rstrip() + " "
            pieces.append((words, "head" if here else "dim", f"screen.tab({number})"))
        self.query_one("#tabs", Bar).show(pieces, self.query_one("#page", Page).found_words, "mark")

    def reload(self) -> None:
        self._load()

    def action_tab(self, number: int) -> None:
        """Go to a tab, counted from 1."""
        if number != self.tab:
            self.tab = number
            self._draw()

    def action_next_tab(self) -> None:
        self.action_tab(self.tab % len(TABS) + 1)

    def action_previous_tab(self) -> None:
        self.action_tab((self.tab - 2) % len(TABS) + 1)

    def action_next(self) -> None:
        self._move(1)

    def action_previous(self) -> None:
        self._move(-1)

    def _move(self, step: int) -> None:
        if self.index is None or not 0 <= self.index + step < len(self.listing):
            self.notify("the list ends here", timeout=3)
            return
        self.index += step
        self.debug_app.moved_to(self.index)
        self._load()

    def action_find(self) -> None:
        page = self.query_one("#page", Page)

        def typed(text: str | None) -> None:
            if text is not None:
                page.find(text)
                self._draw_tabs()

        self.app.push_screen(PromptScreen("find on this page", page.sought), typed)

    def action_find_next(self) -> None:
        self._next_match(1)

    def action_find_previous(self) -> None:
        self._next_match(-1)

    def _next_match(self, step: int) -> None:
        page = self.query_one("#page", Page)
        if page.sought:
            page.next_match(step)
        elif word := sought_words(self.listing.filter):
            # The list was filtered by a text: here it is.
            page.find(word)
        else:
            self.notify("/ finds a text first", timeout=3)
            return
        self._draw_tabs()

    def action_back(self) -> None:
        page = self.query_one("#page", Page)
        if page.sought:
            page.find("")
            self._draw_tabs()
        else:
            super().action_back()

    def action_rival(self) -> None:
        self._rival(1)

    def action_rival_back(self) -> None:
        self._rival(-1)

    def _rival(self, step: int) -> None:
        diagnosis = self.record.trace.diagnosis if self.record else None
        if self.tab != 5 or diagnosis is None or not diagnosis.near_misses:
            self.notify("rivals stand on tab 5, for retrieval FAILs", timeout=3)
            return
        self.rival = (self.rival + step) % len(diagnosis.near_misses)
        self._draw()

    def action_full(self) -> None:
        self.full = not self.full
        self.notify("texts are shown whole" if self.full else f"texts are cut at {_LIMIT:,} characters", timeout=3)
        self._draw(top=False)

    def action_everything(self) -> None:
        self.everything = not self.everything
        self._draw(top=False)


def sought_words(text: str) -> str:
    """The first text that a filter looks for in questions and answers; nothing where it looks for none."""
    names = ("", "text", "question", "q", "gold", "candidate", "answer", "got")
    found = (one for one in filters.terms(text) if not one.negated and one.name in names and one.op in ("", "~"))
    return next((one.value.replace('"', "") for one in found), "")
