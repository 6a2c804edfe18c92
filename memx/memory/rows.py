"""The rows of the built-in memory: raw texts with their metadata in SQLite, in the order they came."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

_SCHEMA = """CREATE TABLE IF NOT EXISTS memories (
  position INTEGER PRIMARY KEY, memory_id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, created_at TEXT,
  thread TEXT NOT NULL, attributes TEXT NOT NULL, metadata TEXT NOT NULL, feedback REAL NOT NULL DEFAULT 0)"""
_COLUMNS = "memory_id, text, created_at, thread, attributes, metadata"


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored text.

    Attributes:
        thread: what it is part of, such as a conversation; neighbours in a thread give each other context.
        attributes: what queries may ask for by value: ``speaker``, ``role``, ...
        metadata: whatever native ids the caller has; must be JSON, and is never read by retrieval.
    """

    memory_id: str
    text: str
    created_at: datetime | None = None
    thread: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


class RowStore:
    """Memories by position (0, 1, 2, ... in order of insertion); the indexes beside it count positions alike.

    Args:
        path: a SQLite file; None keeps the rows in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._connection = sqlite3.connect(path or ":memory:", check_same_thread=False)
        with self._connection:
            self._connection.execute(_SCHEMA)
        row = self._connection.execute("SELECT COUNT(*), COALESCE(MAX(position), -1) FROM memories").fetchone()
        if row[0] != row[1] + 1:
            raise sqlite3.DatabaseError("memories are missing between the first and the last")
        self._count: int = row[0]

    def __len__(self) -> int:
        return self._count

    def append(self, memories: Sequence[Memory]) -> None:
        """Add memories after the last.

        Raises:
            ValueError: a memory id is stored already, or metadata is no JSON; nothing is added then.
        """
        values = []
        for position, memory in enumerate(memories, start=self._count):
            at = memory.created_at.isoformat() if memory.created_at else None
            try:
                # SQLite text is UTF-8, in which a lone surrogate has no form; JSON escapes carry it through.
                given = (memory.memory_id, memory.text, memory.thread, dict(memory.attributes), dict(memory.metadata))
                memory_id, text, thread, attributes, metadata = (json.dumps(part) for part in given)
            except TypeError as error:
                raise ValueError(f"metadata of memory '{memory.memory_id}' is no JSON: {error}") from None
            values.append((position, memory_id, text, at, thread, attributes, metadata))
        try:
            with self._connection:
                self._connection.executemany(
                    f"INSERT INTO memories (position, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", values
                )
        except sqlite3.IntegrityError:
            raise ValueError(self._repeated(memories)) from None
        self._count += len(values)

    def _repeated(self, memories: Sequence[Memory]) -> str:
        seen: set[str] = set()
        for memory in memories:
            found = self._connection.execute(
                "SELECT 1 FROM memories WHERE memory_id = ?", (json.dumps(memory.memory_id),)
            ).fetchone()
            if found or memory.memory_id in seen:
                return f"memory '{memory.memory_id}' is stored already"
            seen.add(memory.memory_id)
        return "a memory is stored already"

    def at(self, positions: Sequence[int]) -> list[Memory]:
        """The memories at these positions, in the order asked."""
        found = {}
        for start in range(0, len(positions), 500):
            part = positions[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT position, {_COLUMNS} FROM memories WHERE position IN ({marks})",
                [int(position) for position in part],
            )
            found.update({row[0]: _memory(row[1:]) for row in rows})
        return [found[int(position)] for position in positions]

    def all(self) -> Iterator[Memory]:
        """Every memory in order."""
        rows = self._connection.execute(f"SELECT {_COLUMNS} FROM memories ORDER BY position")
        return (_memory(row) for row in rows)

    def add_feedback(self, memory_id: str, value: float) -> None:
        """Add to a memory's feedback.

        Raises:
            KeyError: no such memory.
        """
        with self._connection:
            done = self._connection.execute(
                "UPDATE memories SET feedback = feedback + ? WHERE memory_id = ?", (value, json.dumps(memory_id))
            )
        if not done.rowcount:
            raise KeyError(memory_id)

    def feedback(self) -> dict[int, float]:
        """The feedback of the memories that have any, by position."""
        rows = self._connection.execute("SELECT position, feedback FROM memories WHERE feedback != 0")
        return dict(rows.fetchall())

    def save_to(self, path: Path) -> None:
        """Write all rows to a new SQLite file."""
        target = sqlite3.connect(path)
        try:
            self._connection.backup(target)
        finally:
            target.close()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _memory(row: Sequence[Any]) -> Memory:
    memory_id, text, created_at, thread, attributes, metadata = row
    at = datetime.fromisoformat(created_at) if created_at else None
    return Memory(
        json.loads(memory_id), json.loads(text), at, json.loads(thread), json.loads(attributes), json.loads(metadata)
    )
