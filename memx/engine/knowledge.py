"""The memory that ``memx ingest`` fills and ``memx ask`` reads: the built-in one, kept on disk.

Records stand in ``memory.db``; ingesting a source again replaces its records in one transaction. Indexes are derived:
they are built when first needed and kept under ``cache`` by the content of all records.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memx.adapters.sources.contract import Record
from memx.adapters.sources.memories import memory_of
from memx.engine.store import codec
from memx.engine.store.schema import BUSY_MS, store_error
from memx.errors import InputError
from memx.memory.case_cache import CaseCache
from memx.memory.embedding import minilm
from memx.memory.embedding_cache import CachedEmbedder
from memx.memory.engine import MemoryEngine
from memx.memory.rows import Memory
from memx.model import Retrieved

FILE_NAME = "memory.db"
#: Records that are embedded between two words of progress.
_BATCH = 128
_SCHEMA = """CREATE TABLE IF NOT EXISTS records (
  source TEXT NOT NULL, root TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
  metadata TEXT NOT NULL, PRIMARY KEY (source, root, id)) WITHOUT ROWID"""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What ingesting a source changed, in records."""

    added: int
    changed: int
    removed: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A source that was ingested."""

    source: str
    root: str
    records: int


class Knowledge:
    """The records of one directory.

    Args:
        directory: where ``memory.db`` and ``cache`` live; made at the first ingest.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / FILE_NAME

    def put(self, source: str, root: str, records: Iterable[Record]) -> Ingested:
        """Put the records of a source in place of those that were there, all or none.

        Raises:
            InputError: two records bear the same id.
            StoreError: the file cannot be written.
        """
        rows: dict[str, tuple[int, str, str]] = {}
        for position, record in enumerate(records):
            row = (position, codec.clean(record.text), codec.dumps(record.metadata))
            if rows.setdefault(codec.clean(str(record.metadata["id"])), row) is not row:
                raise InputError(f"two records bear the id {record.metadata['id']}", path=root)
        with self._open(writing=True) as db:
            key = (source, root)
            sql = "SELECT id, position, text, metadata FROM records WHERE source = ? AND root = ?"
            before = {row[0]: row[1:] for row in db.execute(sql, key)}
            db.execute("DELETE FROM records WHERE source = ? AND root = ?", key)
            values = [(*key, identity, *row) for identity, row in rows.items()]
            db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", values)
        kept = rows.keys() & before.keys()
        changed = sum(rows[identity][1:] != tuple(before[identity][1:]) for identity in kept)
        return Ingested(len(rows) - len(kept), changed, len(before) - len(kept), len(kept) - changed)

    def sources(self) -> list[Kept]:
        """What was ingested, by source and folder."""
        with self._open() as db:
            sql = "SELECT source, root, count(*) FROM records GROUP BY source, root ORDER BY source, root"
            return [Kept(*row) for row in db.execute(sql)]

    def memories(self) -> list[Memory]:
        """All records as the built-in memory takes them.

        Raises:
            InputError: nothing was ingested.
        """
        with self._open() as db:
            sql = "SELECT root, text, metadata FROM records ORDER BY source, root, position"
            found = [memory_of(root, text, codec.loads(metadata)) for root, text, metadata in db.execute(sql)]
        if not found:
            raise InputError("nothing is ingested here", "Begin with: memx ingest obsidian PATH", path=self._directory)
        return found

    def indexed(
        self, mode: str = "full", progress: Callable[[int, int], None] = lambda done, total: None
    ) -> MemoryEngine:
        """The memory with its indexes, built where they are not kept.

        Args:
            mode: of retrieval.
            progress: told how many of how many records are indexed.

        Raises:
            InputError: nothing was ingested.
            MemxError: the embedder failed, or no such mode.
        """
        memories = self.memories()
        cache = CaseCache(self._directory / "cache" / "knowledge")
        engine = MemoryEngine(CachedEmbedder(minilm(), self._directory / "cache"), mode)
        if cache.load(engine, memories):
            return engine
        for start in range(0, len(memories), _BATCH):
            progress(start, len(memories))
            # Extraction threads cost more than they bring for so few at a time.
            engine.insert_batch(memories[start : start + _BATCH], parallel_extract=False)
        progress(len(memories), len(memories))
        cache.save(engine, memories)
        self._forget_indexes({cache.path_of(memories, kind) for kind in ("full", "words")})
        return engine

    def _forget_indexes(self, wanted: set[Path]) -> None:
        """Remove the indexes of records that are there no more."""
        for path in (self._directory / "cache" / "knowledge").iterdir():
            if path not in wanted:
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _open(self, writing: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if writing:
                self._directory.mkdir(parents=True, exist_ok=True)
            elif not self._path.is_file():
                raise InputError(
                    "nothing is ingested here", "Begin with: memx ingest obsidian PATH", path=self._directory
                )
            connection = sqlite3.connect(self._path, timeout=BUSY_MS / 1000, isolation_level=None)
            try:
                if writing:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute(_SCHEMA)
                yield connection
                if writing:
                    connection.execute("COMMIT")
            finally:
                connection.close()
        except (sqlite3.Error, OSError) as error:
            raise store_error(error, self._path) from error


def retrieved(engine: MemoryEngine, question: str, top_k: int) -> tuple[tuple[Retrieved, ...], dict[str, datetime]]:
    """The memories most relevant to a question, best first, and when each is of, by id."""
    hits = engine.recall(question, top_k).hits
    dates = {hit.memory.memory_id: hit.memory.created_at for hit in hits if hit.memory.created_at is not None}
    found = tuple(
        Retrieved(hit.memory.memory_id, hit.memory.text, hit.score, hit.signals, hit.memory.metadata) for hit in hits
    )
    return found, dates
