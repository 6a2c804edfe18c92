"""Where downloaded datasets are kept, and the checksums of large files, so that each is read through once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from memx.adapters.contract import file_sha256

_SMALL = 64 << 20


def cache_dir() -> Path:
    """The cache directory: ``MEMX_CACHE_DIR``, else the platform's own for ``memx``."""
    chosen = os.environ.get("MEMX_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("memx")


def dataset_dir(name: str) -> Path:
    """Where ``memx datasets pull NAME`` puts its files."""
    return cache_dir() / "datasets" / name


def known_sha256(path: Path) -> str:
    """SHA-256 of a file; for a large one it is remembered by path, size and time of change."""
    status = path.stat()
    if status.st_size < _SMALL:
        return file_sha256(path)
    key = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    record = cache_dir() / "checksums.json"
    known: dict[str, str] = {}
    # The record only saves time: an unreadable one is made anew, and one that cannot be written is done without.
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(record.read_text(encoding="utf-8"))
    if key not in known:
        known[key] = file_sha256(path)
        with contextlib.suppress(OSError):
            record.parent.mkdir(parents=True, exist_ok=True)
            scratch = record.with_suffix(f".{os.getpid()}.tmp")
            scratch.write_text(json.dumps(known, indent=1), encoding="utf-8")
            scratch.replace(record)
    return known[key]


def files_sha256(root: Path, files: list[Path]) -> str:
    """One SHA-256 over several files: of the lines ``checksum  path below root`` that ``sha256sum`` prints."""
    lines = (f"{known_sha256(path)}  {path.relative_to(root).as_posix()}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
