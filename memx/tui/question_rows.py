"""Questions as rows of a table, and what the pane beside the table says of one."""

from __future__ import annotations

from collections.abc import Callable, Container

from memx.engine.store.marks import Mark, Triage
from memx.engine.store.reader import QuestionRow
from memx.errors import MemxError
from memx.tui.document import Line, shortened
from memx.tui.listing import Listing
from memx.tui.pages.verdict import OUTCOME_ROLE, labelled
from memx.tui.widgets.rows import Cells, Column

#: The stage follows from the cause, so it is the first to make room for the question.
COLUMNS = (
    Column("", 1),
    Column("mark", 5, from_width=58),
    Column("verdict", 8),
    Column("stage", 10, from_width=100),
    Column("cause", 16),
    Column("rank", 4, right=True),
    Column("category", 10, from_width=70),
    Column("question", 0),
)
#: Characters of a text that the preview shows.
_PREVIEW = 1500


class QuestionRows:
    """The listing as rows of a table.

    Args:
        triage: gives what stands about a question.
        selected: keys of the selected rows.
    """

    def __init__(self, listing: Listing, triage: Callable[[str], Triage], selected: Container[int]) -> None:
        self._listing = listing
        self._triage = triage
        self._selected = selected

    def __len__(self) -> int:
        return len(self._listing)

    def cells(self, index: int) -> Cells:
        """The cells of a row; a row that cannot be read says so."""
        try:
            row = self._listing.row(index)
        except MemxError as error:
            return {"question": (str(error), "bad")}
        if row is None:
            return {"question": ("(no longer stored; r reads again)", "dim")}
        triage = self._triage(row.question_id)
        # Only what was decided, and what waits for a decision, is worth a word.
        mark = "" if triage.mark is Mark.OPEN and row.outcome != "FAIL" else str(triage.mark)
        return {
            "": ("*" if self._listing.key(index) in self._selected else "", "mark"),
            "mark": (mark + ("+" if triage.note and len(mark) < 5 else ""), "dim"),
            "verdict": (row.outcome, OUTCOME_ROLE.get(row.outcome, "text")),
            "stage": (row.stage or "", "text"),
            "cause": (row.cause or "", "text"),
            "rank": ("" if row.rank is None else str(row.rank), "text"),
            "category": (row.category, "text"),
            "question": (row.question, "text"),
        }


def preview(row: QuestionRow, triage: Triage, tag: str = "") -> list[Line]:
    """What the pane beside the list says of a question; ``tag`` is what control arms say of it."""
    lines = [
        Line(shortened(row.question, _PREVIEW), "head"),
        labelled("gold", shortened(row.gold, _PREVIEW) or "(empty)"),
        labelled(row.outcome, shortened(row.why, _PREVIEW), OUTCOME_ROLE.get(row.outcome, "text")),
    ]
    if row.cause:
        lines.append(labelled("why", f"{row.stage} > {row.cause}: {shortened(row.reason or '', _PREVIEW)}", "warn"))
    if tag:
        lines.append(labelled("tag", tag))
    # Last: a candidate may be all of the retrieved texts.
    got = "(none)" if row.candidate is None else shortened(row.candidate, 600) or "(empty)"
    lines.append(labelled("got", got))
    lines.append(labelled("id", row.question_id, "dim"))
    if triage.note:
        lines.append(labelled("note", shortened(triage.note, _PREVIEW)))
    return lines
