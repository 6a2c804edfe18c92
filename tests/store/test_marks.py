"""Triage on a real store: what is marked stays, whatever happens to the runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from memx.engine.store.filters import parse
from memx.engine.store.marks import Mark, Marks, Triage
from memx.engine.store.reader import Store
from memx.engine.store.writer import delete_run
from memx.errors import StoreError, UsageError
from tests.stores import write_run


def opened(directory: Path) -> tuple[Store, Marks]:
    write_run(directory, "r1", questions=12)
    store = Store(directory)
    return store, Marks(store, who="ana")


def test_marks_are_set_counted_filtered_and_taken_back(tmp_path: Path) -> None:
    store, marks = opened(tmp_path)
    run = store.run("r1")
    fails = [row.question_id for row in store.questions("r1", parse("verdict:fail"))]
    assert marks.set(run, fails[:2], Mark.FIX) == 2
    assert marks.set(run, fails[:3], Mark.FIX) == 1
    assert marks.progress(run) == {"open": len(fails) - 3, "seen": 0, "fix": 3, "wont": 0, "nobug": 0}

    def kept(text: str) -> set[str]:
        return {row.question_id for row in store.questions("r1", parse(text))}

    assert kept("mark:fix") == set(fails[:3])
    assert kept("verdict:fail mark:open") == set(fails[3:])
    assert kept("verdict:fail -mark:fix,wont") == set(fails[3:])
    assert marks.undo(run) == 1
    assert kept("mark:fix") == set(fails[:2])
    assert marks.undo(run) == 2
    assert marks.undo(run) == 0
    assert kept("mark:fix") == set()
    assert [entry.undo for entry in marks.history(run, fails[0])] == [False, True]


def test_notes_are_kept_with_their_author_and_found(tmp_path: Path) -> None:
    store, marks = opened(tmp_path)
    run = store.run("r1")
    assert marks.annotate(run, "conv-1:q00", " the *date* is lost \n")
    assert not marks.annotate(run, "conv-1:q00", "the *date* is lost")
    assert marks.annotate(run, "conv-1:q03", "\ud800 odd")
    assert marks.current(run)["conv-1:q00"] == Triage(Mark.OPEN, "the *date* is lost")
    assert [entry.who for entry in marks.history(run, "conv-1:q00")] == ["ana"]
    assert store.count("r1", parse("note~DATE")) == 1
    assert store.count("r1", parse("note:any")) == 2
    assert store.count("r1", parse("note:none")) == 10


def test_marks_outlive_runs_and_stand_for_the_same_memory_system_alone(tmp_path: Path) -> None:
    store, marks = opened(tmp_path)
    marks.set(store.run("r1"), ["conv-1:q00"], Mark.WONT)
    delete_run(tmp_path, "r1")
    write_run(tmp_path, "r2", questions=12)
    write_run(tmp_path, "r3", questions=12, adapter="word-overlap")
    assert marks.current(store.run("r2"))["conv-1:q00"].mark is Mark.WONT
    assert store.count("r2", parse("mark:wont")) == 1
    assert store.count("r3", parse("mark:wont")) == 0


def test_two_people_may_mark_at_once(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    run = store.run("r1")

    def work(who: str) -> None:
        own = Marks(Store(tmp_path), who)
        for n in range(20):
            own.annotate(run, f"{who}-{n}", "x")

    threads = [threading.Thread(target=work, args=(who,)) for who in ("ana", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Marks(store).current(run)) == 40


def test_saved_filters_have_names(tmp_path: Path) -> None:
    _, marks = opened(tmp_path)
    marks.save_filter("near", "cause:ranked rank<20")
    marks.save_filter("near", "cause:ranked rank<15")
    marks.save_filter("all", "verdict:fail")
    marks.save_filter("all", "")
    assert marks.saved_filters() == {"near": "cause:ranked rank<15"}
    with pytest.raises(UsageError, match="needs a name"):
        marks.save_filter(" ", "x")


def test_a_store_that_vanished_is_said(tmp_path: Path) -> None:
    store, marks = opened(tmp_path)
    run = store.run("r1")
    (tmp_path / "memx.db").unlink()
    with pytest.raises(StoreError, match="the store is gone"):
        marks.set(run, ["conv-1:q00"], Mark.FIX)
