"""Searching one run as fast as its user types: the columns that filters name, copied to memory.

Rows of ``traces`` are long, and a search in their texts reads every page of a file that is larger than any cache. A
temporary table bears the name of the real one and hides it on this connection, so that the same conditions and orders
hold for both.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from memx.engine.store.reader import Store, Where

_COLUMNS = (
    "run_id, position, question_id, case_id, outcome, stage, cause, category, rank, confidence, context_tokens, "
    "question, gold, candidate, why, error"
)
#: Lists of keys that are kept.
_MOST_LISTS = 24
#: Runs with more text than this are searched in the file: 24 MiB of characters.
_MOST_TEXT = 24 << 20


class RunSearch(Store):
    """A store of its own whose questions are searched in memory. Calls from several threads take turns.

    Args:
        directory: where ``memx.db`` lives.

    Raises:
        StoreError: there is no store here, or it cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._turn = threading.Lock()
        self._held: tuple[str, int] | None = None
        self._copied: tuple[object, ...] = ()
        self._found: OrderedDict[tuple[object, ...], list[int]] = OrderedDict()
        # What is searched stands in the temporary table; a page of the file is read once and not again.
        self.query("PRAGMA cache_size = -2048")
        self.query("PRAGMA temp_store = MEMORY")

    def question_keys(self, run_id: str, where: Where | None = None, *, sort: str = "position") -> list[int]:
        """Keys of all questions that meet the condition, in order."""
        where = where or Where()
        wanted = (where.sql, where.params, sort)
        with self._turn:
            self._hold(run_id)
            # Orders are gone through in turn and filters are typed and deleted: the same lists come again.
            if wanted not in self._found:
                self._found[wanted] = super().question_keys(run_id, where, sort=sort)
                if len(self._found) > _MOST_LISTS:
                    self._found.popitem(last=False)
            return list(self._found[wanted])

    def count(self, run_id: str, where: Where | None = None) -> int:
        """How many finished questions of a run meet the condition."""
        with self._turn:
            self._hold(run_id)
            return super().count(run_id, where)

    def _hold(self, run_id: str) -> None:
        """Copy the run, unless it is held as it stands now."""
        now = (run_id, self.data_version())
        if now == self._held:
            return
        self._held = None
        self._found.clear()
        # Marks and other runs change the file too. A question that is asked again has a new row, or a later date.
        rows = self.query(
            "SELECT run_id, updated_at, (SELECT count(*) FROM main.traces WHERE run_id = r.run_id), "
            "(SELECT max(rowid) FROM main.traces WHERE run_id = r.run_id) FROM runs r WHERE run_id = ?",
            [run_id],
        )
        state = tuple(rows[0]) if rows else (run_id,)
        if state != self._copied:
            self._copied = ()
            self._copy(run_id)
            self._copied = state
        self._held = now

    def _copy(self, run_id: str) -> None:
        self.query("DROP TABLE IF EXISTS temp.traces")
        size = self.query(
            "SELECT coalesce(sum(length(question) + length(gold) + ifnull(length(candidate), 0) + length(why)), 0) "
            "FROM main.traces WHERE run_id = ?",
            [run_id],
        )[0][0]
        if size <= _MOST_TEXT:
            self.query(f"CREATE TEMP TABLE traces (key INTEGER PRIMARY KEY, {_COLUMNS})")
            self.query(f"INSERT INTO temp.traces SELECT rowid, {_COLUMNS} FROM main.traces WHERE run_id = ?", [run_id])
