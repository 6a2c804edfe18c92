"""Opening a dataset by the name a user types: ``locomo``, ``beam:500k``, ``longmemeval:s-smoke``, ``module:Class``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memx.adapters.contract import Dataset
from memx.adapters.datasets.archives import is_archive, unpacked
from memx.adapters.datasets.cache import dataset_dir
from memx.adapters.datasets.selection import SLICES, select
from memx.adapters.registry import dataset_class, names
from memx.errors import InputError, UnknownNameError


def open_dataset(spec: str, source: Path | None = None, **options: Any) -> Dataset:
    """Open a dataset.

    Args:
        spec: a name; behind a colon a part (``beam:500k``), a slice (``locomo:smoke``) or both (``beam:500k-smoke``).
            A class of one's own is ``module.path:Class``.
        source: its file or folder, or an archive of it; without it what ``memx datasets pull`` put into the cache.
        options: what the loader takes: ``captions``, ``skip_bad``, ...

    Raises:
        UnknownNameError: no such dataset, part or slice.
        InputError: the file is missing or broken.
    """
    name, _, suffix = spec.partition(":")
    slice_name = ""
    if suffix and name in names("dataset"):
        found = dataset_class(name)
        part, slice_name = _part_and_slice(name, suffix, getattr(found, "parts", ()))
        if part:
            options["part"] = part
    else:
        name, found = spec, dataset_class(spec)
    if source is None and found.needs_source:
        source = _cached(name, options.get("part", ""))
    elif source is not None:
        source = source.expanduser()
        if is_archive(source):
            source = unpacked(source)
    dataset = found.load(source, **options)
    return select(dataset, SLICES[slice_name]) if slice_name else dataset


def _part_and_slice(name: str, suffix: str, parts: tuple[str, ...]) -> tuple[str, str]:
    """``500k-smoke`` as part and slice; either may be missing."""
    by_lower = {part.lower(): part for part in parts}
    head, dash, tail = suffix.rpartition("-")
    for part, slice_name in ((suffix, ""), ("", suffix), (head, tail) if dash else ("", suffix)):
        if (not part or part.lower() in by_lower) and (not slice_name or slice_name.lower() in SLICES):
            return by_lower.get(part.lower(), ""), slice_name.lower()
    raise UnknownNameError(f"part or slice of {name}", suffix, {*parts, *SLICES})


def _cached(name: str, part: str) -> Path:
    folder = dataset_dir(name) / part if part else dataset_dir(name)
    if folder.is_dir():
        return folder
    wanted = f"{name}:{part}" if part else name
    raise InputError(
        f"dataset '{name}' needs its file",
        f"Fetch it with: memx datasets pull {wanted}; or give your own with --source PATH.",
    )
