"""Exports of a stored run: JSON as ``last_run.json`` has it, or CSV with one line per question."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

from memx.engine.last_run import json_chunks
from memx.engine.store.reader import Store, Where

COLUMNS = (
    "question_id", "case_id", "category", "question", "gold", "candidate", "verdict", "verdict_why", "decider",
    "stage", "cause", "confidence", "diagnosis_why", "evidence", "ranks", "error",
)  # fmt: skip


def csv_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """One line per question under a header (RFC 4180); ``evidence`` and ``ranks`` are parallel, blank-separated."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for trace in store.traces(run_id, where):
        question, diagnosis = trace.question, trace.diagnosis
        pieces = diagnosis.evidence if diagnosis else ()
        row = [
            question.question_id, trace.case_id, question.category, question.text, question.gold,
            trace.candidate.text if trace.candidate else "", trace.verdict.outcome, trace.verdict.why,
            trace.verdict.decider, diagnosis.stage if diagnosis else "", diagnosis.cause if diagnosis else "",
            f"{diagnosis.confidence:.3f}" if diagnosis else "", diagnosis.why if diagnosis else "",
            " ".join(piece.turn_id for piece in pieces) or " ".join(question.evidence),
            " ".join("-" if piece.rank is None else str(piece.rank) for piece in pieces),
            f"{trace.error.step}: {trace.error.message}" if trace.error else "",
        ]  # fmt: skip
        writer.writerow([_plain(str(value)) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


#: Format name to the function that writes it.
FORMATS: dict[str, Callable[..., Iterator[str]]] = {"json": json_chunks, "csv": csv_chunks}


def _plain(text: str) -> str:
    # A spreadsheet runs a cell that begins so as a formula; an apostrophe makes it text (OWASP, CSV injection).
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and len(text) > 1 else text
