"""What the control systems share: an ordered list of verbatim memories per entity."""

from __future__ import annotations

from typing import Any

from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import read_options
from memx.adapters.systems.verbatim import fact_of, memories_of
from memx.memory.rows import Memory
from memx.model import Session, Snapshot


class VerbatimControl(MemoryAdapter):
    """Keeps every turn in a list; subclasses only answer queries. Takes no options."""

    version = "1"
    exports = ("every turn word for word, with its time, its speaker and the turn it came from",)

    def __init__(self, **options: Any) -> None:
        read_options(self.name, {}, options)
        self._stored: dict[str, list[Memory]] = {}

    def ingest_session(self, session: Session) -> None:
        self._stored.setdefault(session.entity_id, []).extend(memories_of(session))

    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, tuple(fact_of(memory) for memory in self.memories(entity_id)))

    def reset(self, entity_id: str) -> None:
        self._stored.pop(entity_id, None)

    def memories(self, entity_id: str) -> list[Memory]:
        """What is stored under the entity, in the order it came."""
        return self._stored.get(entity_id, [])
