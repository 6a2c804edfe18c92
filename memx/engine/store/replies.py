"""Model replies kept in the run store by content key, for all runs of a directory: a re-run costs nothing."""

from __future__ import annotations

import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memx.engine.store import codec
from memx.engine.store.schema import FILE_NAME, open_for_writing, store_error


class StoredReplies:
    """The reply cache of the model client; safe to call from several threads and processes.

    Args:
        directory: where ``memx.db`` lives. The file is opened at the first call, so that an offline run never does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> dict[str, Any] | None:
        """The kept reply, or None."""
        row = self._execute("SELECT value FROM llm_cache WHERE key = ?", (key,))
        value: dict[str, Any] | None = codec.loads(row[0]) if row else None
        return value

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a reply under its key."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        text = codec.clean(codec.dumps(value))
        self._execute("INSERT OR REPLACE INTO llm_cache (key, value, created_at) VALUES (?, ?, ?)", (key, text, now))

    def _execute(self, sql: str, params: tuple[str, ...]) -> Any:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = open_for_writing(self._directory).conn
                return self._connection.execute(sql, params).fetchone()
            except sqlite3.Error as error:
                raise store_error(error, self._directory / FILE_NAME) from error
