"""Judging stored answers again, and judging a file: no memory system is touched."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import memx
from memx.cli.main import run_command
from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.rejudge import rejudge
from memx.engine.settings import RunSettings
from memx.engine.store.reader import Store
from memx.errors import ModelError
from memx.model import Decider, Outcome, Verdict
from tests.engine import worlds
from tests.engine.worlds import Small
from tests.fake_openai import FakeOpenAI, Request, judge_by_marker


class Harsh(Judge):
    """Fails everything, but cannot judge the first question of a case."""

    name = "harsh"
    decider = Decider.MODEL

    def judge(self, item: JudgeItem) -> Verdict:
        if item.question.question_id.endswith("q0"):
            raise ModelError("HTTP 500")
        return Verdict(Outcome.FAIL, Decider.MODEL, "never good enough")


def test_new_verdicts_become_a_run_of_their_own_with_new_diagnoses(tmp_path: Path) -> None:
    old = memx.run(worlds.Answers, Small(2, sessions=3), directory=tmp_path, snapshots="session")
    before = [trace.verdict.outcome for trace in old.traces()]
    worlds.Notebook.seen.clear()
    done = rejudge(tmp_path, old.run_id, Harsh(), RunSettings.from_dict(old.row.settings))
    assert worlds.Notebook.seen == []
    assert {(c.question_id[-2:], c.before, c.after) for c in done.changes} == {("q0", Outcome.PASS, Outcome.UNJUDGED)}
    new = memx.Run.load(done.run_id, tmp_path)
    assert (new.summary.failed, new.summary.unjudged, new.state) == (4, 2, "finished")
    assert [trace.verdict.outcome for trace in old.traces()] == before
    assert all(t.diagnosis is not None for t in new.traces() if t.verdict.outcome is Outcome.FAIL)
    store = Store(tmp_path)
    assert store.snapshot(done.run_id, "case-0") == store.snapshot(old.run_id, "case-0")
    assert store.run(done.run_id).manifest["rejudged_from"] == old.run_id
    assert store.run(done.run_id).judge == "harsh"


def test_the_same_judge_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memx.run(worlds.Forgetful, Small(), directory=tmp_path, top_k=1)
    assert run_command(["rejudge", "--dir", str(tmp_path)]) == 0
    assert "0 verdicts changed" in capsys.readouterr().out
    old, new = (list(run.traces()) for run in (memx.Run.load(r.run_id, tmp_path) for r in Store(tmp_path).runs()))
    assert [t.diagnosis for t in old] == [t.diagnosis for t in new]


class Interrupting(Judge):
    """The user presses Ctrl-C while the second question of a case is judged."""

    name = "interrupting"
    decider = Decider.MODEL

    def judge(self, item: JudgeItem) -> Verdict:
        if item.question.question_id.endswith("q1"):
            raise KeyboardInterrupt
        return Verdict(Outcome.FAIL, Decider.MODEL, "never good enough")


def test_an_interrupt_in_the_middle_of_a_case_keeps_what_was_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = memx.run(worlds.Answers, Small(2, sessions=3), directory=tmp_path)
    done = rejudge(tmp_path, old.run_id, Interrupting(), RunSettings.from_dict(old.row.settings), concurrency=1)
    assert (done.state, done.summary.questions) == ("interrupted", 1)
    assert run_command(["run", "--resume", done.run_id, "--dir", str(tmp_path)]) == 2
    assert f"memx rejudge {old.run_id}" in capsys.readouterr().err


def test_an_interrupted_audit_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = iter([True])

    def interrupt(body: Request) -> str:
        if "<candidate>" in str(body) and next(first, False):
            os.kill(os.getpid(), signal.SIGINT)
        return judge_by_marker(body)

    monkeypatch.setenv("MEMX_API_KEY", "sk-test")
    with FakeOpenAI(interrupt) as server:
        command = ["calibrate", "--judge", "m", "--base-url", server.base_url, "--dir", str(tmp_path)]
        assert run_command(command) == 130
    assert "Go on with the same command" in capsys.readouterr().err


def test_a_file_of_answers_comes_back_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"question": "Where?", "gold": "Porto", "candidate": "She moved to Porto.", "category": "single-hop", "x": 1},
        {"question": "", "gold": 2022, "candidate": "In 2021.", "category": "temporal"},
        {"question": "Who?", "gold": "Not mentioned", "candidate": "I don't know.", "category": "adversarial"},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    assert run_command(["judge", str(path), "--dir", str(tmp_path / "d")]) == 0
    judged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["verdict"] for line in judged] == ["PASS", "FAIL", "PASS"]
    assert [{k: v for k, v in j.items() if k not in ("verdict", "decider", "why")} for j in judged] == lines
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no line"),
        ("{\n", "line 1: not JSON"),
        ('{"gold": "a", "candidate": "b"}\n[1]', "line 2: is a list"),
        ('{"candidate": "b"}', "field 'gold' is missing"),
        ('{"gold": "a", "candidate": null}', "field 'candidate' is NoneType"),
    ],
)
def test_a_bad_line_is_named_before_anything_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(content)
    assert run_command(["judge", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err and "answers.jsonl" in printed.err
