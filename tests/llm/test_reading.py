"""Reading what models write: many forms accepted, no verdict invented."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.llm.reading import Unread, as_score, json_values, read_list, read_object, read_verdict


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ('{"verdict": "PASS", "why": "same city"}', True),
        ('{"why": "another year", "verdict": "FAIL"}', False),
        ('```json\n{"why": "ok", "verdict": "pass"}\n```', True),
        ('Here is my judgement:\n{"verdict": "FAIL"}\nI hope this helps {smile}.', False),
        ("{'why': 'it\\'s the same', 'verdict': 'PASS',}", True),
        ("{'correct': true, 'why': null}", True),
        ('{"correct": false}', False),
        ('{"Verdict": "Incorrect."}', False),
        ('{"why": "line\nbreak", "verdict": "PASS"}', True),
        ('<think>perhaps {"verdict": "PASS"}?</think>{"verdict": "FAIL"}', False),
        ('{"verdict": "PASS", "why": "the candidate na', True),
        ("verdict: PASS", True),
        ("**Verdict:** FAIL\nThe year differs.", False),
        ("The label is WRONG.", False),
        ("PASS", True),
        ("fail.", False),
        ("The two name the same city.\n\nPASS", True),
        ('{"nested": {"verdict": "PASS"}, "verdict": "FAIL"}', False),
    ],
)
def test_verdicts_are_read_in_every_common_form(text: str, passed: bool) -> None:
    assert read_verdict(text).passed is passed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot decide whether this passes or fails.",
        "The answer is correct about the city but the year is wrong.",
        '{"verdict": "PASS" or "FAIL"}',
        "verdict: PASS or FAIL",
        "The verdict is not PASS.",
        '{"verdict": "PASS"} ... on second thought {"verdict": "FAIL"}',
        '{"verdict": "maybe"}',
        '{"verdict": "PA',
        "PASS\n\nno wait\n\nFAIL",
        "[1, 2",
    ],
)
def test_what_is_no_clear_verdict_is_refused(text: str) -> None:
    with pytest.raises(Unread):
        read_verdict(text)


def test_the_reason_is_kept() -> None:
    assert read_verdict('{"reason": "same  \\n city", "verdict": "PASS"}').why == "same city"


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    list(json_values(text))
    try:
        read_verdict(text)
    except Unread:
        return


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), json_like, max_size=4), st.sampled_from([json.dumps, repr]))
def test_json_and_python_literals_come_out_as_they_went_in(value: object, write: object) -> None:
    assert callable(write)
    assert next(json_values(f"Sure: {write(value)} done")) == value


def test_lists_and_objects_by_key() -> None:
    assert read_list('{"scores": [1, 0.5]}', "scores", 2) == [1, 0.5]
    assert read_list("the scores: [1, 0]", "scores", 2) == [1, 0]
    assert read_object('{"a": 1} {"positions": {"1": 2}}', "positions") == {"positions": {"1": 2}}
    with pytest.raises(Unread, match="2 values"):
        read_list('{"scores": [1, 0.5, 0]}', "scores", 2)
    with pytest.raises(Unread, match="positions"):
        read_object("{}", "positions")


def test_scores() -> None:
    allowed = (0.0, 0.5, 1.0)
    assert [as_score(value, allowed) for value in (1, "0.5", {"score": 0, "why": "no"})] == [1.0, 0.5, 0.0]
    for wrong in [2, 0.7, "half", None, {"score": None}]:
        with pytest.raises(Unread):
            as_score(wrong, allowed)
