"""Answers without a model: the retrieved sentence that fits the question best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from memx.engine.answers.context import fit_context
from memx.engine.answers.contract import Answerer
from memx.model import Candidate, CandidateSource, Question, Retrieved
from memx.text.dates import dates_in
from memx.text.names import names_in
from memx.text.numbers import numbers_in
from memx.text.words import stems

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_SPEAKER = re.compile(r"\s*(?:\[[^\]]*\]\s*)?([A-Z][\w.'-]*(?: [A-Z][\w.'-]*){0,2}):\s+")
_WHEN = re.compile(r"\b(when|what (?:date|day|year|month|time)|which (?:day|year|month)|how long ago)\b", re.I)
_HOW_MANY = re.compile(r"\bhow (?:many|much|long|old|often|far)\b", re.I)
_WHO = re.compile(r"\b(who|whom|whose)\b", re.I)

#: A sentence of the kind that is asked for (date, number, name) counts this much more; one that asks, this much less.
RIGHT_KIND = 1.5
ASKS_ITSELF = 0.5
#: Of two equal sentences the one ranked higher by the memory system wins; each rank costs this share of the score.
RANK_COST = 0.01


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    stems: frozenset[str]
    rank: int
    said: datetime | None


class ExtractiveAnswerer(Answerer):
    """Picks the sentence whose words, weighted by how rare they are among what was retrieved, cover the question best;
    sentences that hold a date, number or name gain where the question asks for one. It never refuses."""

    name = "extractive"

    def __init__(self, context_budget: int | None = None) -> None:
        self._budget = context_budget

    def answer(
        self, question: Question, retrieved: Sequence[Retrieved], dates: Mapping[str, datetime] | None = None
    ) -> Candidate:
        """The best sentence; a relative date in it ("yesterday") is followed by the date that it means."""
        context = fit_context(retrieved, self._budget)
        seen = retrieved[: len(context.used)]
        sentences = [
            sentence
            for rank, item in enumerate(seen)
            for sentence in _sentences(item, rank, (dates or {}).get(item.fact_id))
        ]
        if not sentences:
            return Candidate("", CandidateSource.EXTRACTIVE, context.tokens)
        frequency = Counter(stem for sentence in sentences for stem in sentence.stems)
        asked = frozenset(stems(question.text))
        best = max(sentences, key=lambda sentence: _score(sentence, asked, frequency, len(sentences), question.text))
        return Candidate(_with_resolved_dates(best), CandidateSource.EXTRACTIVE, context.tokens)


def _sentences(item: Retrieved, rank: int, said: datetime | None) -> list[_Sentence]:
    """The sentences of a fact; whoever says the first of them ("Ana: ...") says them all."""
    named = _SPEAKER.match(item.content)
    speaker = str(item.metadata.get("speaker") or (named[1] if named else ""))
    text = item.content[named.end() :] if named else item.content
    by = frozenset(stems(speaker))
    parts = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
    return [_Sentence(part, frozenset(stems(part)) | by, rank, said) for part in parts]


def _score(sentence: _Sentence, asked: frozenset[str], frequency: Counter[str], total: int, question: str) -> float:
    # Inverse document frequency with the one added that keeps a word of every sentence above zero.
    score = sum(math.log(1 + total / frequency[stem]) for stem in sentence.stems & asked)
    if _fits_kind(sentence, question):
        score *= RIGHT_KIND
    # A sentence that repeats the question's words and adds none cannot answer it.
    added = len(sentence.stems - asked)
    score *= added / (added + 1)
    if sentence.text.endswith("?"):
        score *= ASKS_ITSELF
    return score * (1 - RANK_COST * min(sentence.rank, 50))


def _fits_kind(sentence: _Sentence, question: str) -> bool:
    if _WHEN.search(question):
        return bool(dates_in(sentence.text, sentence.said))
    if _HOW_MANY.search(question):
        return bool(numbers_in(sentence.text))
    if _WHO.search(question):
        asked = question.lower()
        return any(name.text.lower() not in asked for name in names_in(sentence.text))
    return False


def _with_resolved_dates(sentence: _Sentence) -> str:
    resolved = [value for value in dates_in(sentence.text, sentence.said) if value.relative and not value.yearless]
    if not resolved:
        return sentence.text
    spans = [_span(value.start, value.end) for value in resolved]
    return f"{sentence.text} ({'; '.join(dict.fromkeys(spans))})"


def _span(start: date, end: date) -> str:
    first = f"{start.day} {start:%B %Y}"
    return first if start == end else f"{first} to {end.day} {end:%B %Y}"
