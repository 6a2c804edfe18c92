"""What is read out of one text."""

from __future__ import annotations

from datetime import date, datetime

from hypothesis import given
from hypothesis import strategies as st

from memx.memory.extraction import extract, words_only
from memx.memory.rows import Memory


def test_entities_relations_attributes_and_dates() -> None:
    memory = Memory(
        "m", "Ana: Last Friday I flew to New York with 3 friends.", datetime(2024, 3, 13), attributes={"speaker": "Ana"}
    )
    read = extract(memory)
    assert "new york" in read.entities
    assert ("ana", "mentions", "new york") in read.relations
    assert read.attributes == (("speaker", "ana"),)
    assert read.dates == ((date(2024, 3, 8), date(2024, 3, 8)),)
    assert read.has_number and not read.is_question
    assert read.stems == words_only(memory).stems


def test_label_inside_a_pasted_transcript_is_a_speaker_too() -> None:
    read = extract(Memory("m", "user: Caroline: Are you coming?", attributes={"speaker": "user", "role": "user"}))
    assert ("speaker", "caroline") in read.attributes and ("role", "user") in read.attributes
    assert read.is_question


def test_number_of_a_date_is_no_number() -> None:
    assert not extract(Memory("m", "It was on 5 May 2023.")).has_number


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert extract(Memory("m", text, datetime(2024, 1, 1))).stems == words_only(Memory("m", text)).stems
