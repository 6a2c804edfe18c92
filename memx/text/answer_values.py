"""Gold answers that are a date or a number: whether an answer gives the same one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher

from memx.text.dates import DateRelation, DateValue, dates_in
from memx.text.frequency import frequencies_in
from memx.text.numbers import NumberValue, numbers_in
from memx.text.periods import in_year
from memx.text.polarity import negated
from memx.text.sentences import sentence_at
from memx.text.words import stem, stop_words, words

_FILLERS = frozenset(
    words("around about approximately since until ago late early mid in on at by of the a an old time times")
)
# "GOLD or something else" leaves the answer open; "3 or so" and "2022 or earlier" do not.
_OR_AFTER = re.compile(
    r"(?:\s+\w+){0,3}?[\s,]*\bor\b\s+(?!so\b|more\b|less\b|around\s+then|thereabouts|earlier|later)", re.IGNORECASE
)
_OR_BEFORE = re.compile(r"(?<!\bon )\bor(?:\s+(?:on|in|at|the|a|about|around|maybe|possibly))*\s*$", re.IGNORECASE)
_SUM_BEFORE = re.compile(
    r"(?:\b(?:total(?:s|ed|ing)?|sum)(?:\s+(?:is|was|of|to|cost|amount))*|=|\b(?:so|thus|therefore)"
    r"(?:,?\s+(?:you|it|that|this|they|we|he|she|i)(?:'\w+)?(?:\s+(?:now|currently|is|are|was|were|have|had|own\w*|makes?)){0,2})?)[\s:,]*$",
    re.I,
)
_SUM_AFTER = re.compile(r"(?:\s+\w+)?\s+(?:in\s+total|altogether|in\s+all|overall|combined)\b", re.I)

_RANGE = re.compile(
    r"\s*(?:to|through|until|or|and|-|–|—)(?:\s+(?:about|around|in|the|maybe|possibly))*\s*", re.IGNORECASE
)
_ASKED_UNIT = re.compile(r"\bhow\s+many\s+(minutes|hours|days|weeks|months|years)\b", re.IGNORECASE)
_VERSION = re.compile(r"(?<![\w.])([A-Za-z]+|(?=\d+\.\d+\.\d))(\d+(?:\.\d+)*)(?![\w])")
_SPOKEN = re.compile(r"\d+(?:[.,:/]\d+)+|\w+")
_ITEM_NUMBER = re.compile(r"(?<!\S)(\d{1,2})\.\s+(?=\S)")
# "I left yesterday. (20 June 2024)": the bracket tells which day the one before it means.
_BRACKET = re.compile(r"[^.!?()]*[.!?]?\s*\((?:on\s+)?")
_TOUCH = 5  # two periods touch only where no more than a fifth of the shorter one is common


@dataclass(frozen=True, slots=True)
class Match:
    """Whether the answer holds the gold, why, and whether that is sure enough not to be a guess.

    ``reworded``: it does not, for missing words alone, so it may still mean the same in other words.
    """

    holds: bool
    why: str
    sure: bool = True
    reworded: bool = False


def match_values(question: str, gold: str, answer: str, anchor: datetime | date | None) -> Match | None:
    """Compare by date, frequency or number; None where the gold answer is none of them, or says more than that."""
    dates = dates_in(gold)
    if dates and _nothing_else(gold, [value.span for value in dates], question):
        found = _match_dates(question, dates, answer, anchor)
        if not found.holds and anchor is not None and all(day.yearless for day in dates):
            return _match_dates(question, dates, answer, None)  # "August 12" is the same in both, whatever the year
        return found
    often = frequencies_in(gold)
    if often and not any(one.by_day for one in often) and _nothing_else(gold, [one.span for one in often], question):
        wrong = wrong_frequency(gold, answer)
        if wrong or frequencies_in(answer):
            return Match(not wrong, wrong or f"both say {gold}")
    numbers = _with_asked_unit(question, numbers_in(gold))
    if numbers and not dates and _nothing_else(gold, [value.span for value in numbers], question, numbers):
        return _match_numbers(numbers, answer)
    return None


def _with_asked_unit(question: str, numbers: tuple[NumberValue, ...]) -> tuple[NumberValue, ...]:
    """A bare number that answers "how many weeks" is so many weeks."""
    asked = _ASKED_UNIT.search(question)
    if asked is None or len(numbers) != 1 or numbers[0].unit or numbers[0].kind != "count":
        return numbers
    (measured,) = numbers_in(f"{numbers[0].said:g} {asked[1]}") or numbers
    return (replace(measured, span=numbers[0].span, text=numbers[0].text),)


def wrong_number(gold: str, answer: str) -> str:
    """Which number of a longer gold the answer gives otherwise: another of the same things, or the same of others.

    Empty when it gives none otherwise. Ordinals and a lone "one" are left to the words around them. Numbers of names
    count too: "HTML4" for "HTML5", "5.3.1" for "5.3.0".
    """
    versions = [{(name.lower(), number) for name, number in _VERSION.findall(text)} for text in (gold, answer)]
    for name, number in sorted(versions[0] - versions[1]):
        other = min((given for label, given in versions[1] if label == name), default="")
        if other and not any(label == name for label, _ in versions[0] & versions[1]):
            return f"the answer says {name}{other}, not {name}{number}"
    numbers = numbers_in(gold)
    given = numbers_in(answer) if numbers else ()
    for wanted in numbers:
        if wanted.kind == "ordinal" or wanted.text.lower() in ("one", "a"):
            continue
        same_things = [number for number in given if number.kind == wanted.kind and _same_unit(number, wanted)]
        if same_things and not any(_equal(wanted, number) for number in same_things):
            return f"the answer's number {same_things[0].text} is not {wanted.text}"
        same_number = [number for number in given if number.kind == wanted.kind == "count" and _equal(wanted, number)]
        if same_number and wanted.unit and not any(_same_unit(number, wanted) for number in same_number):
            return f"the answer counts {same_number[0].text} {same_number[0].unit}, not {wanted.text} {wanted.unit}"
        if not same_things and _counts_one(answer, wanted):
            return f"the answer counts one, not {wanted.text} {wanted.unit}"
    return ""


def changed_number(gold: str, answer: str) -> str:
    """Which number an answer that repeats a gold answer word by word has in the place of another; empty for none."""
    if not any(map(str.isdigit, gold)):
        return ""
    own, told = (_SPOKEN.findall(text.lower()) for text in (gold, answer))
    for step, low, high, start, end in SequenceMatcher(None, own, told, autojunk=False).get_opcodes():
        if step == "replace" and high - low == end - start == 1:
            wanted, given = own[low], told[start]
            if any(map(str.isdigit, wanted)) and any(map(str.isdigit, given)):
                return f"the answer says {given}, not {wanted}"
    return ""


def wrong_date(gold: str, answer: str) -> str:
    """Which date of a longer gold answer the answer gives otherwise; empty when it gives none otherwise."""
    wanted, given = dates_in(gold), dates_in(answer)
    strangers = [day for day in given if not any(_same_time(one, day) for one in wanted)]
    for one in wanted:
        if strangers and not any(_same_time(one, day) for day in given):
            return f"the answer's date {strangers[0].text} is not {one.text}"
    numbers = [_day_numbers(text) for text in (gold, answer)]
    if all(numbers) and not numbers[0] & numbers[1]:
        return f"the answer's {min(numbers[1]):g}th is not the {min(numbers[0]):g}th"
    return ""


def _day_numbers(text: str) -> set[float]:
    """Ordinals in digits ("the 15th")."""
    return {number.said for number in numbers_in(text) if number.kind == "ordinal" and number.text[0].isdigit()}


def wrong_frequency(gold: str, answer: str) -> str:
    """How often the answer says that something happens, where the gold answer tells another frequency; else empty."""
    wanted, given = frequencies_in(gold), frequencies_in(answer)
    if not wanted or not given or any(abs(a.times - b.times) <= 0.02 * a.times for a in wanted for b in given):
        return ""
    return f"the answer says {answer[slice(*given[0].span)]}, not {gold[slice(*wanted[0].span)]}"


def _counts_one(answer: str, wanted: NumberValue) -> bool:
    """True for "a cat" where several cats are wanted."""
    several = wanted.unit
    if wanted.kind != "count" or wanted.value <= 1 or not several.endswith("s") or not several.isalpha():
        return False
    one = re.search(rf"\ban?\s+{several[:-1]}\b", answer, re.IGNORECASE)
    return one is not None and not re.search(rf"\b{several}\b", answer, re.IGNORECASE)


def _nothing_else(text: str, spans: list[tuple[int, int]], question: str, units: tuple[NumberValue, ...] = ()) -> bool:
    """True when outside the spans stand only fillers, counted units and words of the question."""
    rest = "".join(" " if any(start <= i < end for start, end in spans) else char for i, char in enumerate(text))
    known = _FILLERS | stop_words() | set(words(question)) | {number.unit for number in units}
    return all(word in known for word in words(rest))


# ------------------------------------------------------------------------------------------------------------ dates


def _match_dates(question: str, wanted: tuple[DateValue, ...], answer: str, anchor: datetime | date | None) -> Match:
    given = tuple(_ranges(answer, dates_in(answer, anchor)))
    brackets = [mark.end() for day in given if day.relative and (mark := _BRACKET.match(answer, day.span[1]))]
    if any(day.span[0] in brackets and not day.relative for day in given):
        given = tuple(day for day in given if not day.relative)
    asked = dates_in(question)
    given = tuple(day for day in given if not any(day.relation(a) is DateRelation.SAME for a in asked)) or given
    if not given:
        return Match(False, f"no date in the answer; {wanted[0].text} was expected")
    # Long answers go on to other dates: the first sentence that names one gives the answer.
    first_end = sentence_at(answer, given[0].span[0])[1]
    leading = [value for value in given if value.span[0] < first_end]
    fitting = [value for value in leading if any(_same_time(day, value) for day in wanted)]
    held = [day for day in wanted if any(_same_time(day, value) for value in leading)]
    if not fitting or len(held) * 2 < len(wanted):
        return Match(False, f"the answer's date {leading[0].text} does not fit {wanted[0].text}")
    fits = fitting[0]
    if negated(answer, fits.span):
        return Match(False, f"the answer denies the date {fits.text}")
    near = [value for value in leading if value in fitting or (value.gap_days(fits) <= 1 and not value.yearless)]
    if _left_open(answer, fits.span, [value.span for value in near]):
        return Match(False, f"the answer leaves open whether {fits.text} or something else")
    return Match(True, f"the answer's date {fits.text} fits {wanted[0].text}", sure=len(leading) == len(fitting))


def _ranges(text: str, values: tuple[DateValue, ...]) -> Iterator[DateValue]:
    """The dates, with neighbouring periods that stand as a range as one: "June to July 2023"."""
    left = list(values)
    while left:
        value = left.pop(0)
        while left and (joined := _range(text, value, left[0])):
            value = joined
            left.pop(0)
        yield value


def _range(text: str, one: DateValue, other: DateValue) -> DateValue | None:
    if "day" in (one.unit, other.unit) or not _RANGE.fullmatch(text, one.span[1], other.span[0]):
        return None
    if one.yearless and not other.yearless:
        one = in_year(one, other.start.year)
    if one.yearless != other.yearless or other.start <= one.end or one.gap_days(other) > 1:
        return None
    start, end, span = one.start, other.end, (one.span[0], other.span[1])
    if one.unit == other.unit == "days":  # "late May to early June" is the turn of the month: half of each
        start, end = start + timedelta(one.days // 2), end - timedelta(other.days // 2)
    return replace(one, start=start, end=end, unit="days", span=span, text=text[slice(*span)])


def _same_time(gold: DateValue, given: DateValue) -> bool:
    if given.yearless and gold.unit in ("year", "decade", "season"):
        return False
    relation = given.relation(gold)
    if relation is DateRelation.DISJOINT:
        # Weeks and weekends have loose edges: a day beside one still means it.
        return gold.unit in ("week", "weekend") and given.unit == "day" and given.gap_days(gold) <= 1
    if relation is DateRelation.CONTAINS:
        # No more than twice as wide, for a coarser period is no answer; "early August" may be said as August, and a
        # weekend stands for its week.
        days = 7 if gold.unit == "weekend" else gold.days
        return given.days <= 2 * days + 1 or (gold.unit == "days" and given.unit == "month")
    if relation is DateRelation.OVERLAPS:
        # Likewise, with room for the part that lies outside; two periods that only touch are not the same.
        shared = (min(gold.end, given.end) - max(gold.start, given.start)).days + 1
        return given.days <= 3 * gold.days and shared * _TOUCH > min(gold.days, given.days)
    return True


# ---------------------------------------------------------------------------------------------------------- numbers


def _match_numbers(wanted: tuple[NumberValue, ...], answer: str) -> Match:
    answer = _without_item_numbers(answer)
    dates = dates_in(answer)
    given = [
        number
        for number in numbers_in(answer)
        if number.kind == "duration"
        or any(_equal(gold, number) for gold in wanted)  # "1998 views" looks like a year
        or not any(number.span[0] < d.span[1] and d.span[0] < number.span[1] for d in dates)
    ]
    comparable = [number for number in given if any(_same_kind(gold, number) for gold in wanted)]
    if not comparable:
        return Match(False, f"no number in the answer; {wanted[0].text} was expected")
    first = next((number for number in comparable if _is_total(answer, number)), comparable[0])
    equal = [number for number in comparable if any(_equal(gold, number) for gold in wanted)]
    if first not in equal or not all(any(_equal(gold, number) for number in equal) for gold in wanted):
        return Match(False, f"the answer's number {first.text} is not {wanted[0].text}")
    if negated(answer, first.span):
        return Match(False, f"the answer denies {first.text}")
    if _left_open(answer, first.span, [number.span for number in equal]):
        return Match(False, f"the answer leaves open whether {first.text} or something else")
    return Match(True, f"the answer's number {first.text} is {wanted[0].text}", sure=len(equal) == len(comparable))


def _without_item_numbers(text: str) -> str:
    """The text without the numbers 1., 2., 3. before the items of a list: they count nothing."""
    if [mark[1] for mark in _ITEM_NUMBER.finditer(text)][:2] != ["1", "2"]:
        return text
    return _ITEM_NUMBER.sub(" ", text)


def _is_total(text: str, number: NumberValue) -> bool:
    """True when the answer names the number as what its other numbers come to."""
    return bool(_SUM_BEFORE.search(text, 0, number.span[0]) or _SUM_AFTER.match(text, number.span[1]))


def _same_kind(wanted: NumberValue, given: NumberValue) -> bool:
    if wanted.kind == given.kind:
        return True
    if given.said == 1 and given.text.lower().startswith(("a ", "an ")):  # "a day" counts nothing
        return False
    if wanted.kind == "clock" and given.kind == "duration":
        return _on_stopwatch(wanted, given)
    return {wanted.kind, given.kind} <= {"count", "duration", "measure"} and "" in (wanted.unit, given.unit)


def _on_stopwatch(clock: NumberValue, given: NumberValue) -> bool:
    """True when "25:50" may mean the duration that is told in its two parts: "25 minutes and 50 seconds"."""
    told_in_parts = len(numbers_in(given.text.replace(" and ", "; ").replace(", ", "; "))) > 1
    minutes = given.value * (1440 if given.unit == "day" else 1)
    return (
        clock.unit == "24h" and told_in_parts and min(abs(minutes - clock.value), abs(minutes * 60 - clock.value)) < 0.5
    )


def _same_unit(one: NumberValue, other: NumberValue) -> bool:
    return stem(one.unit) == stem(other.unit)


def _equal(wanted: NumberValue, given: NumberValue) -> bool:
    """True when the answer's number, its bound left out, is the wanted one; "a few" is no number, unless wanted."""
    if wanted.kind == "clock" and given.kind == "duration":
        return _on_stopwatch(wanted, given)
    if not wanted.vague:
        if given.vague:
            return False
        given = replace(given, low=given.value, high=given.value)
    return wanted.agrees(given)


def _left_open(text: str, held: tuple[int, int], same: list[tuple[int, int]]) -> bool:
    """True when "or" joins what is held with something that is none of the ``same`` values."""
    after = _OR_AFTER.match(text, held[1])
    if after and not any(after.end() - 1 <= start <= after.end() + 4 for start, _ in same):
        return True
    before = _OR_BEFORE.search(text[: held[0]])
    return before is not None and not any(before.start() - 3 <= end <= held[0] for _, end in same)
