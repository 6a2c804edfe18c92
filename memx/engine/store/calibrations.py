"""Calibrations of diagnosis kept in the run store, so that what quotes stages can say how often they are right."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import memx
from memx.engine.store.schema import FILE_NAME, open_for_writing, store_error


@dataclass(frozen=True, slots=True)
class Calibration:
    """What came of the faults that were planted into one kind of store.

    Attributes:
        stage_right: faults whose stage was named.
        cause_right: faults whose cause was named.
    """

    dataset: str
    store: str
    provenance: bool
    faults: int
    stage_right: int
    cause_right: int


def keep_calibration(directory: Path, found: Calibration, seeds: tuple[int, ...]) -> None:
    """Keep a calibration in place of an older one of the same dataset and kind of store.

    Raises:
        StoreError: the store cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    row = (
        found.dataset, found.store, found.provenance, ", ".join(map(str, seeds)), memx.__version__, found.faults,
        found.stage_right, found.cause_right, now,
    )  # fmt: skip
    try:
        store = open_for_writing(directory)
        with store.conn:
            store.conn.execute("INSERT OR REPLACE INTO calibrations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        store.conn.close()
    except sqlite3.Error as error:
        raise store_error(error, directory / FILE_NAME) from error


def calibrations_of(query: Callable[[str, Sequence[Any]], Sequence[Any]], dataset: str) -> tuple[Calibration, ...]:
    """What was measured on a dataset, else on the one measured last; nothing where none was."""
    rows = query("SELECT * FROM calibrations ORDER BY dataset = ? DESC, at DESC", [dataset])
    measured = [row for row in rows if row["dataset"] == rows[0]["dataset"]]
    found = [
        Calibration(
            row["dataset"], row["store"], bool(row["provenance"]), row["faults"], row["stage_right"], row["cause_right"]
        )
        for row in measured
    ]
    return tuple(sorted(found, key=lambda one: (not one.provenance, one.store)))
