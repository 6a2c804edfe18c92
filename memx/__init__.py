"""memx, the debugger for agent memory.

The public names are resolved when first used, so that importing a submodule loads nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    **dict.fromkeys(
        ["Session", "Turn", "Question", "Case", "Fact", "Snapshot", "Retrieved", "QueryResult", "Trace", "Verdict"],
        "memx.model",
    ),
    **dict.fromkeys(["Diagnosis", "Measure", "Value"], "memx.model"),
    **dict.fromkeys(["MemxError", "AdapterError", "AdapterTimeoutError"], "memx.errors"),
    "MemoryAdapter": "memx.adapters.contract",
    **dict.fromkeys(["run", "measure", "paired", "catalog", "adapter", "dataset", "Run"], "memx.engine.api"),
}

__all__ = [
    "AdapterError", "AdapterTimeoutError", "Case", "Diagnosis", "Fact", "Measure", "MemoryAdapter", "MemxError",
    "QueryResult", "Question", "Retrieved", "Run", "Session", "Snapshot", "Trace", "Turn", "Value", "Verdict",
    "adapter", "catalog", "dataset", "measure", "paired", "run",
]  # fmt: skip

if TYPE_CHECKING:
    from memx.adapters.contract import MemoryAdapter
    from memx.engine.api import Run, adapter, catalog, dataset, measure, paired, run
    from memx.errors import AdapterError, AdapterTimeoutError, MemxError
    from memx.model import (
        Case,
        Diagnosis,
        Fact,
        Measure,
        QueryResult,
        Question,
        Retrieved,
        Session,
        Snapshot,
        Trace,
        Turn,
        Value,
        Verdict,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'memx' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
