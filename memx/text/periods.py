"""Periods of days: how two lie to each other, and the step from one to another ("the weekend before it")."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum

from dateutil.relativedelta import relativedelta

NO_YEAR = 4  # stands for "any year": a leap year, so that 29 February exists in it
WEEKDAYS = tuple(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
_WEEKDAY_OF = {name[:3]: name for name in WEEKDAYS}
SEASON_START = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


class DateRelation(StrEnum):
    """How one interval of days lies to another."""

    SAME = "same"
    WITHIN = "within"
    CONTAINS = "contains"
    OVERLAPS = "overlaps"
    DISJOINT = "disjoint"


@dataclass(frozen=True, slots=True)
class DateValue:
    """A date or period that a text names: all days from ``start`` to ``end``, both included.

    Attributes:
        span: where it stands: ``text[span[0]:span[1]]``.
        text: the words there.
        unit: how fine it is: ``day``, ``days``, ``week``, ``weekend``, ``month``, ``season``, ``year``, ``decade``.
        relative: it was read against the anchor.
        yearless: the text gives no year and there was no anchor; the year in ``start`` and ``end`` means nothing.
    """

    start: date
    end: date
    span: tuple[int, int]
    text: str
    unit: str
    relative: bool = False
    yearless: bool = False

    @property
    def days(self) -> int:
        """How many days the interval covers."""
        return (self.end - self.start).days + 1

    def relation(self, other: DateValue) -> DateRelation:
        """How this interval lies to ``other``; a yearless one is laid into the other's year."""
        a, b = self, other
        if a.yearless and not b.yearless:
            a = in_year(a, b.start.year)
        elif b.yearless and not a.yearless:
            b = in_year(b, a.start.year)
        if (a.start, a.end) == (b.start, b.end):
            return DateRelation.SAME
        if a.end < b.start or b.end < a.start:
            return DateRelation.DISJOINT
        if b.start <= a.start and a.end <= b.end:
            return DateRelation.WITHIN
        if a.start <= b.start and b.end <= a.end:
            return DateRelation.CONTAINS
        return DateRelation.OVERLAPS

    def gap_days(self, other: DateValue) -> int:
        """Days between the two intervals; 0 when they touch or overlap."""
        if self.relation(other) is not DateRelation.DISJOINT:
            return 0
        a = in_year(self, other.start.year) if self.yearless and not other.yearless else self
        b = in_year(other, a.start.year) if other.yearless and not a.yearless else other
        return (b.start - a.end).days if a.end < b.start else (a.start - b.end).days


def in_year(value: DateValue, year: int) -> DateValue:
    """A yearless period in a year of its own."""
    length = value.end - value.start
    last = monthrange(year, value.start.month)[1]
    start = date(year, value.start.month, min(value.start.day, last))
    try:
        return replace(value, start=start, end=start + length, yearless=False)
    except OverflowError:
        return replace(value, start=start, end=date.max, yearless=False)


def month_span(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def season_span(year: int, season: str) -> tuple[date, date]:
    first = date(year, SEASON_START[season], 1)
    return first, first + relativedelta(months=3, days=-1)


def nearest_year(start: date, end: date, anchor: date) -> tuple[date, date]:
    choices = []
    for year in (anchor.year - 1, anchor.year, anchor.year + 1):
        try:
            moved = start.replace(year=year)
        except ValueError:  # 29 February in a common year
            continue
        last = moved + (end - start)
        if (end.month, end.day) == (2, 29):  # the end of February, whichever day that is
            last = date(year, 2, monthrange(year, 2)[1])
        choices.append((abs((moved - anchor).days), moved, last))
    if not choices:
        raise ValueError("no such day near the anchor")
    return min(choices)[1:]


def full_unit(unit: str) -> str:
    """A unit of time by its full name: "tues" is "tuesday", "week" is itself."""
    return unit if unit == "month" else _WEEKDAY_OF.get(unit[:3], unit)


def grain(unit: str) -> str:
    return unit if unit in ("week", "weekend", "month", "year") else "day"


def stepped(first: date, last: date, unit: str, step: int) -> tuple[date, date]:
    """The week, weekend, weekday, month or year that lies ``step`` steps from the period ``first..last``."""
    edge = last if step > 0 else first
    if unit == "week":
        if step == 0:
            monday = edge - timedelta(edge.weekday())
            return monday, monday + timedelta(6)
        near, far = (
            edge + timedelta(7 * step - (6 if step > 0 else 0)),
            edge + timedelta(7 * step + (6 if step < 0 else 0)),
        )
        return near, far
    if unit == "month":
        moved = edge.replace(day=1) + relativedelta(months=step)
        return month_span(moved.year, moved.month)
    if unit == "year":
        return date(edge.year + step, 1, 1), date(edge.year + step, 12, 31)
    if unit == "weekend":
        if step == 0:  # the nearest: Monday and Tuesday belong to the one before
            saturday = edge + timedelta((5 - edge.weekday() + 3) % 7 - 3)
        elif step < 0:
            saturday = edge - timedelta((edge.weekday() - 6) % 7 or 7) - timedelta(1 + 7 * (-step - 1))
        else:
            saturday = edge + timedelta((5 - edge.weekday()) % 7 or 7) + timedelta(7 * (step - 1))
        return saturday, saturday + timedelta(1)
    if unit in WEEKDAYS:
        weekday = WEEKDAYS.index(unit)
        if step < 0:
            day = edge - timedelta((edge.weekday() - weekday) % 7 or 7) + timedelta(7 * (step + 1))
        elif step > 0:
            day = edge + timedelta((weekday - edge.weekday()) % 7 or 7) + timedelta(7 * (step - 1))
        else:  # "this Friday": of the same week
            day = edge - timedelta(edge.weekday()) + timedelta(weekday)
        return day, day
    day = edge + timedelta(step)
    return day, day


def counted(first: date, last: date, unit: str, sign: int, low: int, high: int) -> tuple[date, date]:
    """The period ``low`` to ``high`` units before (``sign`` -1) or after (+1) the period ``first..last``."""
    edge = first if sign < 0 else last
    if unit in ("weekend", *WEEKDAYS, "month", "year"):
        spans = [stepped(first, last, unit, sign * count) for count in {low, high}]
        return min(start for start, _ in spans), max(end for _, end in spans)
    days, slack = (7, 3) if unit == "week" else (1, 0)
    ends = [edge + timedelta(sign * low * days), edge + timedelta(sign * high * days)]
    return min(ends) - timedelta(slack), max(ends) + timedelta(slack)
