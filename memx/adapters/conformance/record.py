"""The last conformance result of each adapter, kept in ``.memx/conformance.json``, and what a run makes of it."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memx.adapters.conformance.report import Report
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import secret_names
from memx.errors import StoreError

FILE_NAME = "conformance.json"
#: Options that say where caches and data lie, not how the system behaves.
_NOT_BEHAVIOUR = frozenset({"dataset_sha256"})


def adapter_key(adapter: type[MemoryAdapter], version: str, options: Mapping[str, Any]) -> str:
    """What a result holds for: name, version, the class and its source file, and the options that are no secrets."""
    try:
        source = Path(inspect.getfile(adapter)).read_bytes()
    except (OSError, TypeError):
        source = b""
    hidden = secret_names(adapter.OPTIONS) | _NOT_BEHAVIOUR
    told = sorted((name, str(value)) for name, value in options.items() if name not in hidden)
    digest = hashlib.sha256(source + json.dumps([adapter.__qualname__, told]).encode()).hexdigest()[:12]
    return f"{adapter.name or adapter.__name__} {version} {digest}"


def write_result(directory: Path, key: str, report: Report) -> None:
    """Keep a result as the last one of its key; the file is replaced whole.

    Raises:
        StoreError: the directory cannot be written.
    """
    known = _read(directory)
    known[key] = {
        "checked_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "failed": {result.name: result.why for result in report.results if result.name in report.failed},
        "left_out": [result.name for result in report.results if result.why == "left out"],
    }
    path = directory / FILE_NAME
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{FILE_NAME}.{os.getpid()}")
        temporary.write_text(json.dumps(known, indent=1), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}"
        raise StoreError(message, "Choose a directory you can write with --dir.") from None


def last_result(directory: Path, key: str) -> dict[str, Any] | None:
    """The last result of a key; None where it was never checked, or where the file cannot be read."""
    found = _read(directory).get(key)
    return found if isinstance(found, dict) else None


def _read(directory: Path) -> dict[str, Any]:
    try:
        data = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
