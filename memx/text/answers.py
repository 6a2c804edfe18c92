"""Whether an answer says what a gold answer says: the one rule behind the offline judge and ``contains_gold``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime

from memx.model import Question
from memx.text.answer_phrases import goes_on_or, match_phrase, short_of
from memx.text.answer_values import Match, match_values
from memx.text.coverage import alike, content, denies, is_long, on_topic
from memx.text.polarity import Stance, is_refusal, opens_with_denial, stance
from memx.text.sentences import sentence_spans
from memx.text.updates import present_state
from memx.text.words import words

__all__ = ["Match", "contains_gold", "match_answer", "match_refusal", "short_of"]

_YES_NO_QUESTION = re.compile(
    r"(?:^|[,;:.?]\s*|\b(?:and|but|or)\s+)(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|am)"
    r"(?:n't)?\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\s*\(or\s+([^()]+)\)", re.IGNORECASE)
_ALSO = re.compile(r"\s*(?:is|are|would\s+be)\s+also\s+(?:acceptable|accepted|correct|fine)", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_FINAL = re.compile(r"\bfinal\s+answer\b\W*(?:is\b\W*)?", re.IGNORECASE)
_LEFT_OPEN = re.compile(
    r"\W*(?:(?:most\s+)?likely\s+|probably\s+)?(?:yes|no)\s+or\b|.*\bor\s+(?:yes|no)\b", re.IGNORECASE
)
_NO_MENTION = re.compile(
    r"\bno\s+(?:\w+\s+){0,2}?(?:mention|information|records?|details?)\s+(?:of|about|on|that|regarding)\b"
    r"|\b(?:has|have|had|did|does|do)(?:\s+not|n't)\s+(?:mention|specif)",
    re.IGNORECASE,
)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_OPEN = Match(False, "the answer leaves open whether it is that or something else")
_TURN = re.compile(r"\b(?:but|however|although|though)\b", re.IGNORECASE)
_NO_WORDS = re.compile(r"\b(?:unlikely|doubt\w*|lacks?|less\s+likely)\b", re.IGNORECASE)


def contains_gold(question: Question, text: str) -> bool:
    """True when the text surely says the gold answer; where a refusal is the right answer, when it refuses."""
    if question.abstention:
        return is_refusal(text)
    found = match_answer(question.text, question.gold, text, question.asked_at)
    return found.holds and found.sure


def match_answer(question: str, gold: str, answer: str, anchor: datetime | date | None = None) -> Match:
    """Compare an answer with the gold answer of a question.

    Args:
        question: may be empty; words that it already holds count little in an answer.
        anchor: when the question was asked, for relative dates in the answer.
    """
    question, gold, answer = _clean(question), _clean(gold), _final(_clean(answer))
    if not words(answer):
        return Match(False, "no answer was given")
    if not words(gold):
        return Match(False, "there is no gold answer to compare with", sure=False)
    if is_refusal(gold):
        return match_refusal(question, answer)
    if words(gold) == words(answer):
        return Match(True, "the answer is the gold answer")
    if not is_long(answer) and not _FROM.search(gold):
        answer = present_state(question, answer)
    wanted = stance(gold)
    if wanted is not Stance.NONE and (not question or _YES_NO_QUESTION.search(question)):
        found = _match_stance(question, answer, wanted)
        return _OPEN if found.holds and goes_on_or(question, gold, answer) else found
    if opens_with_denial(answer) and not opens_with_denial(gold):
        return Match(False, "the answer only says what it was not")
    found = _best(_match_content(question, accepted, answer, anchor) for accepted in _accepted(gold))
    if not found.holds and is_refusal(answer):
        return Match(False, "the answer says that it is not known")
    if found.holds and goes_on_or(question, gold, answer):
        return _OPEN
    if found.holds and not denies(gold) and _takes_back(question, answer):
        return Match(False, "the answer goes on that what was asked is not known", sure=False)
    return found


def _takes_back(question: str, answer: str) -> bool:
    """True when a later sentence says that what was asked is not known: what stands before it is something else."""
    later = (answer[slice(*span)] for span in sentence_spans(answer)[1:])
    return any(_NO_MENTION.search(sentence) and _on_topic(question, sentence) for sentence in later)


def _accepted(gold: str) -> list[str]:
    """The answers that a gold answer allows: "7 days. 8 days is also acceptable.", "25 minutes (or 25:00)"."""
    aside = _ASIDE.search(gold)
    if aside:
        return [gold[: aside.start()] + gold[aside.end() :], aside[1]]
    if not _ALSO.search(gold):
        return [gold]
    parts = (gold[slice(*span)] for span in sentence_spans(gold))
    return [part for part in (_BRACKETS.sub("", _ALSO.sub("", part)).strip(" .") for part in parts) if words(part)]


def _best(found: Iterable[Match]) -> Match:
    """The first match that holds, else the first."""
    matches = list(found)
    return next((match for match in matches if match.holds), matches[0])


def match_refusal(question: str, answer: str, trap: str = "") -> Match:
    """Whether an answer refuses where it should, or denies what the question takes for granted.

    Args:
        trap: the wrong answer that the question invites.
    """
    question, answer = _clean(question), _final(_clean(answer))
    if not words(answer):
        return Match(False, "no answer was given")
    if is_refusal(answer):
        return Match(True, "the answer says that this is not known, which is right")
    if words(trap) and _match_content(question, trap, answer, None).holds:
        return Match(False, f"the answer falls for '{trap}'; the right answer is that this is not known")
    first = answer[slice(*sentence_spans(answer)[0])]
    if denies(first) and not _TURN.search(first) and not denies(question) and _on_topic(question, first):
        return Match(True, "the answer denies what the question takes for granted", sure=False)
    return Match(False, "the answer asserts something; the right answer is that this is not known")


def _match_content(question: str, gold: str, answer: str, anchor: datetime | date | None) -> Match:
    return match_values(question, gold, on_topic(question, answer), anchor) or match_phrase(question, gold, answer)


def _match_stance(question: str, answer: str, wanted: Stance) -> Match:
    first = answer[slice(*sentence_spans(answer)[0])]
    given = stance(answer) if not is_long(answer) or _on_topic(question, first) else Stance.NONE
    if _LEFT_OPEN.match(answer):
        return Match(False, "the answer leaves open whether yes or no")
    if given is not Stance.NONE:
        if given is wanted:
            return Match(True, f"both say {wanted.value}")
        return Match(False, f"the answer says {given.value}, the gold answer {wanted.value}")
    if is_refusal(answer):
        return Match(False, "the answer says that it is not known")
    if not _on_topic(question, first):
        return Match(False, "the answer says neither yes nor no to what was asked", sure=False)
    given = Stance.NO if denies(first) or _NO_WORDS.search(first) else Stance.YES
    return Match(given is wanted, f"the answer reads as {given.value}, the gold answer says {wanted.value}", sure=False)


def _on_topic(question: str, sentence: str) -> bool:
    """True when the sentence takes up at least half of what the question asks about, names left out."""
    asked = [token for token in content(question) if not token.text[0].isupper()] or list(content(question))
    told = content(sentence)
    return sum(any(alike(token, other) for other in told) for token in asked) * 2 >= len(asked)


def _final(answer: str) -> str:
    """What stands behind the last "final answer" of an answer that thinks aloud; else the answer."""
    marks = list(_FINAL.finditer(answer))
    return answer[marks[-1].end() :] if marks and words(answer[marks[-1].end() :]) else answer


def _clean(text: str) -> str:
    """In one line, and without the marks of bold type."""
    return " ".join(text.replace("\u2019", "'").replace("**", "").split())
