"""``memx mark`` and the tables that show marks, on a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memx.cli.main import run_command
from memx.cli.mark import MARKS
from memx.engine.store.marks import Mark
from memx.text.gate import printable
from tests.stores import write_run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on a store with one run of 12 questions, four of them PASS; gives exit code, stdout, stderr."""
    write_run(tmp_path, "r1", questions=12, outcomes=("never_stored", "ranked_below_k", "PASS"))
    monkeypatch.setenv("MEMX_DIR", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def marked(call: Call, where: str) -> list[str]:
    return [json.loads(line)["question_id"] for line in call("show", "--where", where, "--json")[1].splitlines()]


def test_a_filter_marks_what_show_and_export_then_find(call: Call) -> None:
    code, out, err = call("mark", "r1", "--where", "cause:ranked_below_k", "--as", "fix", "--note", "k is too small")
    assert code == 0
    assert "4 of 4 questions changed, 0 stood so already; 4 of 8 FAILs triaged (4 fix)" in err
    assert len(out.splitlines()) == 1 + 8
    fixed = marked(call, "mark:fix")
    assert fixed == marked(call, "cause:ranked_below_k") == marked(call, 'note~"too small"')
    exported = json.loads(call("export", "--where", "mark:fix")[1])
    assert [question["question_id"] for question in exported["questions"]] == fixed
    assert "fix+" in call("show", "--where", "mark:fix")[1]
    _, _, err = call("mark", "--where", "verdict:fail", "--as", "fix")
    assert "4 of 8 questions changed, 4 stood so already; 8 of 8 FAILs triaged (8 fix)" in err


def test_named_questions_a_dry_run_and_undo(call: Call) -> None:
    _, out, err = call("mark", "--question", "conv-1:q00", "--as", "wont", "--dry-run", "--json")
    assert json.loads(out) == {"question_id": "conv-1:q00", "kind": "mark", "old": "open", "new": "wont"}
    assert "1 of 1 questions would be changed" in err and marked(call, "mark:wont") == []
    call("mark", "--question", "conv-1:q00", "--question", "conv-2:q01", "--as", "wont", "--note", "known")
    assert marked(call, "mark:wont") == ["conv-1:q00", "conv-2:q01"]
    assert "would be taken back for 2" in call("mark", "--undo", "--dry-run")[2]
    assert "taken back for 2; 0 of 8" in call("mark", "--undo")[2]
    assert marked(call, "mark:wont") == [] and marked(call, "note:any") == []
    assert "nothing to take back" in call("mark", "--undo")[2]


def test_a_filter_narrows_what_is_named(call: Call) -> None:
    names = ["--question", "conv-1:q00", "--question", "conv-2:q01"]
    assert "1 of 1 questions" in call("mark", *names, "--where", "stage:extraction", "--as", "seen")[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--as", "fix"], "which questions"),
        (["--where", "verdict:fail"], "something to put"),
        (["--where", "verdict:fail rnk<3", "--as", "fix"], "filter, column 14: no field named 'rnk'"),
        (["--where", "verdict:fail", "--as", "done"], "'done' is not one of"),
        (["--question", "conv-1:q0", "--as", "fix"], "Did you mean conv-1:q0"),
        (["--undo", "--as", "fix"], "Give it alone"),
        (["r9", "--where", "verdict:fail", "--as", "fix"], "no run named 'r9'"),
    ],
)
def test_bad_usage_changes_nothing(call: Call, arguments: list[str], words: str) -> None:
    code, out, err = call("mark", *arguments)
    assert (code, out) == (2, "") and words in err
    assert marked(call, "-mark:open") == []


def test_hostile_notes_are_shown_written_out(call: Call) -> None:
    _, out, err = call("mark", "--question", "conv-1:q00", "--note", "\x1b[31mred\ud800\n[bold]")
    assert printable(out) and printable(err)
    assert "\\x1b" in out and "\\ud800" in out


def test_saved_filters_are_listed(call: Call, tmp_path: Path) -> None:
    from memx.engine.store.marks import Marks
    from memx.engine.store.reader import Store

    Marks(Store(tmp_path)).save_filter("near", "rank<20")
    assert call("show", "--filters")[1] == "near: rank<20\n"


def test_the_choices_are_the_marks() -> None:
    assert list(MARKS) == [str(mark) for mark in Mark]
