"""Whether an answer says what a gold answer says: the one rule behind the offline judge and ``contains_gold``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime

from memx.model import Question
from memx.text.coverage import Coverage, alike, content, cover, stems_of
from memx.text.dates import DateRelation, DateValue, dates_in
from memx.text.lists import items
from memx.text.numbers import NumberValue, numbers_in
from memx.text.polarity import Stance, is_refusal, negated, opens_with_denial, stance
from memx.text.words import stem, stop_words, words


@dataclass(frozen=True, slots=True)
class Match:
    """Whether the answer holds the gold, why, and whether that is sure enough not to be a guess."""

    holds: bool
    why: str
    sure: bool = True


def match_answer(question: str, gold: str, answer: str, anchor: datetime | date | None = None) -> Match:
    """Compare an answer with the gold answer of a question.

    Args:
        question: may be empty; words that it already holds count little in an answer.
        anchor: when the question was asked, for relative dates in the answer.
    """
    question, gold, answer = _clean(question), _clean(gold), _clean(answer)
    if not answer:
        return Match(False, "no answer was given")
    if not gold:
        return Match(False, "the question has no gold answer to compare with", sure=False)
    if is_refusal(gold):
        refused = is_refusal(answer)
        return Match(
            refused, "the answer refuses, as it should" if refused else "a refusal was expected, not an answer"
        )
    if " ".join(words(gold)) == " ".join(words(answer)):
        return Match(True, "the answer is the gold answer")
    wanted = stance(gold)
    if wanted is not Stance.NONE:
        return _match_stance(question, gold, answer, wanted)
    if opens_with_denial(answer) and not opens_with_denial(gold):
        return Match(False, "the answer only says what it was not")
    found = _match_value(question, gold, answer, anchor)
    if not found.holds and is_refusal(answer):
        return Match(False, "the answer says that it is not known")
    return found


def _match_value(question: str, gold: str, answer: str, anchor: datetime | date | None) -> Match:
    dates = dates_in(gold)
    if dates and _nothing_else(gold, [value.span for value in dates], question):
        return _match_dates(question, dates, answer, anchor)
    numbers = numbers_in(gold)
    if numbers and not dates and _nothing_else(gold, [value.span for value in numbers], question, units=numbers):
        return _match_numbers(question, numbers, answer)
    return _match_phrase(question, gold, answer)


def _clean(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


# ------------------------------------------------------------------------------------------------------ yes and no


def _match_stance(question: str, gold: str, answer: str, wanted: Stance) -> Match:
    given = stance(answer)
    if re.match(r"\W*(?:(?:most\s+)?likely\s+|probably\s+)?(?:yes|no)\s+or\b", answer, re.IGNORECASE):
        return Match(False, "the answer leaves open whether yes or no")
    if given is Stance.NONE:
        if is_refusal(answer):
            return Match(False, "the answer says that it is not known")
        sentence = _sentences(answer)[0]
        if not _on_topic(question, sentence):
            return Match(False, "the answer says neither yes nor no to what was asked")
        given = Stance.NO if _DENIES.search(sentence.lower()) else Stance.YES
        agrees = given is wanted
        return Match(agrees, f"the answer reads as {given.value}, the gold answer says {wanted.value}", sure=False)
    if given is wanted:
        return Match(True, f"both say {wanted.value}")
    return Match(False, f"the answer says {given.value}, the gold answer {wanted.value}")


def _on_topic(question: str, sentence: str) -> bool:
    """True when the sentence takes up at least half of what the question asks about."""
    asked = [token for token in content(question) if not token.text[0].isupper()] or list(content(question))
    told = content(sentence)
    return sum(any(alike(token, other) for other in told) for token in asked) * 2 >= len(asked)


_DENIES = re.compile(r"\b(?:not|unlikely|never|n't|doubt|lacks?|without|isn't|doesn't|wouldn't|didn't|less\s+likely)\b")

# ------------------------------------------------------------------------------------------------ dates and numbers

_FILLERS = frozenset(
    words("around about approximately since until ago late early mid in on at by of the a an old time times")
)


def _nothing_else(text: str, spans: list[tuple[int, int]], question: str, units: tuple[NumberValue, ...] = ()) -> bool:
    """True when outside the spans stand only fillers, counted units and words of the question."""
    rest = "".join(char if not any(a <= i < b for a, b in spans) else " " for i, char in enumerate(text))
    known = _FILLERS | stop_words() | set(words(question)) | {number.unit for number in units}
    return all(word in known for word in words(rest))


def _match_dates(question: str, wanted: tuple[DateValue, ...], answer: str, anchor: datetime | date | None) -> Match:
    given = [value for value in dates_in(answer, anchor) if not _echoed(value, question)] or list(
        dates_in(answer, anchor)
    )
    if not given:
        return Match(False, f"no date in the answer; {wanted[0].text} was expected")
    first_sentence_end = next((end for end in _ends(answer) if end > given[0].span[0]), len(answer))
    leading = [value for value in given if value.span[0] < first_sentence_end]
    held = [day for day in wanted if any(_same_time(day, value) for value in leading)]
    if len(held) * 2 < len(wanted) or not held:
        return Match(False, f"the answer's date {leading[0].text} does not fit {wanted[0].text}")
    fits = next(value for value in leading if any(_same_time(day, value) for day in wanted))
    if negated(answer, fits.span):
        return Match(False, f"the answer denies the date {fits.text}")
    near = [v for v in leading if (v.gap_days(fits) <= 1 and not v.yearless) or any(_same_time(day, v) for day in wanted)]
    if _alternative(answer, fits.span, [value.span for value in near]):
        return Match(False, f"the answer leaves open whether {fits.text} or another date")
    return Match(True, f"the answer's date {fits.text} fits {wanted[0].text}")


def _echoed(value: DateValue, question: str) -> bool:
    return any(value.relation(other) is DateRelation.SAME for other in dates_in(question))


def _same_time(gold: DateValue, given: DateValue) -> bool:
    if given.yearless and gold.unit in ("year", "decade", "season"):
        return False
    relation = given.relation(gold)
    if relation is DateRelation.DISJOINT:
        # Weeks and weekends have loose edges: a day beside one still means it.
        return gold.unit in ("week", "weekend") and given.unit == "day" and given.gap_days(gold) <= 1
    if relation is DateRelation.CONTAINS:
        # No more than twice as wide, for a coarser period is no answer; "early August" may be said as August.
        return given.days <= 2 * gold.days + 1 or (gold.unit == "days" and given.unit == "month")
    return True


def _match_numbers(question: str, wanted: tuple[NumberValue, ...], answer: str) -> Match:
    dates = dates_in(answer)
    given = [
        number
        for number in numbers_in(answer)
        if number.kind == "duration"
        or not any(number.span[0] < d.span[1] and d.span[0] < number.span[1] for d in dates)
    ]
    comparable = [n for n in given if any(_same_kind(w, n) for w in wanted)]
    if not comparable:
        return Match(False, f"no number in the answer; {wanted[0].text} was expected")
    held = [w for w in wanted if any(_equal(w, n) for n in comparable)]
    first = comparable[0]
    if len(held) < len(wanted) or not any(_equal(w, first) for w in wanted):
        return Match(False, f"the answer's number {first.text} is not {wanted[0].text}")
    if negated(answer, first.span):
        return Match(False, f"the answer denies {first.text}")
    if _alternative(answer, first.span, [n.span for n in comparable if any(_equal(w, n) for w in wanted)]):
        return Match(False, f"the answer leaves open whether {first.text} or another number")
    return Match(True, f"the answer's number {first.text} is {wanted[0].text}")


def _same_kind(wanted: NumberValue, given: NumberValue) -> bool:
    return wanted.kind == given.kind or (
        {wanted.kind, given.kind} <= {"count", "duration", "measure"} and "" in (wanted.unit, given.unit)
    )


def _equal(wanted: NumberValue, given: NumberValue) -> bool:
    """True when the answer's number, its bound left out, is the wanted one; "a few" is no number, unless wanted."""
    if not wanted.vague:
        if given.vague:
            return False
        given = replace(given, low=given.value, high=given.value)
    return wanted.agrees(given)


def _alternative(text: str, held: tuple[int, int], same: list[tuple[int, int]]) -> bool:
    """True when "or" joins the held value with something else than one of the ``same`` values ("3 or 4")."""
    after = _OR.match(text, held[1])
    if after is not None and not any(after.end() - 1 <= start <= after.end() + 4 for start, _ in same):
        return True
    before = text[: held[0]]
    match = re.search(r"\bor(?:\s+(?:on|in|at|the|a|about|around|maybe|possibly))*\s*$", before, re.IGNORECASE)
    return match is not None and not any(end >= match.start() - 3 for _, end in same if end <= held[0])


_OR = re.compile(r"(?:\s+\w+){0,3}?[\s,]*\bor\b\s+(?!so\b|more\b|less\b|around\s+then|thereabouts|earlier|later)", re.IGNORECASE)

# ---------------------------------------------------------------------------------------------------------- phrases


def _match_phrase(question: str, gold: str, answer: str) -> Match:
    head = _head(gold)
    best = max((cover(question, choice, answer) for choice in _choices(head)), key=lambda found: found.share)
    if head != gold and best.weighty == 0:
        best = max(best, cover(question, gold, answer), key=lambda found: found.share)
    missing = ", ".join(best.missing[:4])
    needed = _needed(best, head)
    if needed < 0.7 and _only(question, head, answer):
        needed = min(needed, PURE if best.listed else PURE2)
    if best.share < needed:
        return Match(False, f"the answer lacks {missing or gold}", sure=best.share < needed / 2)
    wrong = _wrong_number(head, answer)
    if wrong:
        return Match(False, wrong)
    if _left_open(gold, question, answer, best):
        return Match(False, f"the answer leaves open whether {', '.join(best.found[:3])} or something else")
    why = f"the answer has {', '.join(best.found[:6])}"
    return Match(True, why + (f"; it lacks {missing}" if missing else ""), sure=best.share >= 0.75)


PURE = 0.25
PURE2 = 1
SHORT = 60


def _only(question: str, gold: str, answer: str) -> bool:
    """True when a short answer names nothing beside what the gold answer and the question name."""
    if len(answer.split()) > SHORT:
        return False
    ours = (*content(gold), *content(question))
    for item in items(answer):
        told = content(item)
        if told and not any(alike(token, mine) for token in told for mine in ours):
            return False
    return True


def _needed(best: Coverage, gold: str) -> float:
    """The share of a gold answer that must be said.

    Nearly all of a list of names, for each is a fact of its own; more than half of another list; the longer a phrase
    is, the less of it, for the more of it is explanation.
    """
    if best.listed and all(_ARTICLE.sub("", item)[:1].isupper() for item in items(gold)):
        return 0.75
    if best.weighty > 5:
        return 0.33
    return 0.55 if best.listed or best.weighty <= 2 else 0.5


def _choices(gold: str) -> list[str]:
    """The golds that a short "A or B" allows, each right by itself; else the gold alone."""
    parts = re.split(r"\s+or\s+", gold)
    return parts if len(parts) == 2 and all(len(part.split()) <= 3 for part in parts) else [gold]


_ARTICLE = re.compile(r"^(?:and\s+)?(?:the\s+|an?\s+)?[\"'“]?", re.IGNORECASE)


def _head(gold: str) -> str:
    """The gold answer without the reason it adds ("National park; she likes the outdoors")."""
    match = re.search(r";|,?\s+(?:because|since)\s", gold)
    return gold[: match.start()] if match and len(words(gold[: match.start()])) >= 1 else gold


def _wrong_number(gold: str, answer: str) -> str:
    """Says which number of the gold the answer gives otherwise: another one of the same things, or the same of others."""
    given = numbers_in(answer)
    for wanted in numbers_in(gold):
        if wanted.kind == "ordinal" or wanted.text.lower() in ("one", "a"):
            continue
        same_things = [number for number in given if number.kind == wanted.kind and _same_unit(number, wanted)]
        if same_things and not any(_equal(wanted, number) for number in same_things):
            return f"the answer's number {same_things[0].text} is not {wanted.text}"
        same_number = [number for number in given if number.kind == wanted.kind == "count" and _equal(wanted, number)]
        if same_number and wanted.unit and not any(_same_unit(number, wanted) for number in same_number):
            return f"the answer counts {same_number[0].text} {same_number[0].unit}, not {wanted.text} {wanted.unit}"
    return ""


def _same_unit(one: NumberValue, other: NumberValue) -> bool:
    return one.unit == other.unit or stem(one.unit) == stem(other.unit)


def _left_open(gold: str, question: str, answer: str, best: Coverage) -> bool:
    """True when "or" sets the gold beside something else: "tea or coffee" answers nothing."""
    if not best.spans:
        return False
    known, ours = stems_of(content(question)), content(gold)
    low, high = min(a for a, _ in best.spans), max(b for _, b in best.spans)
    for match in re.finditer(r"\bor\b", answer):
        start = max((end for end in _ends(answer) if end <= match.start()), default=0)
        end = next((end for end in _ends(answer) if end >= match.end()), len(answer))
        if high <= match.start() and low >= start:
            other = answer[match.end() : end]
        elif low >= match.end() and high <= end:
            other = answer[start : match.start()]
        else:
            continue
        told = [token for token in content(other) if token.key not in known]
        if told and not any(alike(token, mine) for token in told for mine in ours):
            return True
    return False


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+", text) if part] or [text]


def _ends(text: str) -> Iterator[int]:
    for match in re.finditer(r"[.!?](?=\s|$)", text):
        yield match.end()


def contains_gold(question: Question, text: str) -> bool:
    """True when the text surely says the gold answer; where a refusal is the right answer, when it refuses."""
    if question.abstention:
        return is_refusal(text)
    found = match_answer(question.text, question.gold, text, question.asked_at)
    return found.holds and found.sure
