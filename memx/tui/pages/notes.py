"""The page "notes": the note that stands, and everything that was ever decided about the question."""

from __future__ import annotations

from collections.abc import Sequence

from memx.engine.store.marks import Entry, Triage
from memx.tui.document import Line


def notes_page(triage: Triage, history: Sequence[Entry]) -> list[Line]:
    """Mark, note and history."""
    lines = [Line(str(triage.mark), "head", "mark  ")]
    lines += [Line(), Line(triage.note)] if triage.note else [Line(), Line("no note yet; a writes one", "dim")]
    if history:
        lines += [Line(), Line("history", "head")]
    for entry in reversed(history):
        what = f"{entry.old} -> {entry.new}" if entry.kind == "mark" else f"note: {entry.new or '(emptied)'}"
        undo = "  (taken back)" if entry.undo else ""
        head = f"{entry.at:%Y-%m-%d %H:%M}  {entry.who}  "
        lines.append(Line(f"{what}{undo}  [{entry.run_id}]", "text", head, "dim"))
    return lines
