"""Words before a date that bend it: "the week before ...", "early ...", "the last weekend of ...", "around ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

from memx.text.periods import WEEKDAYS, DateValue, counted, full_unit, grain, month_span, stepped

_SMALL = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
# "Sat", "sun" and "wed" are words of their own as well: weekdays only after what leads to a day.
WEEKDAY = (
    rf"(?:{'|'.join(WEEKDAYS)}|mon|tues?|weds|thu(?:rs?)?|fri"
    r"|(?:(?<=\bthe )|(?<=\blast )|(?<=\bnext )|(?<=\bpast )|(?<=\bcoming )|(?<=\bfirst ))(?:sat|sun|wed))"
)
COUNT = rf"(?:\d{{1,4}}|{'|'.join(_SMALL)}|an?|(?:a\s+)?few|several|(?:a\s+)?couple(?:\s+of)?)"


def amount_of(text: str) -> tuple[int, int]:
    if text.isdigit():
        return int(text), int(text)
    if text in _SMALL:
        return (_SMALL.index(text) + 1,) * 2
    if "couple" in text:
        return 1, 3
    return (2, 5) if "few" in text or text == "several" else (1, 1)


_OF_PERIOD = re.compile(
    rf"(?:\bthe\s+)?\b(?P<o>{'|'.join(_ORDINALS)}|last|final)\s+(?P<u>week|weekend|half|{WEEKDAY})\s+(?:of|in)\s+(?:the\s+month\s+of\s+)?$"
)
_PART = re.compile(
    r"(?:\bthe\s+)?\b(?P<p>early[\s-]+to[\s-]+mid|early|mid(?:[\s-]+(?:to[\s-]+)?late)?|middle|late|beginning|start|end)(?:[\s-]+(?:of|in|to)\b)?(?:\s+the)?[\s-]+$"
)
_FROM_DATE = re.compile(
    rf"(?:\b(?P<n>{COUNT})\s+|\bthe\s+|(?<=\w)\s|^|\b)(?P<u>day|night|week|weekend|month|year|{WEEKDAY})s?\s+"
    r"(?P<dir>before|prior\s+to|preceding|after|following|of|from|around)\s+(?:the\s+)?(?:date\s+)?$"
)
_ABOUT = re.compile(r"\b(?:around|about|circa|approximately|roughly)\s+(?:the\s+)?$")
_REACH = 60  # characters before a date in which a modifier can start


def with_modifiers(text: str, values: list[DateValue]) -> Iterator[DateValue]:
    floor = 0
    for value in values:
        for _ in range(3):  # "around the end of the week before ..." is as deep as people go
            try:
                bent = _bent(text, value, floor)
            except (ValueError, OverflowError):
                break
            if bent is None:
                break
            value = bent
        floor = value.span[1]
        yield value


def _bent(text: str, value: DateValue, floor: int) -> DateValue | None:
    offset = max(floor, value.span[0] - _REACH)
    before = text[offset : value.span[0]]
    for pattern, bend in (
        (_OF_PERIOD, _bend_of_period),
        (_FROM_DATE, _bend_from),
        (_PART, _bend_part),
        (_ABOUT, _bend_about),
    ):
        match = pattern.search(before)
        if match is None:
            continue
        bent = bend(match, value)
        if bent is not None:
            start, end, unit = bent
            span = (offset + match.start() + len(match.group()) - len(match.group().lstrip()), value.span[1])
            return replace(value, start=start, end=end, unit=unit, span=span, text=text[slice(*span)])
    return None


def _bend_of_period(match: re.Match[str], value: DateValue) -> tuple[date, date, str] | None:
    if value.unit not in ("month", "year"):
        return None
    which, unit = match["o"], full_unit(match["u"])
    number = _ORDINALS.get(which, -1)
    if unit == "half":
        middle = value.start + timedelta(value.days // 2)
        return (value.start, middle - timedelta(1), "days") if number == 1 else (middle, value.end, "days")
    if unit == "week":
        if number < 0:
            return value.end - timedelta(6), value.end, "week"
        start = value.start + timedelta(7 * (number - 1))
        return start, min(start + timedelta(6), value.end), "week"
    weekday = 5 if unit == "weekend" else WEEKDAYS.index(unit)
    if number < 0:
        day = value.end - timedelta((value.end.weekday() - weekday) % 7)
    else:
        day = value.start + timedelta((weekday - value.start.weekday()) % 7 + 7 * (number - 1))
    return (day, day + timedelta(1), "weekend") if unit == "weekend" else (day, day, "day")


def _bend_part(match: re.Match[str], value: DateValue) -> tuple[date, date, str] | None:
    first, last = _sixths(match["p"])
    if value.unit == "month":
        days = (1, 6, 11, 16, 21, 26)[first], (5, 10, 15, 20, 25, value.end.day)[last]
        return value.start.replace(day=days[0]), value.start.replace(day=days[1]), "days"
    if value.unit == "year":
        year = value.start.year
        return date(year, 2 * first + 1, 1), month_span(year, 2 * last + 2)[1], "days"
    if value.days >= 3:
        end = value.end if last == 5 else value.start + timedelta(value.days * (last + 1) // 6 - 1)
        return value.start + timedelta(value.days * first // 6), end, "days"
    return None


def _sixths(word: str) -> tuple[int, int]:
    """First and last sixth of a period that a word names; "mid to late" is as wide as "mid", half of each."""
    if word.startswith("mid"):
        return (3, 4) if word.endswith("late") else (2, 3)
    if word.startswith("early"):
        return (1, 2) if word.endswith("mid") else (0, 1)
    return (0, 1) if word in ("beginning", "start") else (4, 5)


def _bend_from(match: re.Match[str], value: DateValue) -> tuple[date, date, str] | None:
    unit = "day" if match["u"] == "night" else full_unit(match["u"])
    direction = match["dir"].split()[0]
    if direction in ("of", "around"):
        if value.unit != "day" or unit in ("day", "year"):
            return (value.start, value.end, value.unit) if unit == value.unit else None
        if unit == "week" and direction == "of" and value.start.weekday() == 6:
            # "The week of Sunday the 7th" starts there, as weeks do where it is said.
            return value.start, value.start + timedelta(6), "week"
        return *stepped(value.start, value.end, unit, 0), grain(unit)
    sign = -1 if direction in ("before", "prior", "preceding") else 1
    if match["n"] is None:
        return *stepped(value.start, value.end, unit, sign), grain(unit)
    return *counted(value.start, value.end, unit, sign, *amount_of(match["n"])), grain(unit)


def _bend_about(match: re.Match[str], value: DateValue) -> tuple[date, date, str] | None:
    if value.unit != "day":
        return value.start, value.end, value.unit
    return value.start - timedelta(3), value.end + timedelta(3), "days"
