"""What an answer that tells an old and a new state gives as the present one: "it was 3, but you now own 4"."""

from __future__ import annotations

import re

from memx.text.sentences import sentence_at

_OLD = re.compile(
    r"\b(?:used\s+to|previous(?:ly)?|former(?:ly)?|initial(?:ly)?|original(?:ly)?|at\s+first|in\s+the\s+past|earlier|before\s+that)\b",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"\b(?:now|currently|these\s+days|recently|since(?:\s+then)?|nowadays|today|most\s+recent(?:ly)?|latest|later|updated|current)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<=[.;!?])\s+|,\s+|\s+(?=(?:but|however|and\s+now|and\s+then)\b)", re.IGNORECASE)
_VERBS = (
    "improv|increas|decreas|chang|rais|reduc|drop|grew|grow|updat|switch|cut|lower|rose|bump|revis|reschedul|postpon"
    "|delay"
)
# "After you rescheduled it from 15 March", "1,300, up from 1,250": the old value alone.
_CHANGED_FROM = re.compile(
    rf"(\b(?:{_VERBS})\w*(?:\s+(?:it|that|this|them))?|[,(]\s*(?:up|down))\s+from\s+"
    r"(?:(?!\b(?:to|and|but)\b)[^.,;!?()]|(?<=\d)[.,](?=\d)){1,40}(?=[.,;!?)]|$)",
    re.IGNORECASE,
)
# "$350,000, later raised to $400,000": what stands before it in the sentence is the old value.
_CHANGED_TO = re.compile(
    r"\b(?:later|then|since|recently|afterwards?|eventually)\s+(?:been\s+|was\s+|were\s+)?"
    rf"(?=(?:{_VERBS})\w*\s+(?:(?:it|that|this|them)\s+)?to\b)",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    rf"(\b(?:{_VERBS}|went|go|goes|mov)\w*"
    r"(?:\s+\w+){0,3}?)\s+from\s+(?:(?!\bto\b)[^.;!?]){1,60}?(?=\s+to\b)",
    re.IGNORECASE,
)


def present_state(question: str, text: str) -> str:
    """The text without clauses that only tell what was before, where others tell what is now; else the text.

    A question that asks for the old state ("before I changed it") keeps all.
    """
    if _OLD.search(question) or re.search(r"\b(?:before|first|old|from)\b", question, re.IGNORECASE):
        return text
    text = _CHANGED_FROM.sub(r"\1", _CHANGE.sub(r"\1", text))
    changed = next(reversed(list(_CHANGED_TO.finditer(text))), None)
    if changed:
        text = text[: sentence_at(text, changed.start())[0]] + text[changed.end() :]
    if not (_OLD.search(text) and _NEW.search(text)):
        return text
    clauses = [clause for clause in _CLAUSE.split(text) if clause]
    now = [clause for clause in clauses if not _OLD.search(clause) or _NEW.search(clause)]
    return " ".join(now) if any(_NEW.search(clause) for clause in now) else text
