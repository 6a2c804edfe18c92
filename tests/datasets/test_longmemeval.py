"""LongMemEval: read record by record, ids that give nothing away, broken files named by record."""

from __future__ import annotations

import json
import random
import tracemalloc
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memx.adapters.datasets.longmemeval import RELEASES, LongMemEval, _count_keys
from memx.adapters.datasets.streaming import stream_list
from memx.errors import InputError, UnknownNameError
from tests.datasets.builders import longmemeval_row, short_id, write


def load(path: Path, content: Any, **options: Any) -> LongMemEval:
    return LongMemEval.load(write(path / "longmemeval_s.json", content), **options)


def test_a_question_with_its_history(tmp_path: Path) -> None:
    (case,) = load(tmp_path, [longmemeval_row()]).cases()
    question = case.questions[0]
    assert (case.case_id, question.gold, question.category) == ("q1", "under the blue pot", "single-session-user")
    assert question.evidence == ("S2:1",) and question.evidence_sessions == ("S2",)
    assert question.asked_at == datetime(2023, 5, 30, 23, 40)
    assert case.turns()["S2:2"].content == 'Noted: "key": pot.'
    assert case.turns()["S2:1"].at == case.sessions[1].at == datetime(2023, 5, 21, 10)
    assert question.metadata["answer_session_ids"] == {"S2": "answer_7_1"}
    assert not question.abstention


def test_abstentions_numbers_and_disorder(tmp_path: Path) -> None:
    row = longmemeval_row(
        "q2_abs",
        answer=15,
        haystack_dates=["2023/05/22 (Mon) 02:21", "2023/05/21 (Sun) 10:00"],
        answer_session_ids=["gone"],
    )
    dataset = load(tmp_path, [row])
    (case,) = dataset.cases()
    assert case.questions[0].abstention and case.questions[0].gold == "15"
    assert [session.session_id for session in case.sessions] == ["S2", "S1"]
    assert {quirk.kind for quirk in dataset.quirks()} == {
        "number_as_answer",
        "sessions_out_of_order",
        "dangling_evidence",
    }


def test_empty_and_repeated_sessions_and_empty_turns_are_reported(tmp_path: Path) -> None:
    row = longmemeval_row(
        haystack_dates=["2023/05/20 (Sat) 02:21"] * 3,
        haystack_session_ids=["a", "answer_7_1", "a"],
        haystack_sessions=[[], [{"role": "user", "content": "x"}], [{"role": "user", "content": " "}]],
    )
    dataset = load(tmp_path, [row])
    kinds = {quirk.kind: quirk.policy for quirk in dataset.quirks()}
    assert kinds == {
        "empty_session": "dropped",
        "repeated_session": "kept",
        "empty_turn": "kept",
        "evidence_session_without_turn": "flagged",
    }
    assert [session.session_id for session in next(iter(dataset.cases())).sessions] == ["S2", "S3"]


BROKEN = [
    ({"question_type": "other"}, "q2: question_type: 'other' is no type of LongMemEval"),
    ({"answer": None}, "q2: answer: should be a text or a number, is null"),
    ({"question_date": "30.05.2023"}, "q2: question_date: '30.05.2023' is no date of the form"),
    ({"haystack_dates": ["2023/05/20 (Sat) 02:21"]}, "q2: haystack_sessions: has 2 sessions, 2 ids and 1 dates"),
    ({"haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/13/01 (Sun) 10:00"]}, "q2: haystack_dates[1]: "),
    ({"haystack_sessions": [[], "x"]}, "q2: haystack_sessions[1]: should be a list of turns"),
    ({"haystack_sessions": [[], [{"role": "user"}]]}, "q2:S2:1: content: is missing"),
    ({"haystack_sessions": [[], [{"role": "user", "content": None}]]}, "q2:S2:1: content: should be a text, is null"),
    ({"haystack_sessions": [[], [["role"]]]}, "q2:S2:1: should be an object, is a list"),
    ({"haystack_sessions": [[], [{"role": "user", "content": "\ud800"}]]}, "q2:S2:1: content: holds half a surrogate"),
    ({"question_id": "q1"}, "record 2: question_id: 'q1' stands twice"),
    ({"question_id": 2}, "record 2: question_id: should be a text, is a number"),
]


@pytest.mark.parametrize(("changes", "words"), BROKEN)
def test_a_bad_record_is_named_and_can_be_skipped(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    rows = [longmemeval_row(), {**longmemeval_row("q2"), **changes}, longmemeval_row("q3")]
    dataset = load(tmp_path, rows)
    with pytest.raises(InputError) as caught:
        list(dataset.cases())
    assert words in caught.value.message and "\n" not in str(caught.value)
    dataset = load(tmp_path, rows, skip_bad=True)
    assert [case.case_id for case in dataset.cases()][-1] == "q3"
    assert "bad_record" in {quirk.kind for quirk in dataset.quirks()}


ROWS = json.dumps([longmemeval_row(), longmemeval_row("q2")])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("[]", "holds no question"),
        ('{"a": 1}', "should be a list of records, is an object"),
        ("<!DOCTYPE html><p>Sign in</p>", "is a web page"),
        ("hello", "is not JSON"),
        (ROWS.encode("utf-16"), "is UTF-16"),
        (b"PK\x03\x04\0\0", "is a binary file"),
        (ROWS[:-300], "record 2 column"),
        (ROWS[: ROWS.index('{"question_id": "q2"') - 2], "record 1: is the last: the JSON ends in the middle"),
        (ROWS + ROWS, "a second JSON value follows the list"),
        (ROWS.replace('"answer": "under', '"answer": NaN, "x": "under'), "NaN is no JSON value"),
        (ROWS.replace('"question_id": "q2"', '"question_id": "q2", "answer": "x"'), "the key 'answer' stands twice"),
        (ROWS.replace('}, {"question_id"', '} {"question_id"'), "record 1: is followed by no comma"),
        (ROWS.encode().replace(b"blue pot.", b"bl\xfce pot."), "holds bytes that are not UTF-8"),
        ("[" + "[" * 100_000, "nested too deep"),
    ],
    ids=short_id,
)
def test_broken_files(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        list(load(tmp_path, content).cases())
    assert words in caught.value.message and "\n" not in str(caught.value)


def test_a_directory_and_its_parts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds none of longmemeval_oracle\.json"):
        LongMemEval.load(tmp_path)
    write(tmp_path / "longmemeval_oracle.json", [longmemeval_row("o")])
    write(tmp_path / "longmemeval_m.json", [longmemeval_row("m")])
    with pytest.raises(InputError, match="holds several files"):
        LongMemEval.load(tmp_path)
    assert [case.case_id for case in LongMemEval.load(tmp_path, part="M").cases()] == ["m"]
    with pytest.raises(UnknownNameError, match="no part of longmemeval named 'xl'"):
        LongMemEval.load(tmp_path, part="xl")


def test_a_release_is_known_by_its_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load(tmp_path, [longmemeval_row()])
    assert dataset.info.version == "not a known release"
    assert len({release.sha256 for release in RELEASES}) == 5
    monkeypatch.setattr("memx.adapters.datasets.longmemeval.known_sha256", lambda path: RELEASES[3].sha256)
    assert dataset.info.version == "s, cleaned"


# ---------------------------------------------------------------------------------------------------------- streaming

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['}, {"question_id": "x"}', '"', "\\", '":', "]", 'a\\":"b', "{"]
)
TURN = st.fixed_dictionaries(
    {"role": TEXT, "content": TEXT}, optional={"has_answer": st.booleans(), TEXT.example(): TEXT}
)
ROW = st.fixed_dictionaries(
    {"question_id": TEXT, "haystack_sessions": st.lists(st.lists(TURN, max_size=3), max_size=3)},
    optional={"x": TEXT, "n": st.integers()},
)
ODD = st.one_of(st.integers(), TEXT, st.lists(ROW, max_size=2), st.dictionaries(TEXT, TEXT, max_size=2))


@given(
    st.lists(ROW | ROW | ODD, max_size=5),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]),
    st.booleans(),
    st.integers(min_value=1, max_value=40),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_streaming_gives_what_json_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Any], indent: int | None, separators: tuple[str, str],
    ascii_only: bool, block: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("memx.adapters.datasets.streaming._BLOCK", block)
    path = tmp_path / "rows.json"
    text = json.dumps(rows, indent=indent, separators=separators, ensure_ascii=ascii_only)
    path.write_text(f"\ufeff {text}\n", encoding="utf-8")
    assert [element.value for element in stream_list(path, _count_keys)] == rows


@given(st.integers(min_value=1, max_value=len(ROWS) - 1), st.integers(min_value=1, max_value=64))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_cut_of_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int, block: int) -> None:
    monkeypatch.setattr("memx.adapters.datasets.streaming._BLOCK", block)
    path = write(tmp_path / "rows.json", ROWS[:cut])
    with pytest.raises(InputError):
        list(stream_list(path, _count_keys))


def test_memory_stays_flat_whatever_the_size(tmp_path: Path) -> None:
    rng = random.Random(0)
    turns = [{"role": "user", "content": " ".join(rng.choices(["pot", "key", "lake"], k=40))} for _ in range(40)]
    row = longmemeval_row(haystack_sessions=[turns, turns])

    # The window over the file fills up first, so both files are larger than it.
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.json"
        with path.open("w") as stream:
            for number in range(count):
                stream.write("[" if not number else ", ")
                json.dump({**row, "question_id": f"q{number}"}, stream)
            stream.write("]")
        dataset = LongMemEval.load(path)
        tracemalloc.start()
        assert sum(1 for _ in dataset.cases()) == count
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(240) < peak(80) * 1.3
