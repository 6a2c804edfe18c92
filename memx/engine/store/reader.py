"""Reading the run store: what the UI, the commands and the exports see. Imports nothing heavy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from memx.diagnose.timeline import FactEvent, changes
from memx.engine.store import codec
from memx.engine.store.audits import audit_of
from memx.engine.store.calibrations import calibrations_of
from memx.engine.store.processes import process_alive
from memx.engine.store.rows import (
    CaseRow,
    QuestionRow,
    RunRow,
    SnapshotStep,
    StoredDiff,
    Where,
    case_row,
    question_row,
    run_row,
    trace_of,
)
from memx.engine.store.schema import FILE_NAME, open_for_reading, store_error
from memx.errors import StoreError, UnknownNameError, UsageError
from memx.model import Fact, Session, Snapshot, Trace, Turn

__all__ = [
    "SORTS", "CaseRow", "QuestionRow", "RunRow", "SnapshotStep", "Store", "StoredDiff", "Where",
    "process_alive",
]  # fmt: skip

#: Columns that lists may be sorted by, and the SQL for each.
SORTS: Mapping[str, str] = {
    "position": "position",
    "rank": "rank IS NULL, rank",
    "category": "category",
    "stage": "stage IS NULL, stage, cause",
    "verdict": "CASE outcome WHEN 'FAIL' THEN 0 WHEN 'ERROR' THEN 1 WHEN 'UNJUDGED' THEN 2 ELSE 3 END",
    "confidence": "confidence IS NULL, confidence DESC",
}


#: Columns whose values can be counted: they repeat.
FACETS = ("outcome", "stage", "cause", "category", "case_id")

#: Columns of a list row, in the order of the fields of ``QuestionRow``.
_LISTED = (
    "question_id, case_id, category, question, gold, candidate, outcome, why, stage, cause, confidence, rank, "
    "CAST(json_extract(diagnosis, '$.why') AS BLOB) AS reason"
)
#: Control arms come after the run that they were made for.
_NEWEST = "json_extract(manifest, '$.control') IS NOT NULL, started_at DESC, run_id DESC"
_RUNS = "SELECT r.*, (SELECT count(*) FROM traces t WHERE t.run_id = r.run_id) AS done FROM runs r"


class Store:
    """The runs of one directory, read only.

    Args:
        directory: where ``memx.db`` lives.

    Raises:
        StoreError: there is no store here, or it cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / FILE_NAME
        self._connection = open_for_reading(directory)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def runs(self) -> list[RunRow]:
        """All runs, newest first."""
        rows = self.query(f"{_RUNS} ORDER BY started_at DESC, run_id DESC")
        return [run_row(row) for row in rows]

    def run(self, run_id: str | None = None) -> RunRow:
        """One run by id, by an unambiguous beginning of it, or the newest that is no control arm when None.

        Raises:
            UnknownNameError: there is no such run; near ids are suggested.
            UsageError: several runs begin so.
        """
        ids = [row["run_id"] for row in self.query(f"SELECT run_id FROM runs ORDER BY {_NEWEST}")]
        if not ids:
            raise StoreError(f"{self._path}: no run is stored here", "Start one with: memx run")
        wanted = ids[0] if run_id is None else run_id
        found = [i for i in ids if i == wanted] or [i for i in ids if i.startswith(wanted)]
        if len(found) > 1:
            raise UsageError(
                f"{len(found)} runs begin with '{wanted}'", f"Give more of the id: {', '.join(found[:5])}."
            )
        if not found:
            raise UnknownNameError("run", wanted, ids, "memx runs ls shows them all.")
        read = run_row(self.query(f"{_RUNS} WHERE run_id = ?", found)[0])
        prompt = str((read.manifest.get("judge") or {}).get("prompt_sha256") or "")
        audit = audit_of(self.query, read.judge, prompt, read.dataset)
        return replace(read, judge_audit=audit, calibrations=calibrations_of(self.query, read.dataset))

    def cases(self, run_id: str) -> list[CaseRow]:
        """The cases of a run that were begun, in the dataset's order."""
        return [case_row(r) for r in self.query("SELECT * FROM cases WHERE run_id = ? ORDER BY position", [run_id])]

    def questions(
        self, run_id: str, where: Where | None = None, *, sort: str = "position", offset: int = 0, limit: int = 200
    ) -> list[QuestionRow]:
        """A page of a run's finished questions. ``sort`` is a key of ``SORTS``."""
        where = where or Where()
        rows = self.query(
            f"SELECT {_LISTED} FROM traces WHERE run_id = ? AND ({where.sql}) "
            f"ORDER BY {SORTS[sort]}, position LIMIT ? OFFSET ?",
            [run_id, *where.params, limit, offset],
        )
        return [question_row(tuple(row)) for row in rows]

    def question_keys(self, run_id: str, where: Where | None = None, *, sort: str = "position") -> list[int]:
        """Keys of all questions that meet the condition, in order, for :meth:`rows`; cheap also for 20,000."""
        where = where or Where()
        sql = f"SELECT rowid FROM traces WHERE run_id = ? AND ({where.sql}) ORDER BY {SORTS[sort]}, position"
        with self._errors():
            cursor = self._connection.cursor()
            # Plain tuples: a row object for each of 20,000 keys wakes the garbage collector.
            cursor.row_factory = None
            return [key for (key,) in cursor.execute(sql, [run_id, *where.params])]

    def rows(self, keys: Sequence[int]) -> dict[int, QuestionRow]:
        """The list rows of some keys; a key whose question was deleted or asked again meanwhile is left out."""
        sql = f"SELECT rowid, {_LISTED} FROM traces WHERE rowid IN ({','.join('?' * len(keys))})"
        return {row[0]: question_row(tuple(row)[1:]) for row in self.query(sql, keys)}

    def matching(self, run_id: str, where: Where | None = None, *, sort: str = "position") -> list[str]:
        """Ids of all questions that meet the condition, in order."""
        where = where or Where()
        sql = f"SELECT question_id FROM traces WHERE run_id = ? AND ({where.sql}) ORDER BY {SORTS[sort]}, position"
        return [row[0] for row in self.query(sql, [run_id, *where.params])]

    def question_ids(self, keys: Sequence[int]) -> list[str]:
        """Question ids of some keys of :meth:`question_keys`, in no order."""
        # In parts: SQLite takes no more than 32,766 parameters.
        parts = [keys[at : at + 30_000] for at in range(0, len(keys), 30_000)]
        sql = "SELECT question_id FROM traces WHERE rowid IN ({})"
        return [row[0] for part in parts for row in self.query(sql.format(",".join("?" * len(part))), part)]

    def count(self, run_id: str, where: Where | None = None) -> int:
        """How many finished questions of a run meet the condition."""
        where = where or Where()
        sql = f"SELECT count(*) AS n FROM traces WHERE run_id = ? AND ({where.sql})"
        count: int = self.query(sql, [run_id, *where.params])[0]["n"]
        return count

    def facets(self, run_id: str, column: str, where: Where | None = None) -> dict[str, int]:
        """Counts by ``outcome``, ``stage``, ``cause``, ``category`` or ``case_id``, most frequent first."""
        if column not in FACETS:
            raise ValueError(f"no facet {column}")
        where = where or Where()
        rows = self.query(
            f"SELECT {column} AS name, count(*) AS n FROM traces WHERE run_id = ? AND {column} IS NOT NULL "
            f"AND ({where.sql}) GROUP BY {column} ORDER BY n DESC, {column}",
            [run_id, *where.params],
        )
        return {row["name"]: row["n"] for row in rows}

    def outcomes(self, run_id: str) -> dict[str, str]:
        """The verdict of each question of a run, by its id."""
        rows = self.query("SELECT question_id, outcome FROM traces WHERE run_id = ? ORDER BY position", [run_id])
        return {row["question_id"]: row["outcome"] for row in rows}

    def tags(self, run_id: str) -> dict[str, str]:
        """The tags that control arms gave to questions of a run, by question id."""
        rows = self.query("SELECT question_id, tag FROM question_tags WHERE run_id = ?", [run_id])
        return {row["question_id"]: row["tag"] for row in rows}

    def tag(self, run_id: str, question_id: str) -> str:
        """The tag that control arms gave to one question; empty where they gave none."""
        rows = self.query("SELECT tag FROM question_tags WHERE run_id = ? AND question_id = ?", [run_id, question_id])
        return str(rows[0]["tag"]) if rows else ""

    def find_question(self, question_id: str, run_id: str | None = None) -> tuple[RunRow, str]:
        """The run (the given one, else the newest that has it) and full id of a question.

        Raises:
            UnknownNameError: no run has such a question; the nearest ids are suggested.
        """
        runs = [self.run(run_id)] if run_id else sorted(self.runs(), key=lambda run: "control" in run.manifest)
        for run in runs:
            if self.query("SELECT 1 FROM traces WHERE run_id = ? AND question_id = ?", [run.run_id, question_id]):
                return run, question_id
        newest = self.run(run_id)
        ids = [r["question_id"] for r in self.query("SELECT question_id FROM traces WHERE run_id = ?", [newest.run_id])]
        raise UnknownNameError("question", question_id, ids)

    def trace(self, run_id: str, question_id: str) -> Trace:
        """Everything that was observed while one question ran.

        Raises:
            StoreError: the run holds no such question (it may have been deleted meanwhile).
        """
        rows = self.query("SELECT * FROM traces WHERE run_id = ? AND question_id = ?", [run_id, question_id])
        if not rows:
            raise StoreError(f"run {run_id} holds no question '{question_id}'", "memx runs ls shows what is stored.")
        row = rows[0]
        return trace_of(row, self._facts(run_id, row["case_id"], row["attempt"], row["retrieved"]))

    def traces(self, run_id: str, where: Where | None = None) -> Iterator[Trace]:
        """All traces of a run that meet the condition, in order, read as they are asked for."""
        where = where or Where()
        sql = f"SELECT * FROM traces WHERE run_id = ? AND ({where.sql}) ORDER BY position"
        case: tuple[str, int] | None = None
        facts: Mapping[str, Fact] = {}
        with self._errors():
            for row in self._connection.execute(sql, [run_id, *where.params]):
                if case != (row["case_id"], row["attempt"]):
                    case = (row["case_id"], row["attempt"])
                    facts = self.snapshot(run_id, *case).by_id()
                yield trace_of(row, facts)

    def snapshot(self, run_id: str, case_id: str, attempt: int | None = None, step: int | None = None) -> Snapshot:
        """The store of a case after a step (the last by default), facts in the order the system gave them."""
        attempt = attempt or self._attempt(run_id, case_id)
        rows = self.query(
            "SELECT f.*, c.position AS place FROM snapshot_changes c JOIN facts f USING (run_id, fact_key) "
            "WHERE c.run_id = ? AND c.case_id = ? AND c.attempt = ? AND c.step = ("
            "SELECT max(step) FROM snapshot_changes x WHERE x.run_id = c.run_id AND x.case_id = c.case_id "
            "AND x.attempt = c.attempt AND x.fact_id = c.fact_id AND x.step <= ?) ORDER BY c.position",
            [run_id, case_id, attempt, 2**31 if step is None else step],
        )
        return Snapshot(case_id, tuple(codec.fact_of(dict(row)) for row in rows), "" if step is None else str(step))

    def snapshot_steps(self, run_id: str, case_id: str, attempt: int | None = None) -> list[SnapshotStep]:
        """The snapshots that were taken of a case, in order."""
        rows = self.query(
            "SELECT step, label, session_id, facts FROM snapshots WHERE run_id = ? AND case_id = ? AND attempt = ? "
            "ORDER BY step",
            [run_id, case_id, attempt or self._attempt(run_id, case_id)],
        )
        return [SnapshotStep(**dict(row)) for row in rows]

    def diff(self, run_id: str, case_id: str, attempt: int | None = None) -> StoredDiff:
        """What the ingest of a case changed in the store, from the first snapshot to the last."""
        attempt = attempt or self._attempt(run_id, case_id)
        steps = self.query(
            "SELECT min(step) AS first FROM snapshots WHERE run_id = ? AND case_id = ? AND attempt = ?",
            [run_id, case_id, attempt],
        )
        if steps[0]["first"] is None:
            return StoredDiff()
        before = self.snapshot(run_id, case_id, attempt, steps[0]["first"]).by_id()
        after = self.snapshot(run_id, case_id, attempt).by_id()
        common = before.keys() & after.keys()
        changed = tuple((before[i], fact) for i, fact in after.items() if i in common and before[i] != fact)
        return StoredDiff(
            added=tuple(fact for i, fact in after.items() if i not in before),
            removed=tuple(fact for i, fact in before.items() if i not in after),
            changed=changed,
            unchanged=len(common) - len(changed),
        )

    def timeline(self, run_id: str, case_id: str, fact_id: str, attempt: int | None = None) -> list[FactEvent]:
        """Every change of one fact over the snapshots of its case, oldest first."""
        attempt = attempt or self._attempt(run_id, case_id)
        rows = self.query(
            "SELECT c.step, c.fact_key, s.label, s.session_id AS session, f.* FROM snapshot_changes c "
            "JOIN snapshots s USING (run_id, case_id, attempt, step) LEFT JOIN facts f USING (run_id, fact_key) "
            "WHERE c.run_id = ? AND c.case_id = ? AND c.attempt = ? AND c.fact_id = ? ORDER BY c.step",
            [run_id, case_id, attempt, fact_id],
        )
        events: list[FactEvent] = []
        before: Fact | None = None
        for row in rows:
            fact = None if row["fact_key"] is None else codec.fact_of(dict(row))
            retired = before is not None and before.active and fact is not None and not fact.active
            by = self._superseding(run_id, case_id, attempt, fact_id, row["step"]) if retired else ()
            events += changes(fact_id, row["session"] or "", before, fact, by, row["label"])
            before = fact
        return events

    def _superseding(self, run_id: str, case_id: str, attempt: int, fact_id: str, step: int) -> tuple[str, ...]:
        rows = self.query(
            "SELECT DISTINCT f.fact_id FROM snapshot_changes c JOIN facts f USING (run_id, fact_key) "
            "WHERE c.run_id = ? AND c.case_id = ? AND c.attempt = ? AND c.step <= ? "
            "AND EXISTS (SELECT 1 FROM json_each(f.supersedes) WHERE value = ?) ORDER BY f.fact_id",
            [run_id, case_id, attempt, step, fact_id],
        )
        return tuple(row["fact_id"] for row in rows)

    def sessions(self, run_id: str, case_id: str) -> list[Session]:
        """The stored sessions of a case, in order: all, or of a huge case those that its questions cite as evidence."""
        rows = self.query(
            "SELECT s.payload FROM case_sessions c JOIN sessions s USING (session_key) "
            "WHERE c.run_id = ? AND c.case_id = ? ORDER BY c.position",
            [run_id, case_id],
        )
        return [codec.session_of(row["payload"], case_id) for row in rows]

    def turns(self, run_id: str, case_id: str) -> dict[str, Turn]:
        """The turns of the stored sessions of a case, by id."""
        return {turn.turn_id: turn for session in self.sessions(run_id, case_id) for turn in session.turns}

    def done_questions(self, run_id: str) -> set[str]:
        """Ids of the questions that a resumed run need not ask again: nothing failed when they were asked."""
        sql = "SELECT question_id FROM traces WHERE run_id = ? AND outcome <> 'ERROR' AND error IS NULL"
        return {row["question_id"] for row in self.query(sql, [run_id])}

    def has_errors(self, run_id: str) -> bool:
        """True when a question has no verdict because the memory system, the judge or a model failed."""
        sql = "SELECT 1 FROM traces WHERE run_id = ? AND (outcome = 'ERROR' OR error IS NOT NULL) LIMIT 1"
        return bool(self.query(sql, [run_id]))

    def data_version(self) -> int:
        """A number that changes when another process has written to the file."""
        version: int = self.query("PRAGMA data_version")[0][0]
        return version

    def _attempt(self, run_id: str, case_id: str) -> int:
        rows = self.query("SELECT attempt FROM cases WHERE run_id = ? AND case_id = ?", [run_id, case_id])
        if not rows:
            raise StoreError(f"run {run_id} holds no case '{case_id}'", "memx runs show lists its cases.")
        attempt: int = rows[0]["attempt"]
        return attempt

    def _facts(self, run_id: str, case_id: str, attempt: int, retrieved: str | None) -> dict[str, Fact]:
        """The retrieved facts, by id, as the last snapshot of the attempt that has them shows them."""
        wanted = [row[0] for row in codec.loads(retrieved, {"rows": []})["rows"]]
        if not wanted:
            return {}
        marks = ",".join("?" * len(wanted))
        rows = self.query(
            "SELECT f.*, max(c.step) FROM snapshot_changes c JOIN facts f USING (run_id, fact_key) "
            f"WHERE c.run_id = ? AND c.case_id = ? AND c.attempt = ? AND c.fact_id IN ({marks}) GROUP BY c.fact_id",
            [run_id, case_id, attempt, *wanted],
        )
        return {row["fact_id"]: codec.fact_of(dict(row)) for row in rows}

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Rows of an SQL query.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._errors():
            return self._connection.execute(sql, params).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error
