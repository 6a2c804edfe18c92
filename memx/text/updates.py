"""What an answer that tells an old and a new state gives as the present one: "it was 3, but you now own 4"."""

from __future__ import annotations

import re

_OLD = re.compile(
    r"\b(?:used\s+to|previous(?:ly)?|former(?:ly)?|initial(?:ly)?|original(?:ly)?|at\s+first|in\s+the\s+past|earlier|before\s+that)\b",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"\b(?:now|currently|these\s+days|recently|since(?:\s+then)?|nowadays|today|most\s+recent(?:ly)?|latest|later|updated|current)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<=[.;!?])\s+|,\s+|\s+(?=(?:but|however|and\s+now|and\s+then)\b)", re.IGNORECASE)
_CHANGE = re.compile(
    r"(\b(?:improv|increas|decreas|chang|went|go|goes|rais|reduc|drop|grew|grow|updat|switch|cut|lower|rose|bump|mov)\w*"
    r"(?:\s+\w+){0,3}?)\s+from\s+(?:(?!\bto\b)[^.;!?]){1,60}?(?=\s+to\b)",
    re.IGNORECASE,
)


def present_state(question: str, text: str) -> str:
    """The text without clauses that only tell what was before, where others tell what is now; else the text.

    A question that asks for the old state ("before I changed it") keeps all.
    """
    if _OLD.search(question) or re.search(r"\b(?:before|first|old|from)\b", question, re.IGNORECASE):
        return text
    text = _CHANGE.sub(r"\1", text)
    if not (_OLD.search(text) and _NEW.search(text)):
        return text
    clauses = [clause for clause in _CLAUSE.split(text) if clause]
    now = [clause for clause in clauses if not _OLD.search(clause) or _NEW.search(clause)]
    return " ".join(now) if any(_NEW.search(clause) for clause in now) else text
