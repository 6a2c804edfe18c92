"""What the reader of the store gives out, and how it is made of the rows of tables. Imports nothing heavy."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memx.engine.store import codec
from memx.engine.store.calibrations import Calibration
from memx.engine.store.processes import process_alive
from memx.model import Candidate, DiffCounts, Fact, Question, StepFailure, Trace, Verdict


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as listed. ``summary`` is empty until the run has ended; ``done`` counts its stored traces.

    ``judge_audit``: the dataset and counts of its judge's audit, as far as one was made (``memx calibrate --judge``).
    ``calibrations``: how often diagnosis named planted faults, by kind of store (``memx calibrate``).
    """

    run_id: str
    state: str
    started_at: datetime
    finished_at: datetime | None
    updated_at: datetime | None
    pid: int | None
    host: str
    dataset: str
    adapter: str
    judge: str
    question_total: int | None
    settings: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    done: int
    pid_started: str = ""
    judge_audit: tuple[str, tuple[int, int, int, int]] | None = None
    calibrations: tuple[Calibration, ...] = ()

    @property
    def dataset_version(self) -> str:
        """Version of the dataset, as its loader stated it."""
        return str(self.manifest.get("dataset", {}).get("version", ""))

    @property
    def dataset_sha256(self) -> str:
        """Checksum of the dataset's file."""
        return str(self.manifest.get("dataset", {}).get("sha256", ""))


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case of a run: how its ingest went. ``case_id`` is the dataset's own, ``entity_id`` what the adapter saw."""

    case_id: str
    entity_id: str
    attempt: int
    state: str
    sessions: int
    turns: int
    questions: int
    facts: int | None
    diff: DiffCounts | None
    timings_ms: Mapping[str, float]
    error: StepFailure | None
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A thin row for lists: texts may be long, details are read by :meth:`Store.trace`.

    ``why`` is the verdict's, ``reason`` the diagnosis's.
    """

    question_id: str
    case_id: str
    category: str
    question: str
    gold: str
    candidate: str | None
    outcome: str
    why: str
    stage: str | None
    cause: str | None
    confidence: float | None
    rank: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on table ``traces``: an SQL expression and its parameters. Build it with the filter language."""

    sql: str = "1"
    params: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """A snapshot that was taken of a case: its number, label, and the session it was taken after (None: before all)."""

    step: int
    label: str
    session_id: str | None
    facts: int


@dataclass(frozen=True, slots=True)
class StoredDiff:
    """Facts that the ingest of a case added, removed and changed (old, new), and how many it left alone."""

    added: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()
    changed: tuple[tuple[Fact, Fact], ...] = field(default=())
    unchanged: int = 0


def run_row(row: sqlite3.Row) -> RunRow:
    """The run of a row of table ``runs`` and its count of traces."""
    started = codec.parse_time(row["started_at"])
    assert started is not None
    return RunRow(
        run_id=row["run_id"],
        state=_state(row),
        started_at=started,
        finished_at=codec.parse_time(row["finished_at"]),
        updated_at=codec.parse_time(row["updated_at"]),
        pid=row["pid"],
        host=row["host"] or "",
        dataset=row["dataset"],
        adapter=row["adapter"],
        judge=row["judge"],
        question_total=row["question_total"],
        settings=codec.loads(row["settings"], {}),
        manifest=codec.loads(row["manifest"], {}),
        summary=codec.loads(row["summary"], {}),
        done=row["done"],
        pid_started=row["pid_started"] or "",
    )


def _state(row: sqlite3.Row) -> str:
    """The stored state; a run that was left ``running`` by a process of this host that is gone was interrupted."""
    state: str = row["state"]
    here = state == "running" and row["host"] == socket.gethostname()
    left = here and not process_alive(row["pid"], row["pid_started"] or "")
    return "interrupted" if left else state


def question_row(values: tuple[Any, ...]) -> QuestionRow:
    """The list row of the listed columns."""
    # JSON may spell a lone surrogate, which UTF-8 has no form for: SQLite hands it over as bytes that do not decode.
    reason: bytes | None = values[-1]
    shown = None if reason is None else reason.decode("utf-8", "replace")
    return QuestionRow(*(*values[:-1], shown))


def case_row(row: sqlite3.Row) -> CaseRow:
    """The case of a row of table ``cases``."""
    return CaseRow(
        case_id=row["case_id"],
        entity_id=row["entity_id"],
        attempt=row["attempt"],
        state=row["state"],
        sessions=row["sessions"],
        turns=row["turns"],
        questions=row["questions"],
        facts=row["facts"],
        diff=codec.diff_of(row["diff"]),
        timings_ms=codec.loads(row["timings"], {}),
        error=codec.failure_of(row["error"]),
        findings=tuple(codec.loads(row["findings"], [])),
    )


def trace_of(row: sqlite3.Row, facts: Mapping[str, Fact]) -> Trace:
    """The trace of a row of table ``traces``; ``facts`` gives those of the snapshot by id."""
    question = Question(
        question_id=row["question_id"],
        entity_id=row["case_id"],
        text=row["question"],
        gold=row["gold"],
        category=row["category"],
        evidence=tuple(codec.loads(row["evidence"], [])),
        evidence_sessions=tuple(codec.loads(row["evidence_sessions"], [])),
        asked_at=codec.parse_time(row["asked_at"]),
        abstention=bool(row["abstention"]),
        metadata=codec.loads(row["question_metadata"], {}),
    )
    candidate = None
    if row["candidate"] is not None:
        candidate = Candidate(row["candidate"], row["candidate_source"], row["context_tokens"])
    return Trace(
        question=question,
        case_id=row["case_id"],
        entity_id=row["entity_id"],
        top_k=row["top_k"],
        verdict=Verdict(row["outcome"], row["decider"], row["why"], row["judge_score"]),
        retrieved=codec.retrieved_of(row["retrieved"], facts),
        candidate=candidate,
        diagnosis=codec.diagnosis_of(row["diagnosis"]),
        metrics=codec.metrics_of(row["metrics"]),
        diff=codec.diff_of(row["diff"]),
        timings_ms=codec.loads(row["timings"], {}),
        error=codec.failure_of(row["error"]),
        declared=codec.loads(row["declared"], {}),
        attempt=row["attempt"],
    )
