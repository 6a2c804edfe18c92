"""Between memx's nouns and mem0's: messages to add, rows to facts; the library and the platform share them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memx.adapters.datasets.cache import cache_dir
from memx.adapters.packages import load_package
from memx.adapters.provenance import SESSION_ID, carried, parse_time, said, said_at, sources
from memx.adapters.system_models import silence
from memx.model import Fact, Retrieved, Session, Turn

#: Fields of a row that are not metadata of the fact.
_OWN = frozenset({"id", "memory", "metadata", "score", "score_details", "score_breakdown", "created_at", "user_id"})
_SIGNALS = ("score_details", "score_breakdown")
_NO_SIGNALS = frozenset({"threshold", "max_possible_score"})


def mem0_package() -> Any:
    """mem0, imported with its telemetry off.

    Raises:
        UsageError: it is not installed, or of another version.
    """
    # mem0 writes an id of the user into a folder of its own as soon as it is imported.
    silence("mem0", "httpx", MEM0_TELEMETRY="False", MEM0_DIR=str(cache_dir() / "mem0"))
    with warnings.catch_warnings():  # and it makes every library's deprecations show in this process
        return load_package("mem0", "mem0", "mem0ai", versions=("2",))


@dataclass(frozen=True, slots=True)
class Addition:
    """What one add() holds: messages, their metadata, the time they were said, and how to name it in an error."""

    what: str
    messages: list[dict[str, str]]
    metadata: dict[str, Any]
    at: datetime | None
    turn_ids: tuple[str, ...]


def additions(session: Session, unit: str) -> Iterator[Addition]:
    """A session as the calls of add() that store it: one a turn, or one for the whole session."""
    if unit == "turn":
        for turn in session.turns:
            at = said_at(session, turn)
            yield Addition(f"add turn {turn.turn_id}", [_message(turn)], carried(session, turn), at, (turn.turn_id,))
    elif session.turns:
        ids = tuple(turn.turn_id for turn in session.turns)
        metadata = {SESSION_ID: session.session_id, "source_turn_ids": list(ids)}
        messages = [_message(turn) for turn in session.turns]
        at = said_at(session, session.turns[0])
        yield Addition(f"add session {session.session_id}", messages, metadata, at, ids)


def fact_of(row: Mapping[str, Any]) -> Fact:
    """A row of a listing as a snapshot shows it."""
    metadata = row.get("metadata") or {}
    own = {name: value for name, value in row.items() if name not in _OWN and value is not None}
    return Fact(
        str(row["id"]),
        str(row.get("memory") or ""),
        source_turn_ids=sources(metadata),
        created_at=parse_time(row.get("created_at")),
        metadata={**own, **metadata},
    )


def retrieved_of(row: Mapping[str, Any]) -> Retrieved:
    """A row of a search as a query returns it; parts of the score are its signals."""
    metadata = row.get("metadata") or {}
    parts: Mapping[str, Any] = next((row[name] for name in _SIGNALS if isinstance(row.get(name), Mapping)), {})
    told = {name: value for name, value in parts.items() if name not in _NO_SIGNALS}
    signals = {name: float(value) for name, value in told.items() if isinstance(value, int | float)}
    shown = {**metadata, "source_turn_ids": list(sources(metadata))}
    return Retrieved(str(row["id"]), str(row.get("memory") or ""), row.get("score"), signals, shown)


def _message(turn: Turn) -> dict[str, str]:
    return {"role": "assistant" if turn.role == "assistant" else "user", "content": said(turn)}
