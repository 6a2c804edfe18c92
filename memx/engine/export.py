"""Exports of a stored run, each a stream of texts; the same for the commands and the UI.

Every format takes a condition on the questions and shows the marks and notes that stand. JSON, result, CSV and JUnit
hold every question by default; Markdown and HTML, which people read, those that failed or broke.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

from memx.engine.export_html import html_chunks
from memx.engine.export_junit import junit_chunks
from memx.engine.export_markdown import markdown_chunks
from memx.engine.export_result import result_chunks
from memx.engine.export_result import result_manifest as result_manifest
from memx.engine.last_run import json_chunks
from memx.engine.store import codec
from memx.engine.store.marks import Marks, Triage
from memx.engine.store.reader import Store, Where

COLUMNS = (
    "question_id", "case_id", "category", "question", "gold", "candidate", "verdict", "verdict_why", "decider",
    "stage", "cause", "confidence", "diagnosis_why", "evidence", "ranks", "error", "mark", "note",
)  # fmt: skip


def csv_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """One line per question under a header (RFC 4180); ``evidence`` and ``ranks`` are parallel, blank-separated."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    triage = Marks(store).current(store.run(run_id))
    for trace in store.traces(run_id, where):
        question, diagnosis = trace.question, trace.diagnosis
        pieces = diagnosis.evidence if diagnosis else ()
        stands = triage.get(question.question_id, Triage())
        row = [
            question.question_id, trace.case_id, question.category, question.text, question.gold,
            trace.candidate.text if trace.candidate else "", trace.verdict.outcome, trace.verdict.why,
            trace.verdict.decider, diagnosis.stage if diagnosis else "", diagnosis.cause if diagnosis else "",
            f"{diagnosis.confidence:.3f}" if diagnosis else "", diagnosis.why if diagnosis else "",
            " ".join(piece.turn_id for piece in pieces) or " ".join(question.evidence),
            " ".join("-" if piece.rank is None else str(piece.rank) for piece in pieces),
            f"{trace.error.step}: {trace.error.message}" if trace.error else "", stands.mark, stands.note,
        ]  # fmt: skip
        writer.writerow([_plain(codec.clean(str(value))) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def marked_json_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """``last_run.json`` with the marks and notes that were given since, as ``mark`` and ``note`` of their question."""
    return json_chunks(store, run_id, where, Marks(store).current(store.run(run_id)))


#: Format name to the function that writes it.
FORMATS: dict[str, Callable[[Store, str, Where | None], Iterator[str]]] = {
    "json": marked_json_chunks,
    "result": result_chunks,
    "md": markdown_chunks,
    "html": html_chunks,
    "csv": csv_chunks,
    "junit": junit_chunks,
}


def _plain(text: str) -> str:
    # A spreadsheet runs a cell that begins so as a formula; an apostrophe makes it text (OWASP, CSV injection).
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and len(text) > 1 else text
