"""Judging a file of answers: JSON lines in, verdicts out."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memx.engine.judges.contract import Judge, JudgeItem
from memx.errors import InputError, ModelError
from memx.model import Candidate, CandidateSource, Outcome, Question

#: Categories whose right answer is a refusal, in the datasets' own words.
ABSTENTION_CATEGORIES = frozenset({"abstention", "adversarial"})
_FORM = 'Each line is {"question": "...", "gold": "...", "candidate": "...", "category": "..."}.'


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One line of the file: its record as it stands there, and the question and candidate read from it."""

    record: Mapping[str, Any]
    question: Question
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class LineVerdict:
    """What is added to a line. ``failed``: the model failed, so there is no verdict."""

    record: Mapping[str, Any]
    outcome: Outcome
    failed: bool = False


def read_lines(path: Path) -> list[AnswerLine]:
    """All lines of a file (``-``: standard input), checked before the first is judged.

    Raises:
        InputError: the file cannot be read, or a line has another form; names the line and field.
    """
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", _FORM, path=path) from None
    lines = [_read(line, number, path) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise InputError("holds no line", _FORM, path=path)
    return lines


def judge_line(judge: Judge, line: AnswerLine) -> LineVerdict:
    """The verdict on one line; UNJUDGED where the model failed."""
    try:
        verdict = judge.judge(JudgeItem(line.question, line.candidate))
    except ModelError as error:
        record = {"verdict": str(Outcome.UNJUDGED), "decider": "memx", "why": f"judge failed: {error.message}"}
        return LineVerdict(record, Outcome.UNJUDGED, failed=True)
    record = {"verdict": str(verdict.outcome), "decider": str(verdict.decider), "why": verdict.why}
    return LineVerdict(record, verdict.outcome)


def _read(line: str, number: int, path: Path) -> AnswerLine:
    place = f"line {number}"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", _FORM, path=path, place=place) from None
    if not isinstance(record, dict):
        raise InputError(f"is a {type(record).__name__}, not an object", _FORM, path=path, place=place)
    texts = {}
    for name, needed in (("question", False), ("gold", True), ("candidate", True), ("category", False)):
        value = record.get(name, None if needed else "")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and name == "gold":
            value = str(value)  # LoCoMo's own files give years as numbers
        if not isinstance(value, str):
            said = "is missing" if name not in record else f"is {type(value).__name__}, not text"
            raise InputError(f"field '{name}' {said}", _FORM, path=path, place=place)
        texts[name] = value
    abstention = record.get("abstention", texts["category"] in ABSTENTION_CATEGORIES)
    question = Question(
        f"line-{number}", "file", texts["question"], texts["gold"], texts["category"], abstention=bool(abstention)
    )
    return AnswerLine(record, question, Candidate(texts["candidate"], CandidateSource.ADAPTER))
