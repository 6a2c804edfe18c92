"""What a source offers: records of text and metadata, one by one, whatever the memory that takes them.

A source knows its format and nothing of storing, indexing or ranking.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memx.errors import InputError

if TYPE_CHECKING:
    from memx.memory.engine import MemoryEngine


@dataclass(frozen=True, slots=True)
class Record:
    """One text that becomes a memory.

    Attributes:
        metadata: JSON. ``source`` and ``id`` (unique in its source and root) are always there; ``at`` is the time of
            the text in ISO 8601 where it is known; the rest is the source's own.
    """

    text: str
    metadata: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a record is a str, not {type(self.text).__name__}")
        if not isinstance(self.metadata, Mapping):
            raise TypeError(f"the metadata of a record is a mapping, not {type(self.metadata).__name__}")
        missing = [name for name in ("source", "id") if not self.metadata.get(name)]
        if missing:
            raise ValueError(f"the metadata of a record names its {' and '.join(missing)}")

    def as_dict(self) -> dict[str, Any]:
        """``{"text": ..., "metadata": {...}}``."""
        return {"text": self.text, "metadata": dict(self.metadata)}


class Source(ABC):
    """A folder of one format, read record by record.

    Args:
        path: the folder, or a file of the format.

    Attributes:
        findings: what was left out and why, filled while records are read.

    Raises:
        InputError: there is nothing at ``path``, or it cannot be read.
    """

    name: ClassVar[str]

    def __init__(self, path: str | Path) -> None:
        self.root = Path(path).expanduser().absolute()
        self.findings: list[str] = []
        if not self.root.exists():
            raise InputError("there is no such folder", f"Give the folder of the {self.name} source.", path=path)

    @abstractmethod
    def iter_records(self) -> Iterator[Record]:
        """The records, in an order that depends on the source alone."""

    def records(self) -> list[Record]:
        """All records."""
        return list(self.iter_records())

    def load(self, insert: Callable[[str, Mapping[str, Any]], object]) -> int:
        """Hand every record to ``insert(text, metadata)``; returns how many there were.

        Raises:
            TypeError: ``insert`` cannot be called.
        """
        if not callable(insert):
            raise TypeError("insert must be callable")
        count = 0
        for record in self.iter_records():
            insert(record.text, record.metadata)
            count += 1
        return count

    def load_into_memory(self, engine: MemoryEngine) -> int:
        """Store every record in a built-in memory; returns how many there were."""
        from memx.adapters.sources.memories import memory_of

        return engine.insert_batch([memory_of(str(self.root), one.text, one.metadata) for one in self.iter_records()])

    def stats(self) -> dict[str, Any]:
        """Counts that tell whether the source was read as one expects."""
        kinds: dict[str, int] = {}
        for record in self.iter_records():
            kind = str(record.metadata.get("record_type", "record"))
            kinds[kind] = kinds.get(kind, 0) + 1
        return {"source": self.name, "path": str(self.root), "records": sum(kinds.values()), **kinds}


def modified(path: Path) -> str:
    """When a file was last written, in UTC."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(microsecond=0).isoformat()


def inside(path: Path, root: Path) -> bool:
    """False for a link that leads out of the source."""
    return not path.is_symlink() or path.resolve().is_relative_to(root.resolve())
