"""Dates read out of text as closed intervals of days, so that "7 May 2023" and "the week before 9 May 2023" compare.

Absolute dates need nothing else; relative ones ("yesterday", "last Friday", "two weeks ago") are read against an
anchor and left out when there is none. Policies, each where a text alone cannot decide:

* ``3/4/2023`` is month first unless the first number is over 12, ``3.4.2023`` day first; ``2023/04/03``, ``2023-04-03``
  and ``2023年4月3日`` are year first.
* A date without a year takes the year that brings it nearest to the anchor; without an anchor it stays
  ``yearless`` and fits any year.
* "last week" and "the week before D" are the seven days before; "last Friday" is the last one strictly before.
* "N weeks ago" allows three days either way, half of the unit it is said in; "N months ago" is that calendar month, "N
  years ago" that calendar year; "a few" is two to five, "a couple" one to three.
* Early, mid and late cut a month at days 10 and 20, a year at April and August.
* Seasons are northern: summer is June to August, winter runs from December into February.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta

from memx.text.date_modifiers import COUNT, WEEKDAY, amount_of, with_modifiers
from memx.text.periods import (
    NO_YEAR,
    SEASON_START,
    DateRelation,
    DateValue,
    counted,
    full_unit,
    grain,
    month_span,
    nearest_year,
    season_span,
    stepped,
)

__all__ = ["DateRelation", "DateValue", "dates_in"]


def dates_in(text: str, anchor: datetime | date | None = None) -> tuple[DateValue, ...]:
    """The dates that a text names, in the order they stand, none overlapping another.

    Args:
        anchor: when the text was said; None leaves out what only it could resolve.
    """
    lower = text.translate(_LOWER)  # of the same length, which lower() does not promise
    day = anchor.date() if isinstance(anchor, datetime) else anchor
    found: list[DateValue] = []
    taken: list[tuple[int, int]] = []
    for hint, readers in _READERS:
        if (day is None and hint is _RELATIVE_HINT) or not hint.search(lower):
            continue
        for match, read in ((match, read) for pattern, read in readers for match in pattern.finditer(lower)):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            try:
                value = read(match, day)
            except (ValueError, OverflowError):  # 31 June, the year 0, a million years ago: no date
                continue
            taken.append(match.span())
            found.append(value)
    found.sort(key=lambda value: value.span)
    bent = with_modifiers(lower, found)
    return tuple(replace(value, text=text[slice(*value.span)]) for value in bent)


# ------------------------------------------------------------------------------------------------------- vocabulary

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# Common misspellings of the long names are let through: "Janury", "Febuary", "Septmber".
_MONTH = (
    r"(?:jan[uary]*|feb[ruary]*|mar(?:ch)?|apr[il]*|may|june?|july?|aug[ust]*|sep[tembr]*|oct[obr]*e?r?"
    r"|nov[embr]*|dec[embr]*)"
)
_SEASON = r"(?:spring|summer|autumn|fall|winter)"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
# A year is no year when it counts something: "2000 dollars", "$2000", "2000-piece", "2023.5".
_COUNTED = (
    r"(?!\d|[.,]\d|%|\s*(?:dollars?|bucks|euros?|pounds?|people|points?|miles?|steps|calories|pieces?|words)\b|-\w)"
)


# All patterns read text in lower case: several times faster than ignoring case.
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_MONTH_HINT = re.compile("|".join(_MONTHS))
_YEAR_HINT = re.compile(r"(?:19|20)\d\d|\d/\d")
_RELATIVE_HINT = re.compile(
    r"yesterday|to(?:day|night|morrow)|other day|ago\b|back\b|from now|in \w+ [a-z]+"
    r"|(?:last|next|this|past|previous|coming) "
)
_ISO = re.compile(r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)")
_NUMERIC = re.compile(r"(?<![\d/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d{4}|\d{2})(?![\d/])")
_DOTTED = re.compile(rf"(?<![\d.])(?P<b>\d{{1,2}})\.(?P<a>\d{{1,2}})\.(?P<y>{_YEAR})(?![\d.]\d)")
_IDEOGRAPHS = re.compile(r"(?<!\d)(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})日")
# "15. März 2024", "15 de marzo de 2024": German and Spanish, day first; names that English has too are read as English.
_MONTHS_ELSEWHERE = {
    **dict(januar=1, februar=2, märz=3, mai=5, juni=6, juli=7, oktober=10, dezember=12, enero=1, febrero=2, marzo=3),
    **dict(abril=4, mayo=5, junio=6, julio=7, agosto=8, septiembre=9, octubre=10, noviembre=11, diciembre=12),
}
_ELSEWHERE = re.compile(
    rf"(?<![\d.,/])(?P<d>\d{{1,2}})(?:\.\s*|\s+de\s+|\s+)(?P<mon>{'|'.join(_MONTHS_ELSEWHERE)})\b"
    rf"(?:\s+(?:del?\s+)?(?P<y>{_YEAR})(?!\d))?"
)
_ELSEWHERE_HINT = re.compile("|".join(_MONTHS_ELSEWHERE))
_DAY_MONTH = re.compile(
    rf"(?<![\d.,/])(?P<d>{_DAY})(?:\s*(?:[-–]|to|and)\s*(?P<d2>{_DAY}))?(?:\s+of)?\s*(?P<mon>{_MONTH})\b\.?"
    rf"(?:,?\s*(?:of\s+)?(?P<y>{_YEAR})(?!\d))?"
)
_MONTH_DAY = re.compile(
    rf"\b(?P<mon>{_MONTH})\.?\s*(?:the\s+)?(?P<d>{_DAY})(?!\d|:\d)(?:\s*(?:[-–]|to|and)\s*(?P<d2>{_DAY})(?!\d|:\d))?"
    rf"(?:,?\s*(?:of\s+|in\s+)?(?P<y>{_YEAR})(?!\d))?"
)
_MONTH_YEAR = re.compile(rf"\b(?P<mon>{_MONTH})\.?,?\s*(?:of\s+|in\s+)?(?P<y>{_YEAR})(?!\d)")
_SEASON_YEAR = re.compile(rf"\b(?P<s>{_SEASON})(?:\s+months)?(?:,?\s*(?:of\s+|in\s+)?|\s+\()(?P<y>{_YEAR})(?!\d)")
_DECADE = re.compile(r"(?<!\d)(?P<y>(?:19|20)\d0)['’]?s\b")
_YEAR_ALONE = re.compile(rf"(?<![\w$£€.,/:-])(?P<y>{_YEAR}){_COUNTED}(?!\w)")
# May, March, April, June, August and Jan are also verbs and names: alone they are months after a preposition only, like
# every short form.
_MONTH_ALONE = re.compile(
    r"(?:(?<=\bin )|(?<=\bof )|(?<=\bsince )|(?<=\buntil )|(?<=\bduring )|(?<=\bby )|(?<=\bearly )|(?<=\blate )"
    r"|(?<=\bmid-)|(?<=\bmid ))(?P<mon>may|march|april|june|august|feb|apr|jun|jul|aug|sept?|oct|nov|dec)\b"
    r"|(?:(?<=\bin )|(?<=\bsince )|(?<=\buntil ))(?P<mon3>jan|mar)\b"
    r"|\b(?P<mon2>january|february|july|september|october|november|december)\b"
)
_LAST_MONTH_NAMED = re.compile(rf"\b(?P<w>last|this\s+past|this|next)\s+(?P<mon>{_MONTH}|{_SEASON})\b")
_RELATIVE_DAY = re.compile(
    r"\b(?:(?P<b>(?:the\s+)?day\s+before\s+yesterday)|(?P<a>(?:the\s+)?day\s+after\s+tomorrow)|(?P<y>yesterday|last\s+night)"
    r"|(?P<t>tomorrow)|(?P<n>today|tonight|this\s+(?:morning|afternoon|evening))|(?P<o>the\s+other\s+day))\b"
)
_LAST_UNIT = re.compile(
    rf"\b(?P<w>last|this\s+past|past|previous|this|next|coming|this\s+coming)\s+(?P<u>week(?:end)?|month|year|{WEEKDAY})\b"
    r"(?!\s+(?:of|in|before|after)\b)"
)
_AGO = re.compile(
    rf"\b(?P<n>{COUNT})\s+(?P<u>day|night|week|weekend|month|year)s?\s+(?:ago|back)\b"
    rf"|\bin\s+(?P<n2>{COUNT})\s+(?P<u2>day|week|month|year)s?(?:['’]\s*time)?\b(?!\s+of)"
    rf"|\b(?P<n3>{COUNT})\s+(?P<u3>day|week|month|year)s?\s+from\s+now\b"
)

# ---------------------------------------------------------------------------------------------------------- readers


def _value(match: re.Match[str], start: date, end: date, unit: str, **more: bool) -> DateValue:
    return DateValue(start, end, match.span(), match.group(), unit, **more)


def _month_number(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def _day_number(text: str) -> int:
    return int(text.rstrip("stndrh"))


def _with_year(match: re.Match[str], anchor: date | None, month: int, first: int, last: int, unit: str) -> DateValue:
    year = match.groupdict().get("y")
    start, end = (date(int(year) if year else NO_YEAR, month, day) for day in (first, last))
    if end < start:
        raise ValueError("the range runs backwards")
    if not year and anchor is not None:
        start, end = nearest_year(start, end, anchor)
    return _value(match, start, end, unit, yearless=not year and anchor is None)


def _read_month_day(match: re.Match[str], anchor: date | None) -> DateValue:
    first = _day_number(match["d"])
    last = _day_number(match["d2"]) if match["d2"] else first
    return _with_year(match, anchor, _month_number(match["mon"]), first, last, "day" if first == last else "days")


def _read_elsewhere(match: re.Match[str], anchor: date | None) -> DateValue:
    day = int(match["d"])
    return _with_year(match, anchor, _MONTHS_ELSEWHERE[match["mon"]], day, day, "day")


def _read_month_alone(match: re.Match[str], anchor: date | None) -> DateValue:
    month = _month_number(match["mon"] or match["mon2"] or match["mon3"])
    return _with_year(match, anchor, month, 1, monthrange(NO_YEAR, month)[1], "month")


def _read_iso(match: re.Match[str], anchor: date | None) -> DateValue:
    day = date(int(match["y"]), int(match["m"]), int(match["d"]))
    return _value(match, day, day, "day")


def _read_numeric(match: re.Match[str], anchor: date | None) -> DateValue:
    month, day, year = int(match["a"]), int(match["b"]), int(match["y"])
    if month > 12:
        month, day = day, month
    found = date(year + 2000 if year < 100 else year, month, day)
    return _value(match, found, found, "day")


def _read_dotted(match: re.Match[str], anchor: date | None) -> DateValue:
    day = date(int(match["y"]), int(match["a"]), int(match["b"]))
    return _value(match, day, day, "day")


def _read_month_year(match: re.Match[str], anchor: date | None) -> DateValue:
    return _value(match, *month_span(int(match["y"]), _month_number(match["mon"])), "month")


def _read_season_year(match: re.Match[str], anchor: date | None) -> DateValue:
    return _value(match, *season_span(int(match["y"]), match["s"]), "season")


def _read_decade(match: re.Match[str], anchor: date | None) -> DateValue:
    return _value(match, date(int(match["y"]), 1, 1), date(int(match["y"]) + 9, 12, 31), "decade")


def _read_year(match: re.Match[str], anchor: date | None) -> DateValue:
    return _value(match, date(int(match["y"]), 1, 1), date(int(match["y"]), 12, 31), "year")


def _read_relative_day(match: re.Match[str], anchor: date | None) -> DateValue:
    assert anchor is not None
    if match["o"]:
        return _value(match, anchor - timedelta(7), anchor - timedelta(1), "days", relative=True)
    shift = next(days for group, days in (("b", -2), ("a", 2), ("y", -1), ("t", 1), ("n", 0)) if match[group])
    day = anchor + timedelta(shift)
    return _value(match, day, day, "day", relative=True)


def _read_last_unit(match: re.Match[str], anchor: date | None) -> DateValue:
    assert anchor is not None
    which, unit = match["w"].split()[-1], full_unit(match["u"])
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[which]
    return _value(match, *stepped(anchor, anchor, unit, step), grain(unit), relative=True)


def _read_last_month_named(match: re.Match[str], anchor: date | None) -> DateValue:
    assert anchor is not None
    which, name = match["w"].split()[-1], match["mon"]
    season = name in SEASON_START
    spans = [
        season_span(year, name) if season else month_span(year, _month_number(name))
        for year in range(anchor.year - 2, anchor.year + 3)
    ]
    if which in ("last", "past"):
        start, end = max(span for span in spans if span[1] < anchor)
    elif which == "next":
        start, end = min(span for span in spans if span[0] > anchor)
    else:
        start, end = next(span for span in spans if span[0].year == anchor.year)
    return _value(match, start, end, "season" if season else "month", relative=True)


def _read_ago(match: re.Match[str], anchor: date | None) -> DateValue:
    assert anchor is not None
    amount = match["n"] or match["n2"] or match["n3"]
    unit = match["u"] or match["u2"] or match["u3"]
    low, high = amount_of(amount)
    sign = -1 if match["n"] else 1
    return _value(match, *counted(anchor, anchor, unit, sign, low, high), grain(unit), relative=True)


_Reader = tuple[re.Pattern[str], Callable[[re.Match[str], date | None], DateValue]]
# In order: what is read first keeps its place in the text. Each group is tried only where its hint occurs.
_READERS: tuple[tuple[re.Pattern[str], tuple[_Reader, ...]], ...] = (
    (_YEAR_HINT, ((_ISO, _read_iso), (_IDEOGRAPHS, _read_iso), (_NUMERIC, _read_numeric), (_DOTTED, _read_dotted))),
    (_ELSEWHERE_HINT, ((_ELSEWHERE, _read_elsewhere),)),
    (_MONTH_HINT, ((_DAY_MONTH, _read_month_day), (_MONTH_DAY, _read_month_day), (_MONTH_YEAR, _read_month_year))),
    (_YEAR_HINT, ((_SEASON_YEAR, _read_season_year), (_DECADE, _read_decade), (_YEAR_ALONE, _read_year))),
    (
        _RELATIVE_HINT,
        (
            (_LAST_MONTH_NAMED, _read_last_month_named),
            (_RELATIVE_DAY, _read_relative_day),
            (_LAST_UNIT, _read_last_unit),
            (_AGO, _read_ago),
        ),
    ),
    (_MONTH_HINT, ((_MONTH_ALONE, _read_month_alone),)),
)
