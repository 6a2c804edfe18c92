"""Runs in the background, on real processes: started, watched, ended, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memx
from memx.cli import watching
from memx.cli.main import run_command
from memx.engine.background import kill_run
from memx.engine.store.processes import process_started
from memx.engine.store.reader import Store
from tests.engine.test_interrupt import without_times
from tests.stores import write_run

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[..., tuple[int, str, str]]
SMALL = ["--dataset", "tests.engine.worlds:Small", "--concurrency", "1", "--top-k", "1"]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the directory in this process; gives exit code, stdout, stderr."""
    monkeypatch.setenv("MEMX_DIR", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def detached(directory: Path, *arguments: str, gate: int = 0) -> subprocess.CompletedProcess[str]:
    """``memx run --detach`` as a shell would start it; with a gate, its run has then reached that question."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    if gate:
        os.mkfifo(directory / "pipe")
        environ |= {"MEMX_TEST_GATE": str(gate), "MEMX_TEST_PIPE": str(directory / "pipe")}
    command = [sys.executable, "-m", "memx", "run", "--detach", *SMALL, "--dir", str(directory), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=ROOT, check=False)
    if gate:
        assert (directory / "pipe").read_text() == "reached"
    return done


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[str]:
    """Id of a run in the background that has finished four questions and hangs at the fifth."""
    done = detached(tmp_path, "--adapter", "tests.engine.worlds:Gated", gate=5)
    run = Store(tmp_path).run()
    assert (done.returncode, done.stdout.strip()) == (0, run.run_id), done.stderr
    assert f"memx runs watch {run.run_id}" in done.stderr
    yield run.run_id
    run = Store(tmp_path).run(run.run_id)
    if run.state == "running" and run.pid is not None:
        os.kill(run.pid, signal.SIGKILL)


def test_a_killed_run_is_interrupted_and_resumes_to_the_same_result(call: Call, tmp_path: Path, gated: str) -> None:
    run = Store(tmp_path).run()
    assert (run.state, run.done, run.pid == os.getpid()) == ("running", 4, False)
    code, _, err = call("runs", "kill", gated)
    assert code == 0 and f"run {gated} ended; 4 finished questions are saved" in err
    record = json.loads((tmp_path / "last_run.json").read_text())
    assert (record["state"], len(record["questions"])) == ("interrupted", 4)
    assert f"memx run --resume {gated}" in (tmp_path / "logs" / f"{gated}.log").read_text()
    memx.run(directory=tmp_path, resume=gated)
    whole = tmp_path / "whole"
    memx.run("tests.engine.worlds:Gated", "tests.engine.worlds:Small", directory=whole, top_k=1)
    resumed, undisturbed = (json.loads((where / "last_run.json").read_text()) for where in (tmp_path, whole))
    assert without_times(resumed) == without_times(undisturbed)
    code, _, err = call("runs", "kill", gated)
    assert code == 2 and "not running, it is finished" in err


def test_the_end_of_watching_leaves_the_run(
    call: Call, tmp_path: Path, gated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", interrupt)
    code, out, err = call("runs", "watch", gated)
    assert (code, out) == (130, "") and f"run {gated} goes on" in err
    assert Store(tmp_path).run().state == "running"


def test_watching_ends_when_the_run_is_killed_hard(
    call: Call, tmp_path: Path, gated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Store(tmp_path).run()
    assert run.pid is not None
    looks: list[float] = []

    def kill(seconds: float) -> None:
        looks.append(seconds)
        os.kill(run.pid or 0, signal.SIGKILL)

    monkeypatch.setattr(watching.time, "sleep", kill)
    code, out, _ = call("runs", "watch", gated)
    assert code == 3 and looks and "INTERRUPTED" in out and f"memx run --resume {gated}" in out


def test_watching_a_run_to_its_end_prints_its_summary(call: Call, tmp_path: Path) -> None:
    done = detached(tmp_path, "--adapter", "tests.engine.worlds:Forgetful")
    code, out, _ = call("runs", "watch", done.stdout.strip())
    assert code == 0 and "accuracy  66.7 %  (6 of 9 judged)" in out
    assert Store(tmp_path).run().state == "finished"
    assert call("runs", "watch")[0] == 0


def test_what_cannot_begin_says_so_as_without_detach(tmp_path: Path) -> None:
    done = detached(tmp_path, "--adapter", "locl")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("memx: no adapter named 'locl'\n  Did you mean local")
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_process_that_does_not_end_is_killed_and_its_run_marked(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", deaf], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    write_run(tmp_path, "r1", questions=6, outcomes=("PASS", "absent"), state="running")
    with sqlite3.connect(tmp_path / "memx.db") as db:
        db.execute("UPDATE runs SET pid = ?, pid_started = ?", [process.pid, process_started(process.pid)])
    assert kill_run(tmp_path, "r1", patience_s=0.1) is False
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    with sqlite3.connect(tmp_path / "memx.db") as db:
        assert db.execute("SELECT state FROM runs").fetchone() == ("interrupted",)
    assert json.loads((tmp_path / "last_run.json").read_text())["summary"]["passed"] == 3
