"""Triage: marks, notes and saved filters, kept beside the runs and outliving them.

A mark belongs to a question of a dataset as one memory system answers it, not to a run: running again, judging again
or deleting the run loses none. Rows are only ever appended; an undo appends the marks that stood before.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from memx.engine.store import codec
from memx.engine.store.reader import RunRow, Store, Where
from memx.engine.store.schema import BUSY_MS, FILE_NAME, store_error
from memx.errors import StoreError, UsageError


class Mark(StrEnum):
    """What a person decided about a failed question; ``open`` until they did."""

    OPEN = "open"
    SEEN = "seen"
    FIX = "fix"
    WONT = "wont"
    NO_BUG = "nobug"


@dataclass(frozen=True, slots=True)
class Triage:
    """What stands about one question now: its mark, and its note ("" for none)."""

    mark: Mark = Mark.OPEN
    note: str = ""

    def shown(self, failed: bool) -> str:
        """The mark in a list, ``+`` for a note; nothing where nobody decided and nothing waits for a decision."""
        mark = "" if self.mark is Mark.OPEN and not failed else str(self.mark)
        return mark + ("+" if self.note else "")


@dataclass(frozen=True, slots=True)
class Change:
    """What a mark, a note or an undo puts in place of what stood. ``kind`` is ``mark`` or ``note``."""

    question_id: str
    kind: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One appended row. ``kind`` is ``mark`` or ``note``; ``undo`` tells that it took a batch back."""

    at: datetime
    who: str
    run_id: str
    kind: str
    old: str
    new: str
    undo: bool


class Marks:
    """Marks, notes and saved filters of a store.

    Args:
        store: an open store; writing opens its file a second time, for the one transaction.
        who: the author that is recorded; the user's login name by default (``MEMX_USER`` overrides it).
    """

    def __init__(self, store: Store, who: str | None = None) -> None:
        self._store = store
        self.who = who or os.environ.get("MEMX_USER") or _login()

    def current(self, run: RunRow) -> dict[str, Triage]:
        """What stands about the questions of a run's dataset and memory system, by question id."""
        rows = self._store.query(
            "SELECT question_id, kind, new, max(mark_id) FROM marks WHERE dataset = ? AND adapter = ? "
            "GROUP BY question_id, kind",
            [run.dataset, run.adapter],
        )
        marks = {row["question_id"]: Mark(row["new"]) for row in rows if row["kind"] == "mark"}
        notes = {row["question_id"]: row["new"] for row in rows if row["kind"] == "note"}
        return {i: Triage(marks.get(i, Mark.OPEN), notes.get(i, "")) for i in marks.keys() | notes.keys()}

    def triaged(self, run: RunRow) -> frozenset[str]:
        """The questions that someone has decided about."""
        return frozenset(i for i, triage in self.current(run).items() if triage.mark is not Mark.OPEN)

    def changes(
        self, run: RunRow, question_ids: Iterable[str], mark: Mark | None = None, note: str | None = None
    ) -> list[Change]:
        """What marking and annotating questions would change; nothing is written. None leaves marks or notes alone."""
        now = self.current(run)
        note = None if note is None else codec.clean(note.strip())
        found = []
        for question_id in question_ids:
            stands = now.get(question_id, Triage())
            if mark is not None and stands.mark is not mark:
                found.append(Change(question_id, "mark", str(stands.mark), str(mark)))
            if note is not None and stands.note != note:
                found.append(Change(question_id, "note", stands.note, note))
        return found

    def apply(self, run: RunRow, changes: Iterable[Change]) -> None:
        """Write changes as one batch that one undo takes back.

        Raises:
            StoreError: the store cannot be written.
        """
        self._append(run, list(changes))

    def set(self, run: RunRow, question_ids: Iterable[str], mark: Mark) -> int:
        """Mark questions, as one batch; returns how many changed.

        Raises:
            StoreError: the store cannot be written.
        """
        changes = self.changes(run, question_ids, mark)
        self.apply(run, changes)
        return len(changes)

    def annotate(self, run: RunRow, question_id: str, note: str) -> bool:
        """Put a note in place of the one that stands; returns whether it differs.

        Raises:
            StoreError: the store cannot be written.
        """
        changes = self.changes(run, [question_id], note=note)
        self.apply(run, changes)
        return bool(changes)

    def undoing(self, run: RunRow) -> list[Change]:
        """What :meth:`undo` would change now; nothing is written."""
        return self._last_batch(run)[1]

    def undo(self, run: RunRow) -> int:
        """Take back the last batch that was not taken back yet; returns how many questions it touches, 0 for none.

        Raises:
            StoreError: the store cannot be written.
        """
        batch, changes = self._last_batch(run)
        self._append(run, changes, undoes=batch)
        return len({change.question_id for change in changes})

    def _last_batch(self, run: RunRow) -> tuple[str | None, list[Change]]:
        rows = self._store.query(
            "SELECT batch FROM marks WHERE dataset = ? AND adapter = ? AND undoes IS NULL AND batch NOT IN "
            "(SELECT undoes FROM marks WHERE undoes IS NOT NULL) ORDER BY mark_id DESC LIMIT 1",
            [run.dataset, run.adapter],
        )
        if not rows:
            return None, []
        batch = rows[0]["batch"]
        done = self._store.query(
            "SELECT question_id, kind, old, new FROM marks WHERE batch = ? ORDER BY mark_id", [batch]
        )
        return batch, [Change(r["question_id"], r["kind"], r["new"], r["old"]) for r in done]

    def history(self, run: RunRow, question_id: str) -> list[Entry]:
        """Every mark and note a question ever had, oldest first."""
        rows = self._store.query(
            "SELECT * FROM marks WHERE dataset = ? AND adapter = ? AND question_id = ? ORDER BY mark_id",
            [run.dataset, run.adapter, question_id],
        )
        return [
            Entry(
                datetime.fromisoformat(row["at"]), row["who"], row["run_id"], row["kind"], row["old"], row["new"],
                row["undoes"] is not None,
            )
            for row in rows
        ]  # fmt: skip

    def progress(self, run: RunRow) -> Mapping[Mark, int]:
        """How many FAILs of a run bear each mark, ``open`` among them."""
        total = self._store.count(run.run_id, Where("outcome = 'FAIL'"))
        # From the few that are marked to their traces, never from all traces to a mark.
        rows = self._store.query(
            "SELECT m.new AS mark, count(*) AS n FROM current_marks m CROSS JOIN traces t "
            "ON t.run_id = ? AND t.question_id = m.question_id "
            "WHERE m.dataset = ? AND m.adapter = ? AND m.new <> 'open' AND t.outcome = 'FAIL' GROUP BY 1",
            [run.run_id, run.dataset, run.adapter],
        )
        counts = {Mark(row["mark"]): int(row["n"]) for row in rows}
        counts[Mark.OPEN] = total - sum(counts.values())
        return {mark: counts.get(mark, 0) for mark in Mark}

    def saved_filters(self) -> dict[str, str]:
        """Saved filters by name."""
        rows = self._store.query("SELECT name, filter FROM saved_filters ORDER BY name")
        return {row["name"]: row["filter"] for row in rows}

    def save_filter(self, name: str, text: str) -> None:
        """Keep a filter under a name; an empty text forgets the name.

        Raises:
            UsageError: the name is empty.
            StoreError: the store cannot be written.
        """
        if not name.strip():
            raise UsageError("a saved filter needs a name", "Type one or two words.")
        with self._writing() as connection:
            if text.strip():
                row = (name.strip(), text.strip(), _now())
                connection.execute("INSERT OR REPLACE INTO saved_filters VALUES (?, ?, ?)", row)
            else:
                connection.execute("DELETE FROM saved_filters WHERE name = ?", [name.strip()])

    def _append(self, run: RunRow, changes: list[Change], undoes: str | None = None) -> None:
        if not changes:
            return
        batch, at = os.urandom(8).hex(), _now()
        rows = [
            (batch, undoes, at, self.who, run.dataset, run.adapter, c.question_id, run.run_id, c.kind, c.old, c.new)
            for c in changes
        ]
        columns = "batch, undoes, at, who, dataset, adapter, question_id, run_id, kind, old, new"
        with self._writing() as connection:
            connection.executemany(f"INSERT INTO marks ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        path = self._store.directory / FILE_NAME
        if not path.is_file():
            raise StoreError(f"{path}: the store is gone", "Marks cannot be kept without it.")
        try:
            with closing(sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_error(error, path) from error


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a number that no user bears.
        return "unknown"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
