"""Tolerant reading of what models write when they were asked for JSON.

Accepted: JSON alone, in fences, or with prose around it; Python's single quotes and trailing commas; a labelled word
such as ``verdict: PASS``. Refused with :class:`Unread`: no verdict at all, and several that contradict each other,
because a wrong reading is worse than asking again.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
# A word counts as a verdict only right behind a label and at the end of a clause: "the answer is correct about the
# city" and "verdict: PASS or FAIL" say nothing.
_LABELLED = re.compile(
    r"\b(?:verdict|label|judge?ment|decision|grade)\b[\"'*_`\s]*(?:[:=]|\bis\b)[\"'*_`\s]*"
    r"(pass|fail|passed|failed|correct|incorrect|wrong)\b(?=[\"'*_`]*\s*(?:[.,;:!)}\]]|\n|$))",
    re.IGNORECASE,
)
_YES = {"pass", "passed", "correct", "right", "yes", "true", "1"}
_NO = {"fail", "failed", "incorrect", "wrong", "no", "false", "0"}
_VERDICT_KEYS = ("verdict", "label", "judgement", "judgment", "result", "decision", "correct", "is_correct", "pass")
_WHY_KEYS = ("why", "reason", "reasoning", "explanation", "rationale")


class Unread(ValueError):
    """A reply that cannot be read; says what was missing."""


@dataclass(frozen=True, slots=True)
class ReadVerdict:
    """A verdict read from a reply."""

    passed: bool
    why: str


def read_verdict(text: str) -> ReadVerdict:
    """PASS or FAIL with its reason.

    Raises:
        Unread: no verdict, or contradicting ones.
    """
    text = _THINKING.sub(" ", text)
    found = [
        (passed, _why(obj))
        for obj in json_values(text)
        if isinstance(obj, dict) and (passed := _verdict_of(obj)) is not None
    ]
    if not found:
        found = [(word.lower() in _YES, _prose(text)) for word in _LABELLED.findall(text)]
    if not found and (alone := _only_word(text)) is not None:
        found = [(alone, "")]
    if not found:
        raise Unread("no verdict in it")
    if len({passed for passed, _ in found}) > 1:
        raise Unread("it holds two verdicts that contradict each other")
    return ReadVerdict(found[-1][0], found[-1][1])


def read_object(text: str, key: str) -> dict[str, Any]:
    """The last JSON object in a reply that has ``key``.

    Raises:
        Unread: there is none.
    """
    found = [obj for obj in json_values(_THINKING.sub(" ", text)) if isinstance(obj, dict) and key in obj]
    if not found:
        raise Unread(f'no JSON object with "{key}" in it')
    return found[-1]


def read_list(text: str, key: str, length: int) -> list[Any]:
    """The list under ``key`` of the last object that has it, or a bare list, of exactly ``length`` values.

    Raises:
        Unread: no such list.
    """
    values = list(json_values(_THINKING.sub(" ", text)))
    lists = [v[key] for v in values if isinstance(v, dict) and isinstance(v.get(key), list)]
    lists += [v for v in values if isinstance(v, list)]
    fitting = [found for found in lists if len(found) == length]
    if not fitting:
        raise Unread(f'no list "{key}" of {length} values in it')
    return list(fitting[-1])


def json_values(text: str) -> Iterator[Any]:
    """Every outermost JSON (or Python literal) object and list in a text, in order."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks inside strings
    at = 0
    while (start := _next_open(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, start)
            yield value
            continue
        except (ValueError, RecursionError):
            pass
        literal = _literal(text, start)
        if literal is not None:
            value, at = literal
            yield value
        else:
            at = start + 1


def _next_open(text: str, at: int) -> int | None:
    match = re.compile(r"[{\[]").search(text, at)
    return match.start() if match else None


def _literal(text: str, start: int) -> tuple[Any, int] | None:
    """A Python literal that begins at ``start``: single quotes, trailing commas, True and None."""
    closing = "}" if text[start] == "{" else "]"
    end = start
    for _ in range(20):  # the first closing brackets may stand inside strings or nested values
        end = text.find(closing, end + 1)
        if end < 0:
            return None
        source = text[start : end + 1]
        for attempt in (source, re.sub(r"\b(true|false|null)\b", _python_word, source)):
            try:
                return ast.literal_eval(attempt), end + 1
            except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                continue
    return None


def _python_word(match: re.Match[str]) -> str:
    return {"true": "True", "false": "False", "null": "None"}[match.group()]


def _verdict_of(obj: dict[str, Any]) -> bool | None:
    by_key = {str(key).lower(): value for key, value in obj.items()}
    for key in _VERDICT_KEYS:
        if key in by_key:
            value = by_key[key]
            word = str(int(value) if isinstance(value, bool) else value).strip().strip(".*\"'").lower()
            if word in _YES:
                return True
            if word in _NO:
                return False
    return None


def _why(obj: dict[str, Any]) -> str:
    by_key = {str(key).lower(): value for key, value in obj.items()}
    return next((" ".join(str(by_key[key]).split()) for key in _WHY_KEYS if by_key.get(key)), "")


def _prose(text: str) -> str:
    return " ".join(text.split())[:500]


def _only_word(text: str) -> bool | None:
    """The verdict of a reply that is one word, or opens or closes with PASS or FAIL on a line of its own."""
    lines = [line.strip(" \t*_`\"'.#") for line in text.strip().splitlines() if line.strip(" \t*_`\"'.#")]
    if len(lines) == 1 and lines[0].lower() in _YES | _NO:
        return lines[0].lower() in _YES
    ends = {line for line in (lines[:1] + lines[-1:]) if line in ("PASS", "FAIL", "CORRECT", "WRONG", "INCORRECT")}
    return ends.pop().lower() in _YES if len(ends) == 1 else None


def as_score(value: Any, allowed: Sequence[float]) -> float:
    """A score out of ``allowed``; models also write it as text, or as an object with ``score``.

    Raises:
        Unread: it is none of them.
    """
    if isinstance(value, dict):
        value = value.get("score")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise Unread(f"{value!r} is no score") from None
    if number not in allowed:
        raise Unread(f"{number:g} is none of the scores {', '.join(f'{a:g}' for a in allowed)}")
    return number
