"""Dates out of text: what is read, how intervals compare, and what holds for any text at all."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.text.dates import DateRelation, dates_in

ANCHOR = datetime(2023, 5, 10, 13, 56)  # a Wednesday

#: Pieces that date readers react to, so that random texts reach deep into them.
PIECES = """the week before after of last next first early mid late end may March 2023 31 29 30 Feb June 9th 3/4/2023
    2023-13-45 0000 9999 yesterday ago two weeks years month in Friday weekend summer around - , and few couple days
    Tues Sat last the Sept Jan"""
texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES.split()), max_size=12).map(" ".join))
anchors = st.one_of(st.none(), st.datetimes(), st.just(date.min), st.just(date.max))


@given(texts, anchors)
def test_any_text_is_read_and_spans_point_into_it(text: str, anchor: date | None) -> None:
    end = 0
    for value in dates_in(text, anchor):
        assert value.start <= value.end
        assert text[slice(*value.span)] == value.text != ""
        assert value.span[0] >= end, "spans stand in order and apart"
        end = value.span[1]


def test_february_ends_in_february() -> None:
    spans = [(value.start.day, value.end) for value in dates_in("in February, late February", ANCHOR)]
    assert spans == [(1, date(2023, 2, 28)), (21, date(2023, 2, 28))]
    assert dates_in("in February", date(2024, 3, 1))[0].end == date(2024, 2, 29)


@given(
    st.sampled_from(
        ["yesterday", "three days ago", "the other day", "two weeks ago", "last week", "in 3 days", "last Friday"]
    ),
    st.dates(date(1990, 1, 1), date(2090, 1, 1)),
    st.integers(-500, 500),
)
def test_a_shifted_anchor_shifts_relative_dates(text: str, anchor: date, weeks: int) -> None:
    (first,) = dates_in(text, anchor)
    (second,) = dates_in(text, anchor + timedelta(weeks=weeks))
    assert second.start - first.start == second.end - first.end == timedelta(weeks=weeks)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("on 7 May 2023", (2023, 5, 7), (2023, 5, 7)),
        ("10July, 2022.", (2022, 7, 10), (2022, 7, 10)),
        ("May 3-5, 2023", (2023, 5, 3), (2023, 5, 5)),
        ("2023/05/20 (Sat) 02:21", (2023, 5, 20), (2023, 5, 20)),
        ("3/4/2023", (2023, 3, 4), (2023, 3, 4)),
        ("23/4/2023", (2023, 4, 23), (2023, 4, 23)),
        ("October, 2023", (2023, 10, 1), (2023, 10, 31)),
        ("in summer 2022", (2022, 6, 1), (2022, 8, 31)),
        ("2022", (2022, 1, 1), (2022, 12, 31)),
        ("the 1990s", (1990, 1, 1), (1999, 12, 31)),
        ("The week before 9 June 2023", (2023, 6, 2), (2023, 6, 8)),
        ("The Friday before 10 July, 2022", (2022, 7, 8), (2022, 7, 8)),
        ("two weekends before 17 July 2023", (2023, 7, 8), (2023, 7, 9)),
        ("few days before November 22, 2023", (2023, 11, 17), (2023, 11, 20)),
        ("last week of September 2023", (2023, 9, 24), (2023, 9, 30)),
        ("mid-August 2023", (2023, 8, 11), (2023, 8, 20)),
        ("around 9 June 2023", (2023, 6, 6), (2023, 6, 12)),
        ("yesterday", (2023, 5, 9), (2023, 5, 9)),
        ("last Friday", (2023, 5, 5), (2023, 5, 5)),
        ("two weeks ago", (2023, 4, 23), (2023, 4, 29)),
        ("next month", (2023, 6, 1), (2023, 6, 30)),
        ("last year", (2022, 1, 1), (2022, 12, 31)),
        ("last weekend", (2023, 5, 6), (2023, 5, 7)),
        ("last summer", (2022, 6, 1), (2022, 8, 31)),
        ("on December 30", (2022, 12, 30), (2022, 12, 30)),
        ("last Fri", (2023, 5, 5), (2023, 5, 5)),
        ("last Tues", (2023, 5, 9), (2023, 5, 9)),
        ("this past Sun", (2023, 5, 7), (2023, 5, 7)),
        ("next Thurs.", (2023, 5, 11), (2023, 5, 11)),
        ("the Sat before 10 July 2022", (2022, 7, 9), (2022, 7, 9)),
        ("the first Mon of June 2023", (2023, 6, 5), (2023, 6, 5)),
        ("Sept 3rd", (2023, 9, 3), (2023, 9, 3)),
        ("3 Sept. 2023", (2023, 9, 3), (2023, 9, 3)),
        ("in Jan", (2023, 1, 1), (2023, 1, 31)),
        ("since Oct", (2023, 10, 1), (2023, 10, 31)),
        ("last Feb", (2023, 2, 1), (2023, 2, 28)),
    ],
)
def test_a_date_is_read_as_the_days_it_covers(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    (value,) = dates_in(text, ANCHOR)
    assert (value.start, value.end) == (date(*start), date(*end))


@pytest.mark.parametrize(
    "text",
    [
        "$2000",
        "2000 dollars",
        "She may march on",
        "April called June",
        "room 2019a",
        "in 2.2023",
        "this sun",
        "a friend of Jan",
    ],
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert dates_in(text, ANCHOR) == ()


def test_without_an_anchor_relative_dates_stay_unread_and_years_open() -> None:
    assert dates_in("yesterday and two weeks ago") == ()
    (open_year,) = dates_in("7 May")
    assert open_year.yearless
    assert open_year.relation(dates_in("7 May 2021")[0]) is DateRelation.SAME
    assert open_year.relation(dates_in("8 May 2021")[0]) is DateRelation.DISJOINT


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ("7 May 2023", "2023-05-07", DateRelation.SAME),
        ("3 June 2023", "the week before 9 June 2023", DateRelation.WITHIN),
        ("2023", "May 2023", DateRelation.CONTAINS),
        ("late May 2023", "the week before 3 June 2023", DateRelation.OVERLAPS),
        ("May 2023", "June 2023", DateRelation.DISJOINT),
    ],
)
def test_two_dates_relate_as_intervals(one: str, other: str, relation: DateRelation) -> None:
    assert dates_in(one)[0].relation(dates_in(other)[0]) is relation
