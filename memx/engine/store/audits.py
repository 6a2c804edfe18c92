"""Judge audits kept in the run store, so that every report can say how far its judge can be trusted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memx.engine.store.schema import FILE_NAME, open_for_writing, store_error

#: What an audit counts: wrong answers accepted of those planted, right answers rejected of those planted.
Counts = tuple[int, int, int, int]


def keep_audit(directory: Path, judge: str, prompt_sha256: str, dataset: str, seed: int, counts: Counts) -> None:
    """Keep the counts of one audit; one of the same judge, dataset and seed is replaced.

    Args:
        counts: false accepts, wrong answers planted, false rejects, right answers planted.

    Raises:
        StoreError: the store cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        store = open_for_writing(directory)
        with store.conn:
            store.conn.execute(
                "INSERT OR REPLACE INTO judge_audits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (judge, prompt_sha256, dataset, seed, *counts, now),
            )
        store.conn.close()
    except sqlite3.Error as error:
        raise store_error(error, directory / FILE_NAME) from error


def audit_of(
    query: Callable[[str, Sequence[Any]], Sequence[Any]], judge: str, prompt_sha256: str, dataset: str
) -> tuple[str, Counts] | None:
    """Dataset and summed counts of a judge's audits: on the run's own dataset, else on the last one audited."""
    rows = query(
        "SELECT * FROM judge_audits WHERE judge = ? AND prompt_sha256 = ? ORDER BY dataset = ? DESC, at DESC",
        [judge, prompt_sha256, dataset],
    )
    if not rows:
        return None
    audited = str(rows[0]["dataset"])
    same = [row for row in rows if row["dataset"] == audited]
    a, b, c, d = (
        sum(int(row[name]) for row in same) for name in ("false_accepts", "wrong", "false_rejects", "right_ones")
    )
    return audited, (a, b, c, d)
