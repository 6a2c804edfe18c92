"""Turns as memories and facts, verbatim: shared by the built-in memory and the controls."""

from __future__ import annotations

from memx.memory.rows import Memory
from memx.model import Fact, Retrieved, Session, Turn


def memory_of(session: Session, index: int, turn: Turn) -> Memory:
    """A turn as ``Speaker: text`` with its native ids and time in the metadata; the id follows from the turn's."""
    at = turn.at or session.at
    return Memory(
        memory_id=f"m:{turn.turn_id}",
        text=f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content,
        created_at=at,
        thread=session.session_id,
        attributes={"speaker": turn.speaker, "role": turn.role},
        metadata={
            "session_id": session.session_id,
            "turn_id": turn.turn_id,
            "source_turn_ids": [turn.turn_id],
            "turn_index": index,
            "speaker": turn.speaker,
            "role": turn.role,
            "at": at.isoformat() if at else None,
        },
    )


def memories_of(session: Session) -> list[Memory]:
    """The turns of a session, in order."""
    return [memory_of(session, index, turn) for index, turn in enumerate(session.turns)]


def fact_of(memory: Memory) -> Fact:
    """A memory as the snapshot shows it."""
    return Fact(
        memory.memory_id,
        memory.text,
        source_turn_ids=tuple(memory.metadata.get("source_turn_ids", ())),
        created_at=memory.created_at,
        metadata=memory.metadata,
    )


def retrieved_of(memory: Memory, score: float | None = None) -> Retrieved:
    """A memory as a query returns it."""
    return Retrieved(memory.memory_id, memory.text, score, metadata=memory.metadata)
