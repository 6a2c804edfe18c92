"""Numbers read out of text: digits and words, ordinals, money, percentages, durations and other measures.

Numbers in words are read by ``text2num``; ordinals and vague amounts ("a couple", "half a dozen") by a table.
Money, durations and the common measures get a unit and a value in that unit's base (``2 weeks`` is 14 days,
``1.5 hours`` is 90 minutes), so that equal amounts compare equal however they are said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from memx.text.words import words

_BASES: dict[str, dict[str, float]] = {
    # Calendar and clock durations keep two bases: nobody says whether a month has 30 days.
    "minute": {"second": 1 / 60, "sec": 1 / 60, "minute": 1, "min": 1, "hour": 60, "hr": 60},
    "day": {"day": 1, "night": 1, "week": 7, "fortnight": 14},
    "month": {"month": 1, "year": 12, "yr": 12, "decade": 120, "century": 1200},
    "metre": {"meter": 1, "metre": 1, "km": 1000, "kilometer": 1000, "kilometre": 1000, "k": 1000},
    "mile": {"mile": 1},
    "foot": {"foot": 1, "feet": 1, "ft": 1, "inch": 1 / 12, "inches": 1 / 12},
    "gram": {"gram": 1, "kg": 1000, "kilogram": 1000, "kilo": 1000},
    "pound": {"lb": 1, "pound": 1, "ounce": 1 / 16, "oz": 1 / 16},
    "percent": {"percent": 1, "%": 1, "percentage": 1},
    "time": {"time": 1},
}
_UNITS = {name: (base, factor) for base, names in _BASES.items() for name, factor in names.items()}
_CURRENCY = {
    "$": "usd",
    "€": "eur",
    "£": "gbp",
    "dollar": "usd",
    "buck": "usd",
    "usd": "usd",
    "euro": "eur",
    "eur": "eur",
}
_SCALE = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9}

_CARDINALS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
_ORDINAL_WORDS = words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS, 1)} | {"thirtieth": 30}
_ADVERBS = {"once": 1, "twice": 2, "thrice": 3}
# Vague amounts as (low, high): what a speaker who says so will accept.
_VAGUE = {"couple": (2, 2), "pair": (2, 2), "dozen": (12, 12), "half a dozen": (6, 6), "few": (2, 5), "several": (3, 9)}

_CARDINAL = f"(?:{'|'.join(_CARDINALS)})"
_NUMBER_WORD = rf"(?:{_CARDINAL}|hundred|thousand|million|billion)"
_NUMBER = re.compile(
    r"(?<![\w.:])(?P<clock>(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?!:?\d)(?:\s?(?P<half_day>[ap])(?:m\b|\.m\.))?"
    r"|(?P<hour2>\d{1,2})\s?(?P<half_day2>[ap])(?:m\b|\.m\.))|"
    rf"(?P<money>[$€£]\s?)?(?<![\w.'’])(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)(?P<ord>st|nd|rd|th)?"
    rf"(?:\s?(?P<scale>hundred|thousand|million|billion|bn|k)\b)?(?![\d])"
    rf"|\b(?P<ordinal>(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[\s-])?(?:{'|'.join(_ORDINALS)}))\b"
    rf"|\b(?:a\s+)?(?P<words>{_NUMBER_WORD}(?:(?:[\s-]+|\s+and\s+){_NUMBER_WORD})*)\b(?P<half>\s+and\s+a\s+half)?"
    rf"|\b(?P<adverb>{'|'.join(_ADVERBS)})\b"
    r"|\b(?P<vague>half\s+a\s+dozen|an?\s+(?:couple|pair|dozen|few)|(?:couple|pair)(?=\s+of\b)|dozen|few|several)\b"
    r"|\b(?P<article>an?|half\s+an?)(?=\s+(?:second|minute|hour|day|week|month|year|decade)\b)"
)
_UNIT = re.compile(r"[\s-]*(?:of\s+)?(?P<unit>%|\w+)")
_BOUND = re.compile(
    r"(?P<low>at\s+least|more\s+than|over|above|no\s+less\s+than)|(?P<high>at\s+most|up\s+to|less\s+than|under|below|no\s+more"
    r"\s+than|fewer\s+than)|(?P<about>about|around|approximately|roughly|nearly|almost|~)"
)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_HINT = re.compile(
    rf"\d|\b(?:{_NUMBER_WORD}|{'|'.join(_ORDINALS)}|once|twice|thrice|couple|pair|dozen|few|several|"
    r"an?\s+(?:second|minute|hour|day|week|month|year|decade)\b)"
)


@dataclass(frozen=True, slots=True)
class NumberValue:
    """A number that a text names, in the base of its unit: any value from ``low`` to ``high``.

    Attributes:
        value: the number as said, its bound left out ("over 100" says 100); the middle of a vague amount.
        unit: ``minute``, ``day``, ``month`` for durations; ``usd``, ``eur``, ``gbp``; ``percent``; a measure such as
            ``metre``; else the stem-like counted word as it stands ("dogs"), or "" at the end of a sentence.
        kind: ``count``, ``ordinal``, ``money``, ``duration``, ``percentage``, ``measure``, or ``clock``: a time of
            day in minutes, its unit ``12h`` with am or pm, else ``24h``.
        said: the number itself, before any conversion.
        span: where it stands: ``text[span[0]:span[1]]``, its unit of measure included, a counted word not.
        about: said as "about" or "almost".
        vague: said as "a few" or "several".
    """

    value: float
    low: float
    high: float
    unit: str
    kind: str
    span: tuple[int, int]
    text: str
    about: bool = False
    vague: bool = False
    said: float = 0.0

    def agrees(self, other: NumberValue) -> bool:
        """True when both can mean the same number in the same sense.

        Amounts in words that both bases cover are converted (12 months is a year, 14 days are two weeks); a bare number
        agrees with one that has a counted word, never with money, a percentage or an ordinal.
        """
        if self.kind != other.kind:
            bare = {self.kind, other.kind} <= {"count", "duration", "measure"} and "" in (self.unit, other.unit)
            return bare and self.said == other.said
        if self.kind == "clock" and self.unit != other.unit:  # one of them leaves open which half of the day
            return self.value % 720 == other.value % 720
        a, b = (self.low, self.high), (other.low, other.high)
        if self.unit != other.unit and self.kind != "count":
            factor = _ACROSS.get((self.unit, other.unit))
            if factor is None:
                return False
            slack = 0.08  # a month is 28 to 31 days
            a = (a[0] * factor * (1 - slack), a[1] * factor * (1 + slack))
        ours, theirs = (0.1 if number.about else 1e-9 for number in (self, other))
        return a[0] * (1 - ours) <= b[1] * (1 + theirs) and b[0] * (1 - theirs) <= a[1] * (1 + ours)


_ACROSS = {
    ("month", "day"): 30.4,
    ("day", "month"): 1 / 30.4,
    ("day", "minute"): 1440.0,
    ("minute", "day"): 1 / 1440,
    ("mile", "metre"): 1609.0,
    ("metre", "mile"): 1 / 1609,
    ("pound", "gram"): 453.6,
    ("gram", "pound"): 1 / 453.6,
    ("foot", "metre"): 0.3048,
    ("metre", "foot"): 1 / 0.3048,
}


def numbers_in(text: str) -> tuple[NumberValue, ...]:
    """The numbers that a text names, in order; the digits of dates too, which ``values_in`` leaves out."""
    lower = text.translate(_LOWER)
    if not _HINT.search(lower):
        return ()
    return tuple(_joined(text, list(_read_all(text, lower))))


def _joined(text: str, values: list[NumberValue]) -> Iterator[NumberValue]:
    """The values with durations in parts as one: "4 years and 9 months" is 57 months."""
    while values:
        value = values.pop(0)
        while values and value.kind == "duration" == values[0].kind and value.unit == values[0].unit:
            after = values[0]
            if not _PART_OF.fullmatch(text, value.span[1], after.span[0]) or after.value >= value.value:
                break
            span = (value.span[0], values.pop(0).span[1])
            value = replace(
                value,
                value=value.value + after.value,
                low=value.low + after.low,
                high=value.high + after.high,
                span=span,
                text=text[slice(*span)],
            )
        yield value


_PART_OF = re.compile(r"\s*,?\s*(?:and\s+)?", re.IGNORECASE)


def _read_all(text: str, lower: str) -> Iterator[NumberValue]:
    for match in _NUMBER.finditer(lower):
        if match["clock"]:
            minutes, span = _minutes(match), match.span()
            unit = "12h" if match["half_day"] or match["half_day2"] else "24h"
            yield NumberValue(minutes, minutes, minutes, unit, "clock", span, text[slice(*span)], said=minutes)
            continue
        read = _amount(match)
        if read is None:
            continue
        low, high = read
        kind = "ordinal" if match["ord"] or match["ordinal"] else "count"
        end, unit = match.end(), ""
        after = _UNIT.match(lower, end)
        word = after["unit"] if after else ""
        said = (low + high) / 2
        known = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
        currency = _CURRENCY.get((match["money"] or "").strip()) or _CURRENCY.get(word.removesuffix("s"))
        if currency:
            kind, unit = "money", currency
            end = end if match["money"] or after is None else after.end()
        elif match["adverb"]:
            unit = "time"
        elif known and after and kind != "ordinal":
            unit, factor = known
            low, high, end = low * factor, high * factor, after.end()
            kind = _KINDS.get(unit, "measure")
        elif word.isalpha() and kind == "count":
            unit = word
        value = (low + high) / 2
        about, low, high = _bounded(lower[max(0, match.start() - 16) : match.start()], low, high)
        span = (match.start(), end)
        vague = bool(match["vague"]) and low != high
        yield NumberValue(value, low, high, unit, kind, span, text[slice(*span)], about, vague, said)


_KINDS = {"minute": "duration", "day": "duration", "month": "duration", "percent": "percentage", "time": "count"}


def _minutes(match: re.Match[str]) -> float:
    hour, minute = int(match["hour"] or match["hour2"]), int(match["minute"] or 0)
    half_day = match["half_day"] or match["half_day2"]
    if half_day:
        hour = hour % 12 + (12 if half_day == "p" else 0)
    return float(hour * 60 + minute)


def _amount(match: re.Match[str]) -> tuple[float, float] | None:
    if match["digits"]:
        value = float(match["digits"].replace(",", "")) * _SCALE.get(match["scale"] or "", 1.0)
        return value, value
    if match["words"]:
        number = _from_words(match["words"])
        if number is None:
            return None
        value = number + (0.5 if match["half"] else 0.0)
        return value, value
    if match["ordinal"]:
        *tens, last = re.split(r"[\s-]", match["ordinal"])
        value = float(_ORDINALS[last] + (_from_words(tens[0]) or 0 if tens else 0))
        return value, value
    if match["adverb"]:
        value = float(_ADVERBS[match["adverb"]])
        return value, value
    if match["article"]:
        value = 0.5 if match["article"].startswith("half") else 1.0
        return value, value
    vague = " ".join(match["vague"].split())
    low, high = _VAGUE[vague if vague.startswith("half") else vague.removeprefix("a ").removeprefix("an ")]
    return float(low), float(high)


@lru_cache(maxsize=4096)
def _from_words(spelled: str) -> float | None:
    """The number that cardinal words make, the first of them where they make several; None where they make none."""
    parts = [part for part in re.split(r"[\s-]+", spelled) if part]
    if len(parts) == 1 and parts[0] in _CARDINALS:
        index = _CARDINALS.index(parts[0])
        return float(index if index <= 20 else (index - 18) * 10)
    from text_to_num import text2num

    for length in range(len(parts), 0, -1):
        try:
            return float(text2num(" ".join(parts[:length]), "en"))
        except ValueError:
            continue
    return None


def _bounded(before: str, low: float, high: float) -> tuple[bool, float, float]:
    match = next(reversed(list(_BOUND.finditer(before))), None)
    if match is None or before[match.end() :].strip(" $€£"):
        return False, low, high
    # An open bound reaches half as far again: "over 100" can mean 120, hardly 1,000.
    if match["low"]:
        return False, low, high * 1.5
    if match["high"]:
        return False, low * 0.5, high
    return True, low, high
