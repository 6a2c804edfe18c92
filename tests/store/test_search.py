"""Searching in memory finds what searching in the file finds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memx.engine.store import search
from memx.engine.store.filters import FIELDS, parse
from memx.engine.store.marks import Mark, Marks
from memx.engine.store.reader import SORTS, Store
from memx.engine.store.search import RunSearch
from memx.engine.store.writer import delete_run
from tests.stores import write_run

_VALUES = {"choice": "none", "text": "a", "number": "none"}
FILTERS = ["", "studio", "-studio rank<20", "mark:open", "mark:fix", "note:any", 'text~"go to" stage:retrieval']
FILTERS += [f"{name}:{_VALUES[field.kind]}" for name, field in FIELDS.items() if name != "mark"]


@pytest.fixture(scope="module")
def store_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("store")
    write_run(directory, "20260228-080000-aaaa", questions=20)
    write_run(directory, "20260301-090000-bbbb", hostile=True)
    store = Store(directory)
    marks = Marks(store)
    marks.set(store.run(), ["conv-1:q00", "conv-2:q04"], Mark.FIX)
    marks.annotate(store.run(), "conv-1:q00", "a date")
    store.close()
    return directory


@pytest.mark.parametrize("most_text", [search._MOST_TEXT, 0])
@pytest.mark.parametrize("text", FILTERS)
def test_the_same_questions_in_the_same_order(
    store_dir: Path, text: str, most_text: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_TEXT", most_text)
    store, searched = Store(store_dir), RunSearch(store_dir)
    for run in store.runs():
        for sort in SORTS:
            assert searched.question_keys(run.run_id, parse(text), sort=sort) == store.question_keys(
                run.run_id, parse(text), sort=sort
            )
        assert searched.count(run.run_id, parse(text)) == store.count(run.run_id, parse(text))
    store.close()
    searched.close()


def test_what_another_process_wrote_is_found(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", questions=4)
    searched = RunSearch(tmp_path)
    assert searched.count("r1") == 4
    assert searched.count("r2") == 0
    write_run(tmp_path, "r2", questions=6)
    assert searched.count("r2") == 6
    # A mark changes the file and what its filter finds, and no question.
    store = Store(tmp_path)
    assert searched.question_keys("r2", parse("mark:fix")) == []
    Marks(store).set(store.run("r2"), ["conv-1:q00"], Mark.FIX)
    assert len(searched.question_keys("r2", parse("mark:fix"))) == 1
    store.close()
    # A question that is asked again takes the place of its row.
    with closing(sqlite3.connect(tmp_path / "memx.db")) as db:
        db.execute("UPDATE traces SET outcome = 'PASS' WHERE run_id = 'r2'")
        db.execute("UPDATE runs SET updated_at = '2026-03-02' WHERE run_id = 'r2'")
        db.commit()
    assert searched.count("r2", parse("verdict:pass")) == 6
    delete_run(tmp_path, "r2")
    assert searched.question_keys("r2") == []
    searched.close()
