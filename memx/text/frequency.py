"""How often something happens: "weekly", "every two weeks", "three times a month", as times a year."""

from __future__ import annotations

import re
from typing import NamedTuple

from memx.text.numbers import numbers_in

_PER_YEAR = {"day": 365.0, "week": 52.0, "month": 12.0, "year": 1.0}
_WEEKDAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ADVERBS = {
    "daily": 365.0, "weekly": 52.0, "biweekly": 26.0, "bi-weekly": 26.0, "fortnightly": 26.0, "monthly": 12.0,
    "quarterly": 4.0, "yearly": 1.0, "annually": 1.0,
}  # fmt: skip
_FREQUENCY = re.compile(
    rf"""\b(?:
        every\s+(?P<step>other\s+|(?:\w+|\d+)\s+)?(?P<unit>day|week|month|year)s?\b
      | (?P<times>once|twice|thrice|(?:\w+|\d+)\s+times)\s+(?:a|per|each|every|in\s+a)\s+(?P<per>day|week|month|year)\b
      | (?:(?P<often>once|twice|thrice|(?:\w+|\d+)\s+times)\s+)?(?P<adverb>{"|".join(_ADVERBS)})\b
      | every\s+{_WEEKDAYS}\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)


class Frequency(NamedTuple):
    """So many times a year; ``span`` is where the text says so, ``by_day`` that it names a weekday ("every Friday")."""

    times: float
    span: tuple[int, int]
    by_day: bool = False


def frequencies_in(text: str) -> tuple[Frequency, ...]:
    """The frequencies that a text tells, in order; "a few times a week" counts nothing and is left out."""
    read = ((_times_a_year(match), match) for match in _FREQUENCY.finditer(text))
    return tuple(
        Frequency(times, match.span(), not (match["adverb"] or match["times"] or match["unit"]))
        for times, match in read
        if times is not None
    )


def _times_a_year(match: re.Match[str]) -> float | None:
    if match["adverb"]:
        often = numbers_in(match["often"] or "once")
        return often[0].said * _ADVERBS[match["adverb"].lower()] if often and not often[0].vague else None
    if match["times"]:
        times = numbers_in(match["times"])
        return times[0].said * _PER_YEAR[match["per"].lower()] if times and not times[0].vague else None
    if not match["unit"]:
        return _PER_YEAR["week"]
    step = (match["step"] or "one").strip().lower()
    if step in ("single", "other"):
        return _PER_YEAR[match["unit"].lower()] / (2 if step == "other" else 1)
    count = numbers_in(step)
    return _PER_YEAR[match["unit"].lower()] / count[0].said if count and count[0].said and not count[0].vague else None
