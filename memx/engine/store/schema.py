"""Tables of ``memx.db``, their migrations, and opening the file for writing or reading.

One file holds all runs of a directory. It is in WAL mode, so that a UI reads while a run writes and two runs write in
turn. A fact is stored once per run, addressed by its content; a snapshot is stored as its changes against the snapshot
before it, so that a snapshot per session costs little and a fact's history can be read off.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from memx.errors import MemxError, StoreError

if TYPE_CHECKING:
    from sqlite_utils import Database

#: "memx" in ASCII; tells our file from any other SQLite file.
APPLICATION_ID = 0x6D656D78
FILE_NAME = "memx.db"
#: How long a writer waits for another one, in milliseconds.
BUSY_MS = 30_000


_M001_RUNS = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, state TEXT NOT NULL, started_at TEXT NOT NULL, finished_at TEXT, updated_at TEXT,
  pid INTEGER, host TEXT, dataset TEXT NOT NULL, adapter TEXT NOT NULL, judge TEXT NOT NULL,
  question_total INTEGER, settings TEXT NOT NULL, manifest TEXT NOT NULL, summary TEXT);
CREATE TABLE cases (
  run_id TEXT NOT NULL, case_id TEXT NOT NULL, position INTEGER NOT NULL, entity_id TEXT NOT NULL,
  attempt INTEGER NOT NULL, state TEXT NOT NULL, sessions INTEGER NOT NULL, turns INTEGER NOT NULL,
  questions INTEGER NOT NULL, facts INTEGER, diff TEXT, timings TEXT, error TEXT, findings TEXT,
  PRIMARY KEY (run_id, case_id));
CREATE TABLE sessions (session_key TEXT PRIMARY KEY, payload TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE case_sessions (
  run_id TEXT NOT NULL, case_id TEXT NOT NULL, position INTEGER NOT NULL, session_id TEXT NOT NULL,
  session_key TEXT, PRIMARY KEY (run_id, case_id, position)) WITHOUT ROWID;
CREATE TABLE facts (
  run_id TEXT NOT NULL, fact_key TEXT NOT NULL, fact_id TEXT NOT NULL, content TEXT NOT NULL,
  status TEXT NOT NULL, supersedes TEXT, source_turn_ids TEXT, created_at TEXT, metadata TEXT,
  PRIMARY KEY (run_id, fact_key)) WITHOUT ROWID;
CREATE TABLE snapshots (
  run_id TEXT NOT NULL, case_id TEXT NOT NULL, attempt INTEGER NOT NULL, step INTEGER NOT NULL,
  label TEXT NOT NULL, session_id TEXT, facts INTEGER NOT NULL, taken_at TEXT NOT NULL,
  PRIMARY KEY (run_id, case_id, attempt, step)) WITHOUT ROWID;
CREATE TABLE snapshot_changes (
  run_id TEXT NOT NULL, case_id TEXT NOT NULL, attempt INTEGER NOT NULL, fact_id TEXT NOT NULL,
  step INTEGER NOT NULL, position INTEGER, fact_key TEXT,
  PRIMARY KEY (run_id, case_id, attempt, fact_id, step)) WITHOUT ROWID;
CREATE TABLE traces (
  run_id TEXT NOT NULL, question_id TEXT NOT NULL, position INTEGER NOT NULL, case_id TEXT NOT NULL,
  entity_id TEXT NOT NULL, attempt INTEGER NOT NULL, category TEXT NOT NULL, question TEXT NOT NULL,
  gold TEXT NOT NULL, evidence TEXT NOT NULL, evidence_sessions TEXT NOT NULL, asked_at TEXT,
  abstention INTEGER NOT NULL, question_metadata TEXT, candidate TEXT, candidate_source TEXT,
  context_tokens INTEGER, outcome TEXT NOT NULL, decider TEXT NOT NULL, why TEXT NOT NULL, judge_score REAL,
  stage TEXT, cause TEXT, confidence REAL, rank INTEGER, diagnosis TEXT, metrics TEXT, top_k INTEGER NOT NULL,
  retrieved TEXT, declared TEXT, diff TEXT, timings TEXT, error TEXT,
  PRIMARY KEY (run_id, question_id));
CREATE INDEX traces_by_position ON traces (run_id, position);
CREATE INDEX traces_by_stage ON traces (run_id, outcome, stage, cause);
CREATE TABLE llm_cache (key TEXT PRIMARY KEY, value TEXT NOT NULL, created_at TEXT NOT NULL);
"""

# Rows of traces are long. This index holds every column that lists filter and sort by, so that they never read them.
_M002_LISTS = """
CREATE INDEX traces_for_lists ON traces (
  run_id, position, outcome, stage, cause, category, rank, confidence, context_tokens, question_id, case_id);
"""

# Marks name dataset and memory system, not a run, so that they outlive runs. Rows are only appended.
_M003_TRIAGE = """
CREATE TABLE marks (
  mark_id INTEGER PRIMARY KEY, batch TEXT NOT NULL, undoes TEXT, at TEXT NOT NULL, who TEXT NOT NULL,
  dataset TEXT NOT NULL, adapter TEXT NOT NULL, question_id TEXT NOT NULL, run_id TEXT NOT NULL,
  kind TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL);
CREATE INDEX marks_by_question ON marks (dataset, adapter, question_id, kind, mark_id, new);
CREATE VIEW current_marks AS
  SELECT dataset, adapter, question_id, new, max(mark_id) AS mark_id FROM marks WHERE kind = 'mark'
  GROUP BY dataset, adapter, question_id;
CREATE VIEW current_notes AS
  SELECT dataset, adapter, question_id, new, max(mark_id) AS mark_id FROM marks WHERE kind = 'note'
  GROUP BY dataset, adapter, question_id;
CREATE TABLE saved_filters (name TEXT PRIMARY KEY, filter TEXT NOT NULL, at TEXT NOT NULL);
"""

# A process id is given again after its process ended; together with the time it began it names one process.
_M004_PROCESS = """
ALTER TABLE runs ADD COLUMN pid_started TEXT;
"""

# Tags that control arms give to the questions of a run.
_M005_TAGS = """
CREATE TABLE question_tags (
  run_id TEXT NOT NULL, question_id TEXT NOT NULL, tag TEXT NOT NULL,
  PRIMARY KEY (run_id, question_id)) WITHOUT ROWID;
"""

# How often each judge was wrong on planted answers.
_M006_AUDITS = """
CREATE TABLE judge_audits (
  judge TEXT NOT NULL, prompt_sha256 TEXT NOT NULL, dataset TEXT NOT NULL, seed INTEGER NOT NULL,
  false_accepts INTEGER NOT NULL, wrong INTEGER NOT NULL, false_rejects INTEGER NOT NULL, right_ones INTEGER NOT NULL,
  at TEXT NOT NULL, PRIMARY KEY (judge, prompt_sha256, dataset, seed)) WITHOUT ROWID;
"""

# How often diagnosis named planted faults, by the kind of store they were planted into.
_M007_CALIBRATIONS = """
CREATE TABLE calibrations (
  dataset TEXT NOT NULL, store TEXT NOT NULL, provenance INTEGER NOT NULL, seeds TEXT NOT NULL, memx TEXT NOT NULL,
  faults INTEGER NOT NULL, stage_right INTEGER NOT NULL, cause_right INTEGER NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY (dataset, store, provenance)) WITHOUT ROWID;
"""

#: Append only: the place in this list, from 1, is the schema version that the script makes.
MIGRATIONS: tuple[str, ...] = (
    _M001_RUNS,
    _M002_LISTS,
    _M003_TRIAGE,
    _M004_PROCESS,
    _M005_TAGS,
    _M006_AUDITS,
    _M007_CALIBRATIONS,
)


def open_for_writing(directory: Path) -> Database:
    """The store of a directory, made or migrated as needed.

    Raises:
        StoreError: the directory cannot be written, or the file is damaged, foreign or from a newer memx.
    """
    from sqlite_utils import Database

    path = directory / FILE_NAME
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{directory}: cannot make the directory: {error.strerror}", "Choose another with --dir."
        ) from None
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, check_same_thread=False, isolation_level=None)
        version = _checked_version(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if version < len(MIGRATIONS):
            _migrate(connection, path)
        return Database(connection)
    except (sqlite3.Error, OSError) as error:
        if connection is not None:
            connection.close()
        raise store_error(error, path) from None


def open_for_reading(directory: Path) -> sqlite3.Connection:
    """A read-only connection to the store of a directory; imports nothing heavy.

    Raises:
        StoreError: there is no store, or it is damaged, foreign or from another version of memx.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        raise StoreError(f"{path}: no run is stored here", "Start one with: memx run")
    uri = path.resolve().as_uri()
    # A store in a directory that cannot be written opens only as immutable: SQLite cannot make its index file there.
    for query in ("mode=ro", "mode=ro&immutable=1"):
        connection = None
        try:
            connection = sqlite3.connect(
                f"{uri}?{query}", uri=True, timeout=BUSY_MS / 1000, check_same_thread=False, isolation_level=None
            )
            version = _checked_version(connection, path)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if "unable to open" in str(error) and query == "mode=ro":
                continue
            raise store_error(error, path) from None
        if version < len(MIGRATIONS):
            connection.close()
            with closing(open_for_writing(directory).conn):
                pass
            return open_for_reading(directory)
        connection.row_factory = sqlite3.Row
        # 32 MiB: searching the texts of 20,000 questions over and over reads each page from the file once.
        connection.execute("PRAGMA cache_size = -32768")
        return connection
    raise StoreError(f"{path}: cannot be opened", "Check its permissions.")


def store_error(error: Exception, path: Path) -> MemxError:
    """What a failure of SQLite or the file system means to the user."""
    text = str(error)
    if "disk is full" in text or "No space left" in text:
        return StoreError(
            f"{path}: the disk is full", "Free some space, then resume the run; finished questions are kept."
        )
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return StoreError(f"{path}: cannot be written here", "Choose a directory you can write with --dir.")
    if "locked" in text or "busy" in text:
        return StoreError(f"{path}: another process has held it for {BUSY_MS // 1000} s", "Wait for it, or use --dir.")
    if isinstance(error, sqlite3.DatabaseError) and ("not a database" in text or "malformed" in text):
        return StoreError(f"{path}: not a memx store, or damaged", "Move it away, or choose another place with --dir.")
    if isinstance(error, OSError) and error.strerror:
        # The name in the error itself may be that of a temporary file, which tells nobody anything.
        return StoreError(f"{path}: cannot be written: {error.strerror}", "Choose a place that can be written.")
    return StoreError(f"{path}: {text}", "Move it away, or choose another place with --dir.")


def _checked_version(connection: sqlite3.Connection, path: Path) -> int:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    mark: int = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if mark != APPLICATION_ID and not empty:
        raise StoreError(f"{path}: an SQLite file of another program", "Choose another place with --dir.")
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path}: written by a newer memx (format {version}, this one knows {len(MIGRATIONS)})",
            "Upgrade memx, or choose another place with --dir.",
        )
    return version


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    # Two processes may find the same old store: the version is read again once the write lock is held.
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version:
        _backup(connection, path, version)
    for number, migration in enumerate(MIGRATIONS, start=1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] < number:
                # Not executescript(), which would commit the transaction around it.
                for statement in filter(str.strip, migration.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _backup(connection: sqlite3.Connection, path: Path, version: int) -> None:
    target = path.with_name(f"{path.stem}.v{version}.bak.db")
    if not target.exists():
        with closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
