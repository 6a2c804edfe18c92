"""Numbers, names, lists, polarity, and what one text lacks of another."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.text.lists import items, quoted
from memx.text.names import names_in
from memx.text.numbers import numbers_in
from memx.text.polarity import Stance, is_refusal, negated, stance
from memx.text.values import missing_values, values_in
from memx.text.words import words

PIECES = """7:45|pm|a.m.|years|one|hundred|and-five|twenty
|first|half|a|dozen|couple|of|days|$|1,200.50|5K|%|3|million|dollars|once|few
|about|over|NOT|not|No,|never|Anna's|The|U.S.|O'Neil|–|“Big|"|Fish”|'|;|-|•|1)|and|&|(|]|don't|know|mentioned|but|unclear
|½|²|٣"""
texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES.split("|")), max_size=14).map(" ".join))


@given(texts, texts)
def test_any_text_is_read_and_lacks_nothing_of_itself(text: str, other: str) -> None:
    values = values_in(text, date(2023, 5, 10))
    for value in (*values.numbers, *values.names, *values.dates):
        assert text[slice(*value.span)] == value.text != ""
    assert all(number.low <= number.high for number in values.numbers)
    assert missing_values(values, text, date(2023, 5, 10)) == ()
    missing_values(values, other)
    is_refusal(text), stance(text), negated(text, (0, len(text)))


@given(st.integers(0, 10**9))
def test_a_number_in_digits_is_read_with_or_without_thousands_commas(number: int) -> None:
    for text in (str(number), f"{number:,}"):
        (value,) = numbers_in(f"about {text} dogs")
        assert (value.low, value.text) == (number, text)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("two weeks", "14 days", True),
        ("a year", "12 months", True),
        ("1.5 hours", "ninety minutes", True),
        ("$3 million", "three million dollars", True),
        ("twenty-three dogs", "23", True),
        ("twice", "two times", True),
        ("half a dozen eggs", "6 eggs", True),
        ("a few days", "3 days", True),
        ("over 100 people", "120 people", True),
        ("4 years and 9 months", "57 months", True),
        ("7 pm", "19:00", True),
        ("6:45 a.m.", "6:45", True),
        ("seventy pounds", "70 lbs", True),
        ("9 am", "9:30 am", False),
        ("9 am", "9 pm", False),
        ("4 years and 9 months", "4 years", False),
        ("19 days", "19 weeks", False),
        ("third", "3", False),
        ("45%", "45", False),
        ("$40", "€40", False),
        ("two", "three", False),
    ],
)
def test_numbers_agree_by_what_they_mean(one: str, other: str, agree: bool) -> None:
    assert numbers_in(one)[0].agrees(numbers_in(other)[0]) is agree
    assert numbers_in(other)[0].agrees(numbers_in(one)[0]) is agree


def test_names_are_capitalised_runs_and_sentence_starts_need_a_second_sign() -> None:
    text = (
        "Thanks, Ana! Painting helps. Rufus's bowl came from New York City. We saw The Lord of the Rings with Dr. Moor."
    )
    assert [name.text for name in names_in(text)] == ["Ana", "Rufus", "New York City", "Lord of the Rings", "Moor"]
    assert [name.text for name in names_in("Bela left.", known=("Bela",))] == ["Bela"]
    assert names_in("Bela left.") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tea, coffee and cake", ("tea", "coffee", "cake")),
        ("tea; iced coffee, and cake.", ("tea", "iced coffee", "cake")),
        ("- tea\n- coffee with milk and sugar\n", ("tea", "coffee with milk and sugar")),
        ('"Salt, Pepper and Rain" and a film (long, dull)', ('"Salt, Pepper and Rain"', "a film (long, dull)")),
        ("1,200 bees", ("1,200 bees",)),
    ],
)
def test_a_list_is_cut_into_its_items(text: str, expected: tuple[str, ...]) -> None:
    assert items(text) == expected


def test_quotation_marks_hold_titles_and_apostrophes_do_not() -> None:
    assert quoted("She's read “Blue Hour” and 'Red Sky' at Tom's") == ("Blue Hour", "Red Sky")


@pytest.mark.parametrize(
    "text",
    [
        "Not mentioned",
        "The conversation does not mention that.",
        "I don't know.",
        "No information is available about her brother",
        "It was not explicitly stated in the memories",
        "There is no record of such a trip.",
        "Based on the context, it cannot be determined.",
        "Unknown",
    ],
)
def test_a_refusal_is_known(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No, he does not.",
        "She does not know how to swim",
        "Not mentioned, but she visited Italy",
        "He never went there",
        "She did not give up",
        "Using a law to find unknown angles",
    ],
)
def test_an_answer_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes, he does", Stance.YES),
        ("Likely no; she moved", Stance.NO),
        ("Unlikely", Stance.NO),
        ("Most likely yes", Stance.YES),
        ("No one came", Stance.NONE),
        ("Nora's house", Stance.NONE),
    ],
)
def test_yes_and_no_are_read_from_the_opening(text: str, expected: Stance) -> None:
    assert stance(text) is expected


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("It was not a piano", "piano", True),
        ("She didn't buy the red piano", "piano", True),
        ("a flute instead of a piano", "piano", True),
        ("It was not a flute but a piano", "piano", False),
        ("She has no flute. She plays piano", "piano", False),
        ("not only a flute and a piano", "piano", False),
        ("a piano, not a flute", "piano", False),
    ],
)
def test_a_negation_reaches_to_the_end_of_its_clause(text: str, word: str, expected: bool) -> None:
    start = text.index(word)
    assert negated(text, (start, start + len(word))) is expected


def test_what_a_fact_lost_of_a_turn_is_named() -> None:
    said = date(2023, 5, 8)
    turn = values_in("Yesterday I paid $40 for two tickets to “Blue Hour” with my cousin Ana.", said)
    kept = "On 7 May 2023 Ana's cousin bought 2 tickets for Blue Hour, 40 dollars in all."
    lost = "They bought three tickets on 9 May 2023."
    assert missing_values(turn, kept) == ()
    assert {(value.kind, value.text) for value in missing_values(turn, lost)} == {
        ("date", "Yesterday"),
        ("number", "$40"),
        ("number", "two"),
        ("name", "Blue Hour"),
        ("name", "Ana"),
        ("quoted", "Blue Hour"),
    }


def test_words_of_a_language_without_blanks() -> None:
    assert words("田中さんは大阪に住み、犬を3匹、猫を二匹飼う。") == (
        ["田中", "さんは", "大阪", "に", "住", "み", "犬", "を", "3", "匹", "猫", "を", "二匹", "飼", "う"]
    )
    assert words("Lena's café, 3.5 km") == ["lena's", "café", "3.5", "km"]
