"""The filter language on a real store: which questions each filter keeps, and where a bad one is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.engine.store.filters import complete, exactly, parse, terms
from memx.engine.store.reader import Store
from memx.errors import UsageError
from tests.stores import write_run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    directory = tmp_path_factory.mktemp("filters")
    write_run(directory, "r1", questions=32)
    return Store(directory)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", lambda row: True),
        ("verdict:fail", lambda row: row.outcome == "FAIL"),
        ("verdict:fail,ERR", lambda row: row.outcome in ("FAIL", "ERROR")),
        ("-verdict:pass", lambda row: row.outcome != "PASS"),
        ("stage:retrieval", lambda row: row.stage == "retrieval"),
        ("-stage:retrieval", lambda row: row.stage != "retrieval"),
        ("stage:none", lambda row: row.stage == "none"),
        ("cause:none", lambda row: row.cause is None),
        ("cause=absent", lambda row: row.cause == "absent"),
        ("cause~stored", lambda row: row.cause in ("never_stored", "partly_stored")),
        ("rank<20", lambda row: row.rank is not None and row.rank < 20),
        ("rank>=14", lambda row: False),
        ("rank:none verdict:fail", lambda row: row.rank is None and row.outcome == "FAIL"),
        ("type:multi", lambda row: row.category == "multi-hop"),
        ("category=MULTI-HOP", lambda row: row.category == "multi-hop"),
        ('text~"pottery class"', lambda row: "pottery class" in row.question),
        ("-case=conv-1", lambda row: row.case_id != "conv-1"),
        ("pottery melanie", lambda row: "pottery" in row.question and "Melanie" in row.question),
        ('"go to the"', lambda row: "go to the" in row.question),
        ("100%", lambda row: False),
        ("gold~_", lambda row: False),
    ],
)
def test_a_filter_keeps_what_it_says(store: Store, text: str, holds) -> None:  # type: ignore[no-untyped-def]
    expected = [row.question_id for row in store.questions("r1") if holds(row)]
    assert [row.question_id for row in store.questions("r1", parse(text))] == expected
    keys = store.question_keys("r1", parse(text))
    rows = store.rows(keys)
    assert [rows[key].question_id for key in keys] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank<20 stage:foo", "column 15: no stage 'foo'"),
        ("verdct:fail", "Did you mean verdict"),
        ("rank~3", "rank is a number"),
        ("rank<abc", "column 6: 'abc' is no number"),
        ("stage<3", "stage is no number"),
        ("a stage:", "column 9: a value is missing"),
        ('text~"open', "column 6: this quote is not closed"),
        ("cause:ranked_belw_k", "Did you mean ranked_below_k"),
        ("x -", "column 3: a word is missing"),
    ],
)
def test_a_bad_filter_says_where_and_what_to_write(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert message in str(raised.value)
    assert raised.value.hint


@given(st.text(alphabet=st.sampled_from('abstge:<>=~",- \t%_\\0123é\x1b[')) | st.text())
def test_any_text_is_a_filter_or_a_usage_error(store: Store, text: str) -> None:
    try:
        where = parse(text)
    except UsageError:
        return
    store.count("r1", where)


@given(st.text(alphabet=st.characters(exclude_characters='"', exclude_categories=("C", "Z")), min_size=1))
def test_a_value_that_is_named_exactly_is_one_term(value: str) -> None:
    assert [(term.name, term.op) for term in terms(exactly("type", value))] == [("type", "=")]


def test_completion_goes_from_field_to_value() -> None:
    assert complete("sta") == "stage:"
    assert complete("stage:ret") == "stage:retrieval"
    assert complete("x -verdict:fail,un") == "x -verdict:fail,unjudged"
    assert complete("type:te", lambda column: ["temporal"] if column == "category" else []) == "type:temporal"
    assert [complete(text) for text in ("", "stage:retrieval ", 'text~"op', "zzz", "rank<")] == [None] * 5
