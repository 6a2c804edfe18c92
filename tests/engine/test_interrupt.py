"""Ctrl-C, kill -9 and resume, on real processes. A named pipe tells when the run has reached a question."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memx
from memx.engine.store.reader import Store
from memx.errors import InputError, StoreError
from tests.engine import worlds
from tests.engine.worlds import Small

ROOT = Path(__file__).resolve().parents[2]


def started(directory: Path, gate: int) -> subprocess.Popen[str]:
    """A run that has just reached question number ``gate`` and hangs there."""
    pipe = directory / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "memx", "run", "--adapter", "tests.engine.worlds:Gated", "--dataset"]
    command += ["tests.engine.worlds:Small", "--concurrency", "1", "--dir", str(directory), "--top-k", "1"]
    environ = os.environ | {"MEMX_TEST_GATE": str(gate), "MEMX_TEST_PIPE": str(pipe), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ, cwd=ROOT
    )
    assert pipe.read_text() == "reached"
    return process


def without_times(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in question.items() if k != "timings_ms"} for question in record["questions"]]


@pytest.fixture
def whole(tmp_path: Path) -> list[dict[str, Any]]:
    """What an undisturbed run of the same thing leaves."""
    directory = tmp_path / "whole"
    memx.run("tests.engine.worlds:Gated", "tests.engine.worlds:Small", directory=directory, top_k=1)
    return without_times(json.loads((directory / "last_run.json").read_text()))


def test_kill_9_loses_no_finished_question_and_resume_gives_the_same_result(
    tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    process = started(tmp_path, gate=5)
    process.kill()
    process.wait()
    store = Store(tmp_path)
    run = store.run()
    assert (run.state, run.done) == ("interrupted", 4)
    resumed = memx.run(directory=tmp_path, resume=run.run_id)
    assert (resumed.state, resumed.summary.questions) == ("finished", 9)
    assert without_times(json.loads((tmp_path / "last_run.json").read_text())) == whole
    cases = {case.case_id: case for case in store.cases(run.run_id)}
    assert [cases[f"case-{n}"].attempt for n in range(3)] == [1, 2, 1]
    assert cases["case-1"].entity_id.endswith("case-1-2")


def test_ctrl_c_saves_writes_last_run_and_prints_the_line_to_resume(
    tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    process = started(tmp_path, gate=2)
    process.send_signal(signal.SIGINT)
    _, narration = process.communicate(timeout=30)
    run_id = Store(tmp_path).run().run_id
    assert process.returncode == 130
    assert f"memx run --resume {run_id}" in narration
    assert "Traceback" not in narration
    record = json.loads((tmp_path / "last_run.json").read_text())
    assert (record["state"], len(record["questions"])) == ("interrupted", 1)
    memx.run(directory=tmp_path, resume=run_id)
    assert without_times(json.loads((tmp_path / "last_run.json").read_text())) == whole


def test_ctrl_c_closes_the_memory_system(tmp_path: Path) -> None:
    run = memx.run("tests.engine.worlds:Interrupts", "tests.engine.worlds:Small", directory=tmp_path, concurrency=1)
    assert run.state == "interrupted"
    assert worlds.Interrupts.closed == worlds.Interrupts.made > 0


def test_errors_are_asked_again_on_resume_and_verdicts_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = memx.run("tests.engine.worlds:QueryFails", "tests.engine.worlds:Small", directory=tmp_path)
    assert broken.summary.errors == 3
    monkeypatch.setattr(worlds.QueryFails, "query", worlds.Notebook.query)
    worlds.Notebook.seen.clear()
    mended = memx.run(directory=tmp_path, resume=broken.run_id)
    assert (mended.summary.errors, mended.summary.questions) == (0, 9)
    assert sum(kind == "query" for kind, _ in worlds.Notebook.seen) == 3


def test_a_run_that_is_still_going_is_neither_resumed_nor_removed(tmp_path: Path) -> None:
    process = started(tmp_path, gate=1)
    try:
        run_id = Store(tmp_path).run().run_id
        with pytest.raises(StoreError, match="still going"):
            memx.run(directory=tmp_path, resume=run_id)
    finally:
        process.kill()
        process.wait()


def test_a_changed_dataset_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = memx.run("tests.engine.worlds:QueryFails", "tests.engine.worlds:Small", directory=tmp_path)
    other = worlds.DatasetInfo("small", sha256="cd" * 32)
    monkeypatch.setattr(Small, "info", other)
    with pytest.raises(InputError, match="not the one that run"):
        memx.run(directory=tmp_path, resume=run.run_id)


def test_two_runs_at_once_in_one_directory_keep_apart(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memx", "run", "--dataset", "tests.engine.worlds:Small", "--quiet"]
    command += ["--adapter", "tests.engine.worlds:Notebook", "--dir", str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    runs = Store(tmp_path).runs()
    assert len({run.run_id for run in runs}) == 2
    assert [run.summary["questions"] for run in runs] == [9, 9]
