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
  position INTEGER PRIMARY KEY, memory_id NOT NULL UNIQUE, text NOT NULL, created_at TEXT, thread NOT NULL,
  attributes_metadata TEXT NOT NULL, feedback REAL NOT NULL DEFAULT 0)"""
_COLUMNS = "memory_id, text, created_at, thread, attributes_metadata"


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


#: So many rows are kept as they were read last: the queries about one history bring the same ones back again and again.
_MOST_KEPT = 4000


class RowStore:
    """Memories by position (0, 1, 2, ... in order of insertion); the indexes beside it count positions alike.

    Args:
        path: a SQLite file; None keeps the rows in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._connection = sqlite3.connect(path or ":memory:", check_same_thread=False)
        with self._connection:
            self._connection.execute(_SCHEMA)
        self._count = self._counted()
        self._kept: dict[int, Memory] = {}

    def _counted(self) -> int:
        count, last = self._connection.execute("SELECT COUNT(*), COALESCE(MAX(position), -1) FROM memories").fetchone()
        if count != last + 1:
            raise sqlite3.DatabaseError("memories are missing between the first and the last")
        return int(count)

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
                more = json.dumps([dict(memory.attributes), dict(memory.metadata)])
            except TypeError as error:
                raise ValueError(f"metadata of memory '{memory.memory_id}' is no JSON: {error}") from None
            values.append((position, _out(memory.memory_id), _out(memory.text), at, _out(memory.thread), more))
        try:
            with self._connection:
                self._connection.executemany(
                    f"INSERT INTO memories (position, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values
                )
        except sqlite3.IntegrityError:
            raise ValueError(self._repeated(memories)) from None
        self._count += len(values)

    def _repeated(self, memories: Sequence[Memory]) -> str:
        seen: set[str] = set()
        for memory in memories:
            found = self._connection.execute(
                "SELECT 1 FROM memories WHERE memory_id = ?", (_out(memory.memory_id),)
            ).fetchone()
            if found or memory.memory_id in seen:
                return f"memory '{memory.memory_id}' is stored already"
            seen.add(memory.memory_id)
        return "a memory is stored already"

    def at(self, positions: Sequence[int]) -> list[Memory]:
        """The memories at these positions, in the order asked."""
        kept = self._kept
        missing = [int(position) for position in positions if position not in kept]
        if len(kept) + len(missing) > _MOST_KEPT:
            kept = self._kept = {position: kept[position] for position in positions if position in kept}
        for start in range(0, len(missing), 500):
            part = missing[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT position, {_COLUMNS} FROM memories WHERE position IN ({marks})", part
            )
            kept.update((row[0], _memory(row[1:])) for row in rows)
        return [kept[int(position)] for position in positions]

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
                "UPDATE memories SET feedback = feedback + ? WHERE memory_id = ?", (value, _out(memory_id))
            )
        if not done.rowcount:
            raise KeyError(memory_id)

    def feedback(self) -> dict[int, float]:
        """The feedback of the memories that have any, by position."""
        rows = self._connection.execute("SELECT position, feedback FROM memories WHERE feedback != 0")
        return dict(rows.fetchall())

    @classmethod
    def copy_of(cls, path: Path) -> RowStore:
        """The rows of a SQLite file, read into memory; the file is left alone."""
        store = cls()
        source = sqlite3.connect(path)
        try:
            source.backup(store._connection)
        finally:
            source.close()
        store._count = store._counted()
        return store

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


def _out(text: str) -> str | bytes:
    """The text as SQLite takes it: a lone surrogate has no form in its UTF-8, so such a text is kept as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _in(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def _memory(row: Sequence[Any]) -> Memory:
    memory_id, text, created_at, thread, more = row
    attributes, metadata = json.loads(more)
    at = datetime.fromisoformat(created_at) if created_at else None
    return Memory(_in(memory_id), _in(text), at, _in(thread), attributes, metadata)
