"""From turns to what a memory system stores, and from its rows back to facts: ids, times, speakers, replacements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from memx.model import Fact, FactStatus, Session, Turn

_SURROGATE = re.compile(r"[\ud800-\udfff]")
#: The keys under which a turn's facts travel in a system's metadata.
TURN_ID, SESSION_ID, SPEAKER, ROLE, SAID_AT = "turn_id", "session_id", "speaker", "role", "said_at"
#: An entity under which nothing is ever stored: asking for it tells whether a server answers and takes the key.
UNUSED = "memx-nobody"


def said(turn: Turn) -> str:
    """``Speaker: text``, as a system without a field for the speaker's name is to be given it."""
    return sendable(f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content)


def sendable(text: str) -> str:
    """The text with what has no UTF-8 form (a lone surrogate, as JSON escapes can bring) replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def said_at(session: Session, turn: Turn) -> datetime | None:
    """When the turn was said: its own time, else the session's."""
    return turn.at or session.at


def with_zone(time: datetime) -> datetime:
    """The time with a zone, UTC where the dataset gives none, for systems that refuse naive times."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def carried(session: Session, turn: Turn) -> dict[str, str]:
    """What goes into a system's metadata with a turn: flat texts only, empty ones left out, never gold."""
    at = said_at(session, turn)
    found = {
        TURN_ID: turn.turn_id,
        SESSION_ID: session.session_id,
        SPEAKER: turn.speaker,
        ROLE: turn.role,
        SAID_AT: at.isoformat() if at else "",
    }
    return {name: value for name, value in found.items() if value}


def sources(metadata: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The turn ids that a row's metadata carries: ``turn_id``, or several as a list under ``source_turn_ids``."""
    if not metadata:
        return ()
    several = metadata.get("source_turn_ids")
    if isinstance(several, list | tuple):
        return tuple(str(turn_id) for turn_id in several)
    one = metadata.get(TURN_ID)
    return (str(one),) if one else ()


def parse_time(value: Any) -> datetime | None:
    """A row's time from a datetime, ISO 8601 text, Unix seconds or (from 1e11 on) milliseconds; None if unreadable."""
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
        return datetime.fromisoformat(str(value)) if value else None
    except (ValueError, OverflowError, OSError):
        return None


def replaced(facts: Iterable[Fact], replaced_by: Mapping[str, str]) -> list[Fact]:
    """The facts with replacements marked on both sides.

    Args:
        replaced_by: from the id of each old fact to the id of the one that replaced it. The old one becomes
            ``superseded`` where it was still active; the new one lists it in ``supersedes``.
    """
    older: dict[str, list[str]] = {}
    for old, new in replaced_by.items():
        older.setdefault(new, []).append(old)
    found = []
    for fact in facts:
        status = fact.status
        if fact.fact_id in replaced_by and status is FactStatus.ACTIVE:
            status = FactStatus.SUPERSEDED
        supersedes = tuple(dict.fromkeys((*fact.supersedes, *older.get(fact.fact_id, ()))))
        found.append(replace(fact, status=status, supersedes=supersedes))
    return found
