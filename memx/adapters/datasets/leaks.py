"""Gold must never reach a memory system: the walk that finds it in what an adapter is about to be handed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memx.model import Session

#: Metadata keys, in lower case, that tell the answer, or which turns hold it, or what kind of question will be asked.
GOLD_KEYS = frozenset(
    {
        "has_answer",
        "is_evidence",
        *("answer", "answers", "gold", "golds", "trap", "rubric"),
        *("adversarial_answer", "ideal_answer", "ideal_response"),
        *("evidence", "evidence_sessions", "stale_evidence", "answer_session_ids", "source_chat_ids"),
        *("category", "question_type"),
    }
)


def leaking_keys(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of ``metadata``, and of mappings and lists inside it, that would give the gold away; dotted paths."""
    return tuple(_walk(metadata, ""))


def gold_leaks(sessions: Iterable[Session]) -> list[str]:
    """Every place in the sessions that would tell a memory system what is right; empty when there is none.

    Looks at metadata keys, and at ids that begin with ``answer``, as LongMemEval's do where they hold the evidence.
    """
    found = []
    for session in sessions:
        found += [f"{session.session_id}: metadata.{key}" for key in leaking_keys(session.metadata)]
        if session.session_id.lower().startswith("answer"):
            found.append(f"{session.session_id}: session_id")
        for turn in session.turns:
            found += [f"{turn.turn_id}: metadata.{key}" for key in leaking_keys(turn.metadata)]
    return found


def _walk(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            here = f"{path}.{key}" if path else str(key)
            if str(key).lower() in GOLD_KEYS:
                yield here
            yield from _walk(inner, here)
    elif isinstance(value, (list, tuple)):
        for position, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{position}]")
