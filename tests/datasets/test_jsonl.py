"""One's own data: what is written reads back equal, defaults follow from the position, errors name line and field."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memx.adapters.datasets.jsonl import Jsonl, dump_case, new_template, schema, write_cases, write_template
from memx.errors import InputError, UsageError
from memx.model import Case, Question, Session, Turn
from tests.datasets.builders import short_id, write

VALID = jsonschema.Draft202012Validator(schema())

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8).filter(
    str.strip
)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=-7, minutes=-30))])
TIMES = st.none() | st.datetimes(timezones=ZONES)
PLAIN = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
METADATA = st.dictionaries(
    st.sampled_from(["caption", "note", "x"]),
    st.recursive(
        PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2), max_leaves=4
    ),
    max_size=2,
).filter(lambda found: "gold" not in json.dumps(found) and "answer" not in json.dumps(found))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    case_id = draw(IDS)
    entity_id = draw(st.just(case_id) | IDS)
    turn_ids = draw(st.lists(IDS, max_size=6, unique=True))
    session_ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    placed: dict[str, list[Turn]] = {session_id: [] for session_id in session_ids}
    times = {session_id: draw(TIMES) for session_id in session_ids}
    for turn_id in turn_ids:
        home = draw(st.sampled_from(session_ids))
        at = draw(st.just(times[home]) | TIMES)
        placed[home].append(Turn(turn_id, draw(TEXT), draw(TEXT), draw(TEXT), at, draw(METADATA)))
    sessions = tuple(Session(s, entity_id, tuple(placed[s]), times[s], draw(METADATA)) for s in session_ids)
    full = [session_id for session_id in session_ids if placed[session_id]]
    questions = []
    for question_id in draw(st.lists(IDS, max_size=3, unique=True)):
        evidence = draw(st.lists(st.sampled_from(turn_ids), max_size=3)) if turn_ids else []
        cited = draw(st.lists(st.sampled_from(full), max_size=2)) if full else []
        text = draw(IDS)
        questions.append(
            Question(
                question_id, entity_id, text, draw(TEXT), draw(TEXT), tuple(evidence), tuple(cited),
                draw(TIMES), draw(st.booleans()), draw(METADATA),
            )
        )  # fmt: skip
    return Case(case_id, entity_id, sessions, tuple(questions))


@given(cases())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
def test_a_case_written_and_read_again_is_equal_and_valid(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    assert write_cases(path, [case]) == 1
    assert list(Jsonl.load(path).cases()) == [case]
    VALID.validate(json.loads(dump_case(case)))


def test_the_template_loads_and_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_template(path)
    dataset = Jsonl.load(path)
    small, move = dataset.cases()
    assert [turn.turn_id for turn in small.turns().values()] == ["S1:1", "S1:2"]
    assert small.questions[0].question_id == "small:q0" and small.questions[0].category == "custom"
    assert move.questions[0].evidence_sessions == ("june",)
    assert move.questions[1].abstention and move.questions[1].gold
    assert move.sessions[1].turns[0].at == move.sessions[1].at == datetime(2024, 6, 21, 9)
    for line in new_template().splitlines():
        if not line.startswith("#"):
            VALID.validate(json.loads(line))
    with pytest.raises(UsageError, match="exists already"):
        write_template(path)


GOOD: dict[str, Any] = {
    "case_id": "c",
    "sessions": [{"at": "2024-01-01", "turns": [{"content": "hi"}, {"content": "ho"}]}],
    "questions": [{"text": "?", "gold": 3, "evidence": ["S1:2"]}, {"text": "!", "gold": "x"}],
}


def changed(*path: Any, value: Any = ...) -> dict[str, Any]:
    """GOOD with one place set to ``value``, or removed."""
    copy: Any = json.loads(json.dumps(GOOD))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copy  # type: ignore[no-any-return]


BROKEN = [
    (changed("case_id"), "line 2: case_id: is missing"),
    (changed("case_id", value=" "), "line 2: case_id: is empty"),
    (changed("sessions", value={}), "line 2: sessions: should be a list, is an object"),
    (
        changed("sessions", 0, "turns", 1, "content", value=None),
        "sessions[0].turns[1]: content: should be a text, is null",
    ),
    (changed("sessions", 0, "turns", 1, "turn_id", value="S1:1"), "turns[1]: turn_id: 'S1:1' stands twice"),
    (changed("sessions", 0, "turns", 1, "metadata", value={"has_answer": True}), "metadata.has_answer: tells what"),
    (changed("questions", 1, "gold"), "questions[1]: gold: is missing"),
    (changed("questions", 1, "evidence", value=["S9:1"]), "questions[1]: evidence[0]: 'S9:1' is no turn of the case"),
    (changed("questions", 1, "evidence", value="S1:1"), "questions[1]: evidence: should be a list, is a text"),
    (changed("questions", 1, "abstention", value="no"), "abstention: should be true or false, is a text"),
    (changed("questions", 1, "question_id", value="c:q0"), "questions[1]: question_id: 'c:q0' stands twice"),
    (changed("questions", 1, "evidense", value=[]), "no field of a question named 'evidense'"),
    (changed("questions", 1, "text", value="\udc00"), "text: holds half a surrogate pair"),
    *(
        (changed("sessions", 0, "at", value=date), "line 2: sessions[0]: at: ")
        for date in ("yesterday", "2024-13-01", "1/2/2024", "", "2024-01-01T25:00")
    ),
    ([1], "line 2: should be an object, is a list"),
]


@pytest.mark.parametrize(("row", "words"), BROKEN, ids=short_id)
def test_a_bad_line_is_named_and_can_be_skipped(tmp_path: Path, row: Any, words: str) -> None:
    other = json.dumps({**GOOD, "case_id": "d"})
    path = write(tmp_path / "mine.jsonl", f"# mine\n{json.dumps(row)}\n\n{other}\n")
    with pytest.raises(InputError) as caught:
        Jsonl.load(path)
    assert words in caught.value.message and "\n" not in str(caught.value)
    dataset = Jsonl.load(path, skip_bad=True)
    assert list(dataset.cases())[-1].case_id == "d"
    # A question whose evidence was left out goes with it.
    assert {quirk.policy for quirk in dataset.quirks() if quirk.kind == "bad_record"} == {"dropped"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no case"),
        ("# only words\n", "holds no case"),
        (json.dumps(GOOD) + "\n" + json.dumps(GOOD), "line 2: case_id: 'c' stands twice"),
        (json.dumps(GOOD)[:-20], "line 1 column"),
        (json.dumps(GOOD) + json.dumps(GOOD), "a second JSON value begins here"),
        (json.dumps(GOOD, indent=1), "line 1: is JSON over several lines"),
        (json.dumps(GOOD).encode("utf-16"), "is UTF-16"),
        (json.dumps(GOOD).encode() + b"\n\xff\xfe\n", "line 2: holds bytes that are not UTF-8"),
        (b"\x7fELF\0\0\0", "is a binary file"),
    ],
    ids=short_id,
)
def test_broken_files(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        Jsonl.load(write(tmp_path / "mine.jsonl", content))
    assert words in caught.value.message


def test_a_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", b"\xef\xbb\xbf# mine\r\n" + json.dumps(GOOD).encode() + b"\r\n")
    dataset = Jsonl.load(path)
    assert [case.case_id for case in dataset.cases()] == ["c"]
    assert [quirk.kind for quirk in dataset.quirks()] == ["number_as_answer"]


def test_what_json_cannot_hold_is_refused_when_writing(tmp_path: Path) -> None:
    for metadata in ({"x": float("nan")}, {"x": object()}, {"x": "\ud800"}):
        session = Session("s", "c", (Turn("t", "a", "user", "hi", None, metadata),))
        with pytest.raises(InputError, match="case c holds what JSON cannot"):
            write_cases(tmp_path / "out.jsonl", [Case("c", "c", (session,), ())])
