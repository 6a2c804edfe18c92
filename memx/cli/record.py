"""One question as plain text: for pipes, for terminals that cannot draw, and for reading aloud in an issue."""

from __future__ import annotations

from memx.engine.record import Record, lost_at
from memx.engine.store.marks import Marks, Triage
from memx.engine.store.reader import RunRow, Store, Where
from memx.errors import StoreError
from memx.tui.document import Line, plain
from memx.tui.pages.facts import diff_page, near_misses_page, retrieved_page
from memx.tui.pages.notes import notes_page
from memx.tui.pages.observed import trace_page
from memx.tui.pages.timeline import timeline_page
from memx.tui.pages.verdict import evidence_page, verdict_page

#: Columns of the plain record.
WIDTH = 80


def first_failure(store: Store, run: RunRow) -> str:
    """Id of the first FAIL of a run, or of its first ERROR where nothing failed.

    Raises:
        StoreError: the run has neither; the message says what it has instead.
    """
    for outcome in ("FAIL", "ERROR"):
        rows = store.questions(run.run_id, Where("outcome = ?", (outcome,)), limit=1)
        if rows:
            return rows[0].question_id
    counts = store.facets(run.run_id, "outcome")
    if not counts:
        raise StoreError(f"run {run.run_id} has no finished question yet", "Wait for it, or choose another by --run.")
    held = ", ".join(f"{n} {name}" for name, n in counts.items())
    raise StoreError(
        f"run {run.run_id} has no FAIL ({held})",
        "Name a question, or choose another run by --run; memx runs ls lists them.",
    )


def record_text(store: Store, run: RunRow, question_id: str, width: int = WIDTH) -> str:
    """Everything that explains one question, as text of at most ``width`` cells a line, ending with a line break.

    Raises:
        StoreError: the run holds no such question.
    """
    record = Record(store, run, question_id)
    marks = Marks(store)
    trace = record.trace
    title = f"{question_id}  {trace.verdict.outcome}  {lost_at(trace)}" if trace.diagnosis else (
        f"{question_id}  {trace.verdict.outcome}"
    )  # fmt: skip
    sections = (
        (title, [Line(f"run {run.run_id}, {run.dataset} by {run.adapter}"), Line(), *verdict_page(record)]),
        ("Evidence trail", evidence_page(record)),
        ("Retrieved", retrieved_page(record, below=False)),
        ("Store diff", diff_page(record)),
        ("Near misses", near_misses_page(record)),
        ("Timeline", timeline_page(record)),
        ("Trace", trace_page(record, raw=False)),
        ("Notes", notes_page(marks.current(run).get(question_id, Triage()), marks.history(run, question_id))),
    )
    parts = []
    for name, lines in sections:
        heading = plain([Line(name)], width)
        parts.append(f"{heading}\n{'-' * width}\n{plain(lines, width).strip()}\n")
    return "\n".join(parts)
