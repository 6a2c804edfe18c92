"""What adapters receive tells nothing of what is right, for every loader."""

from __future__ import annotations

from pathlib import Path

import pytest

from memx.adapters.datasets.leaks import gold_leaks, leaking_keys
from memx.adapters.datasets.opening import open_dataset
from memx.model import Session, Turn
from tests.datasets.builders import beam_folder, locomo_sample, longmemeval_row, write


def test_the_walk_finds_gold_at_any_depth() -> None:
    assert leaking_keys({"a": [{"Has_Answer": True}], "caption": "x"}) == ("a[0].Has_Answer",)
    turn = Turn("t1", "Ada", "user", "hi", None, {"extra": {"gold": "x"}})
    assert gold_leaks([Session("answer_1", "c", (turn,), None, {"category": 1})]) == [
        "answer_1: metadata.category",
        "answer_1: session_id",
        "t1: metadata.extra.gold",
    ]


@pytest.mark.parametrize("name", ["demo", "locomo", "longmemeval", "beam", "jsonl"])
def test_no_loader_leaks(tmp_path: Path, name: str) -> None:
    source: Path | None = None
    if name == "locomo":
        source = write(tmp_path / "locomo10.json", [locomo_sample()])
    elif name == "longmemeval":
        source = write(tmp_path / "longmemeval_s.json", [longmemeval_row()])
    elif name == "beam":
        source = beam_folder(tmp_path / "1")
    elif name == "jsonl":
        from memx.adapters.datasets.jsonl import write_template

        write_template(source := tmp_path / "mine.jsonl")
    cases = list(open_dataset(name, source).cases())
    assert cases
    for case in cases:
        assert gold_leaks(case.sessions) == []
        shown = repr(case.sessions)
        for question in case.questions:
            for session_id in question.metadata.get("answer_session_ids", {}).values():
                assert session_id not in shown
            if "trap" in question.metadata:
                assert question.text not in shown


@pytest.mark.parametrize(("name", "place"), [("locomo", "data"), ("beam", "data/beam")])
def test_the_real_files_do_not_leak(shared_data: Path, name: str, place: str) -> None:
    if not (shared_data / place).exists():
        pytest.skip(f"needs the real data: {shared_data / place} is not there")
    assert [
        leak for case in open_dataset(name, shared_data / place).cases() for leak in gold_leaks(case.sessions)
    ] == []
