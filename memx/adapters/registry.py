"""Names to classes: built-in names, installed entry points, and ``module.path:Class``.

Built-in classes are named by path and imported only when asked for, so that listing names loads nothing heavy.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from memx.adapters.contract import Dataset, MemoryAdapter
from memx.errors import UnknownNameError, UsageError
from memx.model import Measure

ADAPTERS: Mapping[str, str] = {
    "local": "memx.adapters.systems.local:LocalMemory",
    "word-overlap": "memx.adapters.systems.word_overlap:WordOverlap",
    "no-context": "memx.adapters.systems.no_context:NoContext",
    "full-context": "memx.adapters.systems.full_context:FullContext",
    "oracle": "memx.adapters.systems.oracle:Oracle",
    "mem0": "memx.adapters.systems.mem0:Mem0",
    "graphiti": "memx.adapters.systems.graphiti:Graphiti",
    "langgraph": "memx.adapters.systems.langgraph:LangGraph",
    "random-k": "memx.adapters.systems.random_k:RandomK",
    "http": "memx.adapters.systems.http:HttpMemory",
    "command": "memx.adapters.systems.command:CommandMemory",
    "atomicmemory": "memx.adapters.systems.atomicmemory:AtomicMemory",
    "cognee": "memx.adapters.systems.cognee:Cognee",
    "hindsight": "memx.adapters.systems.hindsight:Hindsight",
    "letta": "memx.adapters.systems.letta:Letta",
    "memobase": "memx.adapters.systems.memobase:Memobase",
    "supermemory": "memx.adapters.systems.supermemory:Supermemory",
    "zep": "memx.adapters.systems.zep:Zep",
}
DATASETS: Mapping[str, str] = {
    "demo": "memx.adapters.datasets.demo:Demo",
    "locomo": "memx.adapters.datasets.locomo:Locomo",
    "longmemeval": "memx.adapters.datasets.longmemeval:LongMemEval",
    "beam": "memx.adapters.datasets.beam:Beam",
    "jsonl": "memx.adapters.datasets.jsonl:Jsonl",
}
MEASURES: Mapping[str, str] = {}

T = TypeVar("T")


def adapter_class(name: str) -> type[MemoryAdapter]:
    """The adapter class for a built-in name, entry point of group ``memx.adapters`` or ``module.path:Class``.

    Raises:
        UnknownNameError: no such name; the nearest are suggested.
        UsageError: the class cannot be imported, or lacks a method of the contract.
    """
    return _resolve("adapter", name, ADAPTERS, MemoryAdapter)  # type: ignore[type-abstract]


def dataset_class(name: str) -> type[Dataset]:
    """The dataset class for a built-in name, entry point of group ``memx.datasets`` or ``module.path:Class``."""
    return _resolve("dataset", name, DATASETS, Dataset)  # type: ignore[type-abstract]


def measure_class(name: str) -> type[Measure]:
    """The measure class for a built-in name, entry point of group ``memx.measures`` or ``module.path:Class``."""
    return _resolve("measure", name, MEASURES, Measure)  # type: ignore[type-abstract]


def names(kind: str) -> dict[str, str]:
    """All names of ``"adapter"``, ``"dataset"`` or ``"measure"`` and where each comes from; imports none of them."""
    builtin = {"adapter": ADAPTERS, "dataset": DATASETS, "measure": MEASURES}[kind]
    found = {point.name: f"{point.value} (installed)" for point in _entry_points(kind).values()}
    return {**found, **builtin}


def _entry_points(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"memx.{kind}s")}


def _resolve(kind: str, name: str, builtin: Mapping[str, str], base: type[T]) -> type[T]:
    installed = _entry_points(kind)
    if name in builtin:
        path = builtin[name]
    elif name in installed:
        path = installed[name].value
    elif ":" in name:
        path = name
    else:
        raise UnknownNameError(kind, name, {*builtin, *installed}, "Or give your own class as module.path:Class.")
    return _check(kind, name, _import(kind, name, path), base)


def _import(kind: str, name: str, path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    here = str(Path.cwd())
    # A console script does not search the working directory, where users keep their own adapters. It comes last, so
    # that a file there which is named like a module of Python or of a package never stands in for it.
    if here not in sys.path and not module_name.startswith("memx."):
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (error.name == module_name or module_name.startswith(f"{error.name}.")):
            raise UsageError(
                f"{kind} '{name}': no module '{module_name}'", "Run memx where it can be imported."
            ) from None
        raise UsageError(f"{kind} '{name}' needs the package '{error.name}'", f"pip install {error.name}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{kind} '{name}': importing {module_name} failed: {type(error).__name__}: {error}") from error
    if not attribute or not hasattr(module, attribute):
        classes = [n for n, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module_name]
        raise UnknownNameError(f"class in {module_name}", attribute or "", classes)
    return getattr(module, attribute)


def _check(kind: str, name: str, found: Any, base: type[T]) -> type[T]:
    if not inspect.isclass(found):
        raise UsageError(f"{kind} '{name}' is {type(found).__name__}, not a class")
    abstract: frozenset[str] = getattr(base, "__abstractmethods__", frozenset())
    missing = sorted(method for method in abstract if not _defines(found, method))
    if missing:
        raise UsageError(
            f"{kind} '{name}' lacks {', '.join(f'{m}()' for m in missing)}",
            f"The contract is {base.__module__}.{base.__name__}.",
        )
    if not issubclass(found, base):
        raise UsageError(
            f"{kind} '{name}' is no subclass of {base.__module__}.{base.__name__}",
            f"Write: class {found.__name__}({base.__name__})",
        )
    return found


def _defines(found: type, name: str) -> bool:
    value = getattr(found, name, None)
    return value is not None and not getattr(value, "__isabstractmethod__", False)
