"""Writing what is shown to files: the same bytes as ``memx export`` writes with the same filter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memx.engine.store.reader import RunRow, Store, Where
from memx.errors import StoreError

#: Formats of ``memx export``: the key that takes it, what it is, and how the file's name ends.
FORMATS = {
    "json": ("j", "JSON, the Diagnostic Summary and all fields", "json"),
    "csv": ("c", "CSV, one line per question", "csv"),
    "md": ("m", "Markdown, for an issue", "md"),
    "html": ("h", "HTML, a page to hand on", "html"),
    "result": ("r", "result, JSON for other tools", "result.json"),
    "junit": ("u", "JUnit, XML for CI", "xml"),
}


def export(store: Store, run: RunRow, format_: str, where: Where, name: str) -> Path:
    """Write the questions that meet a condition; returns the file, in ``exports`` beside the store.

    Raises:
        StoreError: the directory cannot be written, or the disk is full.
    """
    from memx.engine import export as engine
    from memx.engine.last_run import write_atomically

    chunks = engine.FORMATS[format_](store, run.run_id, None if where == Where() else where)
    folder = store.directory / "exports"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made: {error.strerror}", "Choose another place with --dir.") from None
    target = (folder / f"{_file_name(name)}.{FORMATS[format_][2]}").absolute()
    write_atomically(target, chunks)
    if format_ == "result":
        manifest = target.with_name(f"{target.name}.manifest.json")
        write_atomically(manifest, iter([engine.result_manifest(store, run.run_id)]))
    return target


def among(keys: Sequence[int]) -> Where:
    """The condition that holds for some keys of a listing."""
    return Where(f"rowid IN ({','.join(map(str, map(int, keys)))})")


def _file_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in name)[:120].strip("-.") or "export"
