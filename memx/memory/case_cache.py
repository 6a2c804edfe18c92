"""A whole indexed memory on disk, to be read back in place of embedding and indexing again.

One directory per history, named by the SHA-256 of its memories and by whether attributes were extracted. It holds
``memories.sqlite``, ``vectors.faiss``, ``bm25.npz`` (numbers), ``words.json``, ``extracted.jsonl`` and
``manifest.json``, and is read only when the manifest is of this version and names the same dataset, embedding model and
dimension, and the SHA-256 of every file. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from memx.memory.dense import DenseIndex
from memx.memory.engine import MemoryEngine
from memx.memory.extraction import Extracted
from memx.memory.lexical import Bm25Index
from memx.memory.rows import Memory, RowStore

log = logging.getLogger(__name__)
#: Raised when files or their meaning change; what another version wrote is rebuilt.
VERSION = 2
MANIFEST = "manifest.json"
_said: set[tuple[Path, str]] = set()
_FILES = ("memories.sqlite", "vectors.faiss", "bm25.npz", "words.json", "extracted.jsonl")


class CaseCache:
    """Indexed memories under one directory.

    Args:
        dataset_sha256: of the file that the memories come from; "" where there is none.
        rebuild: read nothing; write everything anew.
    """

    def __init__(self, directory: Path, dataset_sha256: str = "", rebuild: bool = False) -> None:
        self.directory = directory
        self.dataset_sha256 = dataset_sha256
        self.rebuild = rebuild

    def path_of(self, memories: Iterable[Memory], extraction: str = "full") -> Path:
        """The directory of a history, of which ``full`` attributes or only ``words`` were extracted."""
        digest = hashlib.sha256()
        for memory in memories:
            parts = [memory.memory_id, memory.text, str(memory.created_at), memory.thread]
            digest.update(json.dumps([*parts, dict(memory.attributes), dict(memory.metadata)]).encode())
        return self.directory / f"{digest.hexdigest()[:32]}-{extraction}"

    def load(self, engine: MemoryEngine, memories: Sequence[Memory]) -> bool:
        """Fill an empty engine with indexed memories; False when there is no valid cache of them.

        One that is there and cannot be used is removed, and a line of the log says why.
        """
        path = self.path_of(memories, _extraction(engine))
        for part in path.parent.glob(f"{path.name}.*.part"):
            if _abandoned(part):
                self._say("a write of it was cut short", path)
                shutil.rmtree(part, ignore_errors=True)
        if self.rebuild or not path.is_dir():
            return False
        reason = self._unusable(path, engine)
        if not reason:
            try:
                _read(path, engine, len(memories))
                return True
            # The hashes agree, so whoever wrote the files was at fault; what it was matters less than to go on.
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
        self._say(reason, path)
        shutil.rmtree(path, ignore_errors=True)
        return False

    def save(self, engine: MemoryEngine, memories: Sequence[Memory]) -> None:
        """Write an engine that holds exactly these memories; a disk that is full or read-only leaves no cache."""
        path = self.path_of(memories, _extraction(engine))
        fresh = path.with_name(f"{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
        try:
            fresh.mkdir(parents=True)
            _write(fresh, engine)
            manifest = self._expected(engine) | {
                "memories": len(memories),
                "files": {name: _sha256(fresh / name) for name in _FILES},
            }
            (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1))
            if path.exists():
                shutil.rmtree(path)
            # A directory appears whole or not at all; a write that was killed leaves a .part that nobody reads.
            fresh.rename(path)
        except Exception as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if not path.is_dir():
                log.warning("no cache at %s: %s", path, error)

    def _say(self, reason: str, path: Path) -> None:
        if (self.directory, reason) not in _said:  # once for all cases of a directory
            _said.add((self.directory, reason))
            log.warning("cache of cases %s is rebuilt: %s", path, reason)

    def _expected(self, engine: MemoryEngine) -> dict[str, Any]:
        return {
            "version": VERSION,
            "dataset_sha256": self.dataset_sha256,
            "embedding": asdict(engine.embedder.signature),
        }

    def _unusable(self, path: Path, engine: MemoryEngine) -> str:
        try:
            manifest = json.loads((path / MANIFEST).read_text())
            for key, value in self._expected(engine).items():
                if manifest[key] != value:
                    return f"its {key} is {manifest[key]!r}, not {value!r}"
            for name in _FILES:
                if _sha256(path / name) != manifest["files"][name]:
                    return f"{name} is damaged"
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"it is incomplete ({type(error).__name__}: {error})"
        return ""


def _write(path: Path, engine: MemoryEngine) -> None:
    import faiss
    import numpy as np

    bm25 = engine.indexes().bm25
    engine.rows.save_to(path / "memories.sqlite")
    faiss.write_index(engine.dense.faiss_index, str(path / "vectors.faiss"))
    np.savez(path / "bm25.npz", **bm25.arrays())
    (path / "words.json").write_text(json.dumps({"size": bm25.size, "words": list(bm25.words)}))
    with (path / "extracted.jsonl").open("w") as stream:
        for one in engine.extracted:
            stream.write(json.dumps(_plain(one)) + "\n")


def _read(path: Path, engine: MemoryEngine, expected: int) -> None:
    import faiss
    import numpy as np

    rows = RowStore.copy_of(path / "memories.sqlite")
    dense = DenseIndex(engine.embedder.signature.dimension, faiss.read_index(str(path / "vectors.faiss")))
    words = json.loads((path / "words.json").read_text())
    with np.load(path / "bm25.npz", allow_pickle=False) as arrays:
        bm25 = Bm25Index(words["size"], words["words"], dict(arrays))
    with (path / "extracted.jsonl").open() as stream:
        extracted = [_extracted(json.loads(line)) for line in stream]
    sizes = {len(rows), len(dense), bm25.size, len(extracted), expected}
    if len(sizes) != 1:
        raise ValueError(f"its parts hold {sorted(sizes)} memories")
    engine.restore(rows, dense, bm25, extracted)


def _extraction(engine: MemoryEngine) -> str:
    return "full" if engine.ranks else "words"


def _plain(one: Extracted) -> dict[str, Any]:
    dates = [[first.isoformat(), last.isoformat()] for first, last in one.dates]
    return asdict(one) | {"dates": dates}


def _extracted(row: dict[str, Any]) -> Extracted:
    day: Callable[[str], date] = date.fromisoformat
    return Extracted(
        stems=tuple(row["stems"]),
        entities=tuple(row["entities"]),
        attributes=tuple((name, value) for name, value in row["attributes"]),
        dates=tuple((day(first), day(last)) for first, last in row["dates"]),
        has_number=row["has_number"],
        is_question=row["is_question"],
    )


def _abandoned(part: Path) -> bool:
    """Whether the process that began to write this directory is gone; where that cannot be asked, it is left alone."""
    process = part.name.split(".")[-2].partition("-")[0]
    if os.name != "posix" or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
