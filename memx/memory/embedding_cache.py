"""Vectors of texts kept on disk across cases and runs: haystacks share sessions, and questions are asked again.

One SQLite file for all models; a row's key is the embedder's signature and the SHA-256 of the text, its value the
float32 vector. Several threads and processes may use the file at once. A file that cannot be used is set aside.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memx.memory.embedding import Embedder, Signature

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

log = logging.getLogger(__name__)
FILE_NAME = "embeddings.sqlite"
#: Raised when the layout of the file changes; a file of another version is set aside.
VERSION = 2
_CHUNK = 500  # SQLite allows 999 variables in a statement on old builds
# Held while a file is opened or set aside: of several embedders that meet the same damage one sets the file aside, and
# the others find the new one.
_opening = threading.Lock()
_SCHEMA = """CREATE TABLE IF NOT EXISTS vectors (
  signature TEXT NOT NULL, text_sha256 BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (signature, text_sha256)
)"""


class CachedEmbedder(Embedder):
    """An embedder that asks its cache file first, and writes there what it had to compute.

    Args:
        embedder: computes what the file lacks.
        directory: where the file lies; made if missing. A directory that cannot be written leaves the cache unused.
    """

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self.path = directory / FILE_NAME
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file = 0
        self.hits = self.misses = 0
        with self._lock, _opening:
            self._open()

    @property
    def signature(self) -> Signature:
        return self._embedder.signature

    def encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        with self._lock:
            known = self._guard(self._read, set(keys)) or {}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        self.hits, self.misses = self.hits + len(set(keys)) - len(missing), self.misses + len(missing)
        if missing:
            computed = dict(zip(missing, self._embedder.embed(list(missing.values())), strict=True))
            with self._lock:
                self._guard(self._write, computed)
            known = {**known, **computed}
        return np.stack([known[key] for key in keys])

    def close(self) -> None:
        """Close the file; the embedder goes on without it."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _read(self, keys: Iterable[bytes]) -> dict[bytes, Matrix]:
        import numpy as np

        assert self._connection is not None
        wanted = list(keys)
        found: dict[bytes, Matrix] = {}
        for start in range(0, len(wanted), _CHUNK):
            part = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT text_sha256, vector FROM vectors WHERE signature = ? AND text_sha256 IN ({marks})",
                (_key(self.signature), *part),
            )
            for key, blob in rows:
                if len(blob) == 4 * self.signature.dimension:
                    vector = np.frombuffer(blob, dtype="<f4")
                    # Every vector is of unit length; one that is not was damaged on disk and is computed anew.
                    if abs(float(vector @ vector) - 1.0) < 1e-3:
                        found[bytes(key)] = vector
        return found

    def _write(self, vectors: Mapping[bytes, Matrix]) -> None:
        assert self._connection is not None
        signature = _key(self.signature)
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [(signature, key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()],
            )

    def _guard(self, action: Any, argument: Any) -> Any:
        """Run an action on the file; a damaged file is set aside, a full or locked disk leaves the cache unused."""
        if self._connection is None:
            return None
        try:
            return action(argument)
        except sqlite3.OperationalError as error:
            log.warning("embedding cache %s is not used: %s", self.path, error)
        except sqlite3.DatabaseError as error:
            with _opening:
                self._set_aside(str(error))
                self._open()
            return None
        with suppress(sqlite3.Error):
            self._connection.close()
        self._connection = None
        return None

    def _open(self) -> None:
        for attempt in (1, 2):
            connection = None
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
                self._file = _inode(self.path)
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version not in (0, VERSION):
                    raise sqlite3.DatabaseError(f"written by another version ({version})")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                with connection:
                    connection.execute(_SCHEMA)
                    connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute("SELECT signature, text_sha256, vector FROM vectors LIMIT 1").fetchone()
                self._connection = connection
                return
            except (OSError, sqlite3.OperationalError) as error:
                if connection is not None:
                    connection.close()
                if "no such column" not in str(error):
                    log.warning("embedding cache %s is not used: %s", self.path, error)
                    return
                reason = str(error)
            except sqlite3.DatabaseError as error:
                reason = str(error)
            if connection is not None:
                connection.close()
            if attempt == 1:
                self._set_aside(reason)

    def _set_aside(self, reason: str) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        aside = self.path.with_name(f"{self.path.name}.broken-{os.getpid()}")
        if _inode(self.path) != self._file:
            return  # another has done it
        log.warning("embedding cache %s is unusable (%s): set aside as %s and rebuilt", self.path, reason, aside.name)
        # The log first: left beside a new file it would be taken for that file's.
        with suppress(OSError):
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            self.path.replace(aside)


def _inode(path: Path) -> int:
    """Tells a file from another that took its name; 0 where there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _key(signature: Signature) -> str:
    return f"{signature.model}|{signature.dimension}|{signature.sha256}"
