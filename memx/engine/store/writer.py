"""Writing one run into the store: one transaction per finished question, safe from several threads and processes."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memx.engine.store import codec
from memx.engine.store.processes import process_alive, process_started
from memx.engine.store.schema import FILE_NAME, open_for_writing, store_error
from memx.errors import StoreError
from memx.model import Case, DiffCounts, Fact, Session, Snapshot, StepFailure, Trace

#: What a run keeps of its memory system, apart from the traces of its questions.
_SHARED_TABLES = ("cases", "case_sessions", "facts", "snapshots", "snapshot_changes")


#: Cases up to this many characters are kept whole: those of LoCoMo, BEAM 100K and LongMemEval-S are.
_WHOLE_CASE_CHARS = 1_000_000


class RunWriter:
    """The one writer of a run. Every method is one transaction; once it returns, ``kill -9`` loses none of it.

    Args:
        directory: where ``memx.db`` lives; made when missing.
        run_id: the run to write.
    """

    def __init__(self, directory: Path, run_id: str) -> None:
        self.run_id = run_id
        self._path = directory / FILE_NAME
        self._db = open_for_writing(directory)
        self._lock = threading.RLock()
        self._facts: dict[tuple[str, int], dict[str, Fact]] = {}

    def close(self) -> None:
        """Close the file. The writer cannot be used afterwards."""
        with self._lock:
            self._db.conn.close()

    def begin(
        self, *, dataset: str, adapter: str, judge: str, settings: Mapping[str, Any], manifest: Mapping[str, Any]
    ) -> None:
        """Record a new run as ``running``."""
        now = _now()
        row = {
            "run_id": self.run_id, "state": "running", "started_at": now, "updated_at": now, **_this_process(),
            "dataset": dataset, "adapter": adapter, "judge": judge,
            "settings": codec.dumps(settings), "manifest": codec.dumps(manifest),
        }  # fmt: skip
        with self._transaction():
            self._db.table("runs").insert(row)

    def copy_run(self, source: str, *, judge: str, settings: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
        """Begin this run as a copy of another one's cases, snapshots and facts, without its traces."""
        now = _now()
        with self._transaction():
            self._db.execute(
                "INSERT INTO runs (run_id, state, started_at, updated_at, pid, host, pid_started, dataset, adapter, "
                "judge, question_total, settings, manifest) SELECT ?, 'running', ?, ?, ?, ?, ?, dataset, adapter, ?, "
                "question_total, ?, ? FROM runs WHERE run_id = ?",
                [self.run_id, now, now, *_this_process().values(), judge, codec.dumps(settings),
                 codec.dumps(manifest), source],
            )  # fmt: skip
            for table in _SHARED_TABLES:
                columns = [column.name for column in self._db.table(table).columns if column.name != "run_id"]
                names = ", ".join(columns)
                self._db.execute(
                    f"INSERT INTO {table} (run_id, {names}) SELECT ?, {names} FROM {table} WHERE run_id = ?",
                    [self.run_id, source],
                )

    def reopen(self) -> None:
        """Mark a stored run as ``running`` again, by this process.

        Raises:
            StoreError: another live process on this host is writing it.
        """
        with self._transaction():
            found = list(
                self._db.query("SELECT state, pid, host, pid_started FROM runs WHERE run_id = ?", [self.run_id])
            )
            if not found:
                raise StoreError(f"no run '{self.run_id}' is stored here", "memx runs ls shows those that are.")
            run = found[0]
            if (
                run["state"] == "running"
                and run["host"] == socket.gethostname()
                and run["pid"] != os.getpid()
                and process_alive(run["pid"], run["pid_started"] or "")
            ):
                raise StoreError(
                    f"run {self.run_id} is still going (process {run['pid']})", "Wait for it, or stop it first."
                )
            changes = {"state": "running", **_this_process(), "updated_at": _now()}
            self._db.table("runs").update(self.run_id, changes)

    def set_question_total(self, total: int) -> None:
        """Record how many questions the run will ask."""
        with self._transaction():
            self._db.table("runs").update(self.run_id, {"question_total": total})

    def begin_case(self, case: Case, position: int, entity_id: str) -> int:
        """Record a case about to be ingested; returns the attempt, from 1, counted over resumed runs."""
        kept = _sessions_to_keep(case)
        with self._transaction():
            where = [self.run_id, case.case_id]
            before = list(self._db.query("SELECT attempt FROM cases WHERE run_id = ? AND case_id = ?", where))
            attempt = before[0]["attempt"] + 1 if before else 1
            row = {
                "run_id": self.run_id, "case_id": case.case_id, "position": position, "entity_id": entity_id,
                "attempt": attempt, "state": "ingesting", "sessions": len(case.sessions),
                "turns": sum(len(s.turns) for s in case.sessions), "questions": len(case.questions),
            }  # fmt: skip
            self._db.table("cases").insert(row, pk=("run_id", "case_id"), replace=True)
            if not before:
                self._write_sessions(case, kept)
        return attempt

    def set_entity(self, case_id: str, entity_id: str) -> None:
        """Record the namespace that the adapter sees for a case."""
        with self._transaction():
            self._db.table("cases").update((self.run_id, case_id), {"entity_id": entity_id})

    def _write_sessions(self, case: Case, kept: set[str]) -> None:
        rows = []
        for position, session in enumerate(case.sessions):
            key = None
            if session.session_id in kept:
                key = self._write_session(session)
            rows.append((self.run_id, case.case_id, position, session.session_id, key))
        self._executemany("INSERT INTO case_sessions VALUES (?, ?, ?, ?, ?)", rows)

    def _write_session(self, session: Session) -> str:
        payload = codec.session_payload(session)
        key = codec.content_key(payload)
        self._executemany("INSERT OR IGNORE INTO sessions VALUES (?, ?)", [(key, codec.clean(payload))])
        return key

    def write_snapshot(
        self,
        case_id: str,
        attempt: int,
        step: int,
        snapshot: Snapshot,
        before: Snapshot | None,
        session_id: str | None = None,
    ) -> None:
        """Record a snapshot as its changes against the one before it (None: against an empty store)."""
        old = {} if before is None else {i: codec.fact_key(f) for i, f in before.by_id().items()}
        new = snapshot.by_id()
        facts: list[dict[str, Any]] = []
        changes: list[tuple[Any, ...]] = []
        for position, (fact_id, fact) in enumerate(new.items()):
            key = codec.fact_key(fact)
            if old.get(fact_id) != key:
                facts.append(codec.fact_row(self.run_id, key, fact))
                changes.append((self.run_id, case_id, attempt, codec.clean(fact_id), step, position, key))
        changes += [
            (self.run_id, case_id, attempt, codec.clean(fact_id), step, None, None)
            for fact_id in old
            if fact_id not in new
        ]
        head = (self.run_id, case_id, attempt, step, codec.clean(snapshot.label), session_id, len(new), _now())
        with self._transaction():
            if facts:
                columns = ", ".join(f":{name}" for name in facts[0])
                self._executemany(f"INSERT OR IGNORE INTO facts VALUES ({columns})", facts)
            self._executemany("INSERT OR REPLACE INTO snapshot_changes VALUES (?, ?, ?, ?, ?, ?, ?)", changes)
            self._executemany("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [head])
            self._facts[case_id, attempt] = new

    def end_case(
        self,
        case_id: str,
        state: str,
        *,
        facts: int | None = None,
        diff: DiffCounts | None = None,
        timings: Mapping[str, float] | None = None,
        error: StepFailure | None = None,
        findings: Sequence[str] = (),
    ) -> None:
        """Record how the ingest of a case ended: ``ready``, ``done`` or ``error``. Only what is given is changed."""
        changes: dict[str, Any] = {"state": state}
        given = {
            "facts": facts,
            "diff": codec.as_json(diff),
            "timings": codec.dumps(timings) if timings else None,
            "error": codec.as_json(error),
            "findings": codec.dumps(findings) if findings else None,
        }
        changes |= {name: value for name, value in given.items() if value is not None}
        with self._transaction():
            self._db.table("cases").update((self.run_id, case_id), changes)
            if state != "ready":
                self._facts = {key: value for key, value in self._facts.items() if key[0] != case_id}

    def write_trace(self, trace: Trace, position: int) -> None:
        """Record one finished question; a trace already there is replaced."""
        row = self._trace_row(trace, position)
        columns = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        with self._transaction():
            # Plain SQL: the library's insert asks for the table's shape anew each time, which is dear once a question.
            self._db.execute(f"INSERT OR REPLACE INTO traces ({columns}) VALUES ({values})", row)
            self._db.execute("UPDATE runs SET updated_at = ? WHERE run_id = ?", [_now(), self.run_id])

    def _trace_row(self, trace: Trace, position: int) -> dict[str, Any]:
        question, diagnosis, candidate = trace.question, trace.diagnosis, trace.candidate
        facts = self._facts.get((trace.case_id, trace.attempt), {})
        ranks = [piece.rank for piece in diagnosis.evidence if not piece.in_top_k] if diagnosis else []
        known = [rank for rank in ranks if rank is not None]
        row = {
            "run_id": self.run_id, "question_id": question.question_id, "position": position,
            "case_id": trace.case_id, "entity_id": trace.entity_id, "attempt": trace.attempt,
            "category": question.category, "question": question.text, "gold": question.gold,
            "evidence": codec.dumps(question.evidence), "evidence_sessions": codec.dumps(question.evidence_sessions),
            "asked_at": codec.format_time(question.asked_at), "abstention": int(question.abstention),
            "question_metadata": codec.dumps(question.metadata) if question.metadata else None,
            "candidate": candidate.text if candidate else None,
            "candidate_source": str(candidate.source) if candidate else None,
            "context_tokens": candidate.context_tokens if candidate else None,
            "outcome": str(trace.verdict.outcome), "decider": str(trace.verdict.decider), "why": trace.verdict.why,
            "judge_score": trace.verdict.score,
            "stage": str(diagnosis.stage) if diagnosis else None, "cause": str(diagnosis.cause) if diagnosis else None,
            "confidence": diagnosis.confidence if diagnosis else None, "rank": max(known) if known else None,
            "diagnosis": codec.as_json(diagnosis), "metrics": codec.as_json(trace.metrics), "top_k": trace.top_k,
            "retrieved": codec.retrieved_json(trace.retrieved, facts) if trace.retrieved else None,
            "declared": codec.dumps(trace.declared) if trace.declared else None, "diff": codec.as_json(trace.diff),
            "timings": codec.dumps(trace.timings_ms), "error": codec.as_json(trace.error),
        }  # fmt: skip
        return {name: codec.clean(value) if isinstance(value, str) else value for name, value in row.items()}

    def end(self, state: str, summary: Mapping[str, Any]) -> None:
        """Record the end of the run: ``finished``, ``interrupted`` or ``failed``, with its summary."""
        changes = {"state": state, "finished_at": _now(), "updated_at": _now(), "summary": codec.dumps(summary)}
        with self._transaction():
            self._db.table("runs").update(self.run_id, changes)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:
                # IMMEDIATE: waits its turn now, instead of failing later when two writers meet.
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.conn.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OSError) as error:
                raise store_error(error, self._path) from error

    def _executemany(self, sql: str, rows: Sequence[Any]) -> None:
        self._db.conn.executemany(sql, rows)


def delete_run(directory: Path, run_id: str) -> None:
    """Remove a run and all it left; sessions that no other run shares go too.

    Raises:
        StoreError: there is no such run, or a live process is writing it.
    """
    writer = RunWriter(directory, run_id)
    try:
        writer.reopen()
        with writer._transaction():
            for table in ("traces", "question_tags", *_SHARED_TABLES, "runs"):
                writer._db.execute(f"DELETE FROM {table} WHERE run_id = ?", [run_id])
            shared = "SELECT session_key FROM case_sessions WHERE session_key IS NOT NULL"
            writer._db.execute(f"DELETE FROM sessions WHERE session_key NOT IN ({shared})")
    finally:
        writer.close()


def write_controls(directory: Path, run_id: str, tags: Mapping[str, str], told: Mapping[str, Any]) -> None:
    """Record what control arms say of a run that has ended: the tag of each question, and the arms in its summary."""
    writer = RunWriter(directory, run_id)
    try:
        with writer._transaction():
            summary = next(iter(writer._db.query("SELECT summary FROM runs WHERE run_id = ?", [run_id])))["summary"]
            changed = codec.loads(summary, {}) | {"controls": dict(told)}
            writer._db.table("runs").update(run_id, {"summary": codec.dumps(changed)})
            writer._db.execute("DELETE FROM question_tags WHERE run_id = ?", [run_id])
            rows = [(run_id, codec.clean(question_id), tag) for question_id, tag in tags.items()]
            writer._executemany("INSERT INTO question_tags VALUES (?, ?, ?)", rows)
    finally:
        writer.close()


def _sessions_to_keep(case: Case) -> set[str]:
    """All sessions of a case of ordinary size; of a huge one those that a question points at, which diagnosis reads."""
    if sum(len(turn.content) for session in case.sessions for turn in session.turns) <= _WHOLE_CASE_CHARS:
        return {session.session_id for session in case.sessions}
    of_turn = case.session_of()
    cited = {session for question in case.questions for session in question.evidence_sessions}
    for question in case.questions:
        turn_ids = [*question.evidence, *question.metadata.get("stale_evidence", ())]
        cited |= {of_turn[turn_id] for turn_id in turn_ids if turn_id in of_turn}
    return cited


def _this_process() -> dict[str, Any]:
    pid = os.getpid()
    return {"pid": pid, "host": socket.gethostname(), "pid_started": process_started(pid)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
