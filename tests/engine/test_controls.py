"""Control arms beside a run: which questions need no memory, which no memory can help, which the memory lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import memx
from memx.cli.main import run_command
from memx.engine.controls import ARMS, check_arms, tags_of
from memx.engine.events import Event, RunStarted
from memx.engine.store.filters import parse
from memx.engine.store.reader import Store
from memx.errors import UnknownNameError, UsageError
from memx.model import QueryResult
from tests.engine.worlds import Notebook, Small
from tests.fake_openai import FakeOpenAI

SMALL = ["--dataset", "tests.engine.worlds:Small", "--dataset-option", "cases=1"]


class LosesGamma(Notebook):
    """Finds nothing about trip gamma."""

    name = "loses-gamma"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = super().query(query, entity_id, 50).facts
        return QueryResult(tuple(f for f in found if "trip gamma" not in f.content)[:top_k])


def reader(request: dict[str, Any]) -> str:
    """Knows trip alpha by heart, is always wrong about beta, and reads gamma off what is in front of it."""
    asked = json.dumps(request)
    question = asked.rpartition("Where did trip ")[2]
    if question.startswith("alpha"):
        return "Porto"
    if question.startswith("beta"):
        return "Nairobi"
    return "Graz" if "I went to Graz" in asked else "Helsinki"


def test_each_question_is_tagged_by_the_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test")
    with FakeOpenAI(reader) as server:
        run = memx.run(
            LosesGamma, Small(1), directory=tmp_path, answer_model="reader", base_url=server.base_url,
            with_controls=True,
        )  # fmt: skip
    record = json.loads((tmp_path / "last_run.json").read_text())
    assert record["run_id"] == run.run_id
    assert [question["tag"] for question in record["questions"]] == ["guessable", "reader-bound", "retrieval-bound"]
    controls = record["summary"]["controls"]
    assert controls["reader"] and list(controls["arms"]) == list(ARMS)
    assert controls["tags"] == {"guessable": 1, "reader-bound": 1, "retrieval-bound": 1}
    assert [controls["arms"][arm]["n"] for arm in ("no-context", "full-context", "oracle")] == [1, 2, 2]
    text = str(run)
    assert "controls, the same questions" in text and "No model answers here" not in text
    store = Store(tmp_path)
    for tag, question in (("guessable", "q0"), ("reader", "q1"), ("retrieval-bound", "q2")):
        assert [row.question_id for row in store.questions(run.run_id, parse(f"tag:{tag}"))] == [f"case-0:{question}"]
    assert store.count(run.run_id, parse("tag:none")) == 0 and store.count(run.run_id, parse("-tag:guess")) == 2
    # The arms are runs of their own, and the run itself stays the one that commands take when none is named.
    assert store.run(None).run_id == run.run_id and len(store.runs()) == 1 + len(ARMS)
    store.close()
    assert (
        run_command(["export", run.run_id, "--format", "md", "--dir", str(tmp_path), "-o", str(tmp_path / "x.md")]) == 0
    )
    assert "oracle 66.7 %, 1 guessable, 1 reader-bound, 1 retrieval-bound" in (tmp_path / "x.md").read_text()
    with pytest.raises(UsageError, match="no tag 'lucky'"):
        parse("tag:lucky")


def test_without_a_reader_only_what_the_memory_lost_is_tagged_and_that_is_said(tmp_path: Path) -> None:
    run = memx.run(LosesGamma, Small(1), directory=tmp_path, with_controls=True)
    assert run.summary.controls is not None
    assert run.summary.controls["tags"] == {"guessable": 0, "reader-bound": 0, "retrieval-bound": 1}
    assert "No model answers here" in str(run) and max(map(len, str(run).splitlines())) <= 80


def test_finished_arms_are_used_again_for_another_system_and_not_for_other_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> dict[str, str]:
        code = run_command(["run", *SMALL, "--dir", str(tmp_path), "--quiet", "--control", "oracle", *arguments])
        assert code == 0
        arms = json.loads((tmp_path / "last_run.json").read_text())["summary"]["controls"]["arms"]
        return {name: arm["run_id"] for name, arm in arms.items()}

    first = run("--adapter", "word-overlap")
    assert list(first) == ["oracle"]
    assert run("--adapter", "tests.engine.worlds:Forgetful", "--concurrency", "1") == first
    assert run("--adapter", "word-overlap", "--top-k", "3") != first
    assert run("--adapter", "word-overlap", "--limit", "2") != first
    assert run_command(["report", "--dir", str(tmp_path)]) == 0
    capsys.readouterr()


def test_arms_that_were_interrupted_are_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    begun: list[Event] = []

    def listen(event: Event) -> None:
        # The run itself begins, then its first arm, then the second.
        begun.extend([event] if isinstance(event, RunStarted) else [])
        if len(begun) == 3:
            stop.set()

    names = {"adapter": "tests.engine.worlds:Notebook", "dataset": "tests.engine.worlds:Small"}
    run = memx.run(**names, directory=tmp_path, listener=listen, stop=stop, with_controls=True)
    assert run.state == "interrupted" and run.summary.passed == 9
    assert run.summary.controls is not None and list(run.summary.controls["arms"]) == ["no-context"]
    done = memx.run(directory=tmp_path, resume=run.run_id, with_controls=True)
    assert done.state == "finished" and done.summary.controls is not None
    assert list(done.summary.controls["arms"]) == list(ARMS)
    assert done.summary.controls["arms"]["no-context"] == run.summary.controls["arms"]["no-context"]
    assert run_command(["runs", "ls", "--dir", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert listed.count("(control)") == len(ARMS) and "interrupted" not in listed


def test_an_unknown_arm_is_refused_before_anything_runs(tmp_path: Path) -> None:
    assert run_command(["run", "--dir", str(tmp_path / "m"), "--control", "orakle"]) == 2
    assert not (tmp_path / "m").exists()
    with pytest.raises(UnknownNameError, match="Did you mean oracle"):
        check_arms(["orakle"])


def test_removing_a_run_removes_its_tags(tmp_path: Path) -> None:
    run = memx.run(LosesGamma, Small(1), directory=tmp_path, with_controls=True)
    assert run_command(["runs", "rm", run.run_id, "--yes", "--dir", str(tmp_path)]) == 0
    store = Store(tmp_path)
    assert store.tags(run.run_id) == {}
    store.close()


@pytest.mark.parametrize(
    ("system", "no_context", "oracle", "reads", "tag"),
    [
        ("FAIL", "PASS", "FAIL", True, "guessable"),
        ("PASS", "PASS", "PASS", True, "guessable"),
        ("FAIL", "FAIL", "FAIL", True, "reader-bound"),
        ("FAIL", "FAIL", "PASS", True, "retrieval-bound"),
        ("PASS", "FAIL", "PASS", True, None),
        ("PASS", "FAIL", "FAIL", True, None),
        ("ERROR", "FAIL", "PASS", True, None),
        ("FAIL", "UNJUDGED", "UNJUDGED", True, None),
        ("FAIL", None, "PASS", True, "retrieval-bound"),
        ("FAIL", "PASS", "FAIL", False, None),
        ("FAIL", "FAIL", "PASS", False, "retrieval-bound"),
    ],
)
def test_a_question_has_at_most_one_tag(
    system: str, no_context: str | None, oracle: str, reads: bool, tag: str | None
) -> None:
    guessed = None if no_context is None else {"q": no_context}
    assert tags_of({"q": system}, guessed, {"q": oracle}, reads=reads).get("q") == tag
