"""What a dataset holds: turns, sessions, questions, cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memx.model.checks import freeze_tuple, refuse_repeats, require_str, require_text


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of a conversation.

    Attributes:
        turn_id: unique within its case.
        role: ``"user"`` or ``"assistant"`` where the dataset says so, else the speaker's part.
        at: when it was said; naive where the dataset gives no zone.
    """

    turn_id: str
    speaker: str
    role: str
    content: str
    at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The usual case in one test, since a benchmark file holds half a million turns.
        if self.turn_id and type(self.turn_id) is type(self.speaker) is type(self.role) is type(self.content) is str:
            return
        require_text(self, "turn_id")
        require_str(self, "speaker", "role", "content")


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a case, its turns in order. ``entity_id`` is the namespace the adapter stores it under."""

    session_id: str
    entity_id: str
    turns: tuple[Turn, ...]
    at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self, "session_id", "entity_id")
        freeze_tuple(self, "turns")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, its gold answer and the turns that hold it.

    Attributes:
        evidence: ids of the turns needed to answer; empty where the dataset gives none.
        abstention: the right answer is a refusal ("not mentioned").
        metadata: dataset facts that never reach an adapter. ``stale_evidence`` holds ids of turns whose value a
            later turn replaced; ``trap`` the wrong answer an adversarial question invites.
    """

    question_id: str
    entity_id: str
    text: str
    gold: str
    category: str
    evidence: tuple[str, ...] = ()
    evidence_sessions: tuple[str, ...] = ()
    asked_at: datetime | None = None
    abstention: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self, "question_id", "entity_id")
        require_str(self, "text", "gold", "category")
        freeze_tuple(self, "evidence", "evidence_sessions")


@dataclass(frozen=True, slots=True)
class Case:
    """One complete history and the questions about it: the unit of isolation."""

    case_id: str
    entity_id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        require_text(self, "case_id", "entity_id")
        freeze_tuple(self, "sessions", "questions")
        refuse_repeats("session id", [s.session_id for s in self.sessions], self.case_id)
        refuse_repeats("turn id", [t.turn_id for s in self.sessions for t in s.turns], self.case_id)
        refuse_repeats("question id", [q.question_id for q in self.questions], self.case_id)

    def turns(self) -> dict[str, Turn]:
        """All turns by id, in the order they were said."""
        return {turn.turn_id: turn for session in self.sessions for turn in session.turns}

    def session_of(self) -> dict[str, str]:
        """The session id of each turn id."""
        return {turn.turn_id: session.session_id for session in self.sessions for turn in session.turns}
