"""All values of a text at once, and which values of one text are missing from another.

Diagnosis asks with this whether a stored fact carries an evidence turn; judges, whether an answer holds the gold.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from memx.text.dates import DateRelation, DateValue, dates_in
from memx.text.lists import items, quoted
from memx.text.names import NameValue, names_in
from memx.text.numbers import NumberValue, numbers_in
from memx.text.words import stems, words


@dataclass(frozen=True, slots=True)
class Values:
    """What a text names.

    Attributes:
        numbers: those outside dates.
        items: of the list that the text is; the whole text as one item when it is none.
        stems: of its content words, numbers and dates included.
        quoted: what stands in quotation marks.
    """

    text: str
    dates: tuple[DateValue, ...]
    numbers: tuple[NumberValue, ...]
    names: tuple[NameValue, ...]
    items: tuple[str, ...]
    stems: frozenset[str]
    quoted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A value that another text lacks, as it was said; ``kind`` is ``date``, ``number``, ``name`` or ``quoted``."""

    kind: str
    text: str


def values_in(text: str, anchor: datetime | date | None = None, known_names: Collection[str] = ()) -> Values:
    """Every value that a text names; relative dates are read against ``anchor``, when the text was said."""
    return _values_in(text, anchor, tuple(known_names))


@lru_cache(maxsize=4096)
def _values_in(text: str, anchor: datetime | date | None, known_names: tuple[str, ...]) -> Values:
    dates = dates_in(text, anchor)
    names = tuple(name for name in names_in(text, known_names) if not _inside(name.span, dates))
    numbers = tuple(number for number in numbers_in(text) if not _inside(number.span, dates))
    return Values(text, dates, numbers, names, items(text), frozenset(stems(text)), quoted(text))


def _inside(span: tuple[int, int], dates: tuple[DateValue, ...]) -> bool:
    return any(span[0] < value.span[1] and value.span[0] < span[1] for value in dates)


def missing_values(
    expected: Values, text: str, anchor: datetime | date | None = None, known_names: Collection[str] = ()
) -> tuple[MissingValue, ...]:
    """The dates, numbers, names and quotations of ``expected`` that ``text`` does not hold, each once.

    A date is held when the text names an overlapping one, or repeats its words; a number when an agreeing one stands
    there; a name when all its words do, in any order and case.

    Args:
        anchor: when ``text`` was said.
    """
    other = values_in(text, anchor, known_names)
    told = words(text)
    joined, bag = f" {' '.join(told)} ", set(told) | {word.removesuffix("'s") for word in told}
    folded = " ".join(text.replace("’", "'").casefold().split())
    missing: dict[tuple[str, str], MissingValue] = {}

    def miss(kind: str, value: str) -> None:
        missing.setdefault((kind, value.casefold()), MissingValue(kind, value))

    for day in expected.dates:
        if not holds_date(other, day) and not _repeats(joined, day.text):
            miss("date", day.text)
    for number in expected.numbers:
        if not _is_pronoun(expected.text, number) and not holds_number(other, number):
            miss("number", number.text)
    for name in expected.names:
        if not all(word.removesuffix("'s") in bag for word in words(name.text)) and not _stands(folded, name.key):
            miss("name", name.text)
    for quote in expected.quoted:
        if not _repeats(joined, quote) and not _stands(folded, " ".join(quote.casefold().split())):
            miss("quoted", quote)
    return tuple(missing.values())


def holds_date(values: Values, day: DateValue) -> bool:
    """True when the values hold a date that overlaps ``day``."""
    return any(day.relation(other) is not DateRelation.DISJOINT for other in values.dates)


def holds_number(values: Values, number: NumberValue) -> bool:
    """True when the values hold a number that can mean the same."""
    return any(number.agrees(other) for other in values.numbers)


def _repeats(joined: str, phrase: str) -> bool:
    return f" {' '.join(words(phrase))} " in joined


def _stands(folded: str, name: str) -> bool:
    return name in folded and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None


def _is_pronoun(text: str, number: NumberValue) -> bool:
    """True for the "one" of "this one", "no one", "one of them": it counts nothing."""
    before = text[: number.span[0]].casefold().split()[-1:]
    return number.text.casefold() == "one" and (
        number.unit in ("", "of") or before[0:1] in (["no"], ["this"], ["that"])
    )
