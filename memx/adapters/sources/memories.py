"""Records as the built-in memory takes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memx.memory.rows import Memory

#: Metadata that a question may ask for by value.
_ASKED_FOR = ("author", "title", "record_type")


def memory_of(root: str, text: str, metadata: Mapping[str, Any]) -> Memory:
    """A record of a source as a memory; those of one file, note or issue are a thread.

    Args:
        root: of the source: the same id under another root is another memory.
    """
    thread = str(metadata.get("path") or metadata.get("number") or "")
    named = {name: str(metadata[name]) for name in _ASKED_FOR if metadata.get(name)}
    identity = f"{metadata['source']}:{root}:{metadata['id']}"
    return Memory(identity, text, _utc(metadata.get("at")), f"{root}:{thread}", named, metadata)


def _utc(at: Any) -> datetime | None:
    """A time without zone, as the memory compares them: in UTC where the text names a zone."""
    try:
        when = datetime.fromisoformat(at)
    except (TypeError, ValueError):
        return None
    return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
