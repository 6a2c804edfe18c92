"""Cases in processes and on a Dask cluster: the same results as in threads, and nothing left behind or lost."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import memx
from memx import errors
from memx.engine.executors.wire import packed, unpacked
from memx.engine.store.reader import Store
from memx.errors import UsageError
from memx.model import Session
from tests.engine.test_interrupt import without_times
from tests.engine.worlds import Gated, Notebook
from tests.fake_openai import FakeOpenAI, judge_by_marker

ROOT = Path(__file__).resolve().parents[2]
HAS_DASK = importlib.util.find_spec("distributed") is not None
EXECUTORS = [
    "processes",
    pytest.param("dask", marks=pytest.mark.skipif(not HAS_DASK, reason="the extra cluster is not installed")),
]


class DiesOnCase1(Notebook):
    """Its process is killed while it stores the second case, as by a system short of memory."""

    name = "dies-on-case-1"

    def ingest_session(self, session: Session) -> None:
        if "case-1" in session.entity_id and not os.environ.get("MEMX_TEST_LIVE"):
            os.kill(os.getpid(), signal.SIGKILL)
        super().ingest_session(session)


class Holds(Gated):
    """Keeps the named pipe ``MEMX_TEST_HELD`` open for writing as long as its process lives."""

    name = "holds"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.held = os.open(os.environ["MEMX_TEST_HELD"], os.O_RDWR) if "MEMX_TEST_HELD" in os.environ else None


def run(directory: Path, executor: str, adapter: str = "tests.engine.worlds:Forgetful", **settings: Any) -> memx.Run:
    return memx.run(adapter, "tests.engine.worlds:Small", directory=directory, executor=executor, top_k=1, **settings)


def stored(directory: Path) -> dict[str, Any]:
    """All that a run left but its times and the names of its namespaces."""
    store = Store(directory)
    row = store.run()
    questions = without_times(json.loads((directory / "last_run.json").read_text()))
    cases = [
        (case.case_id, case.state, case.facts, case.diff, case.findings, case.error and case.error.step,
         store.snapshot_steps(row.run_id, case.case_id), store.snapshot(row.run_id, case.case_id).facts)
        for case in store.cases(row.run_id)
    ]  # fmt: skip
    summary = {name: value for name, value in row.summary.items() if name != "left"}
    return {"questions": questions, "cases": cases, "summary": summary}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_results_are_those_of_threads(tmp_path: Path, executor: str) -> None:
    for name in ("threads", executor):
        run(tmp_path / name, name, snapshots="session")
    assert stored(tmp_path / "threads") == stored(tmp_path / executor)
    assert len(stored(tmp_path / executor)["questions"]) == 9


@pytest.mark.parametrize("world", ["BreaksOnCase1", "QueryFails", "ReturnsNonsense", "NotReady"])
def test_what_breaks_in_a_worker_is_what_breaks_in_a_thread(tmp_path: Path, world: str) -> None:
    for name in ("threads", "processes"):
        run(tmp_path / name, name, f"tests.engine.worlds:{world}")
    assert stored(tmp_path / "threads") == stored(tmp_path / "processes")


def test_a_worker_that_is_killed_costs_its_case_and_resume_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = run(tmp_path, "processes", "tests.engine.test_executors:DiesOnCase1", concurrency=1)
    assert (lost.summary.errors, lost.summary.passed) == (3, 6)
    assert {t.error.step for t in lost.traces() if t.error} == {"worker"}
    monkeypatch.setenv("MEMX_TEST_LIVE", "1")
    mended = memx.run(directory=tmp_path, resume=lost.run_id)
    assert (mended.summary.errors, mended.summary.passed) == (0, 9)


def test_a_worker_that_cannot_begin_ends_the_run_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of the memory system is there for the run, and gone when the worker looks for it."""
    module = tmp_path / "vanishing_system.py"
    module.write_text("from tests.engine.worlds import Notebook\n\n\nclass Here(Notebook):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("vanishing_system")
    module.unlink()
    with pytest.raises(UsageError, match="vanishing_system"):
        run(tmp_path / "runs", "processes", "vanishing_system:Here")
    assert Store(tmp_path / "runs").run().state == "failed"


def started(directory: Path, executor: str) -> subprocess.Popen[str]:
    """A run in its own process whose worker has just reached the fifth question, and hangs there."""
    for name in ("pipe", "held"):
        os.mkfifo(directory / name)
    environ = os.environ | {
        "MEMX_TEST_GATE": "5", "MEMX_TEST_PIPE": str(directory / "pipe"), "MEMX_TEST_HELD": str(directory / "held"),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    command = [sys.executable, "-m", "memx", "run", "--adapter", "tests.engine.test_executors:Holds", "--dataset"]
    command += ["tests.engine.worlds:Small", "--concurrency", "1", "--top-k", "1", "--dir", str(directory)]
    process = subprocess.Popen(
        [*command, "--executor", executor], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
        cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    assert (directory / "pipe").read_text() == "reached"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_a_run_ends_its_workers_and_loses_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path, "processes")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(held, True)
    # As a terminal does it: Ctrl-C reaches the whole group. A hard kill hits the run alone.
    (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
    _, narration = process.communicate(timeout=60)
    # The pipe ends when the last process that holds it, the worker, is gone.
    assert os.read(held, 1) == b""
    os.close(held)
    found = Store(tmp_path).run()
    assert (found.state, found.done) == ("interrupted", 4)
    if number is signal.SIGINT:
        assert process.returncode == 130 and f"memx run --resume {found.run_id}" in narration
    memx.run(directory=tmp_path, resume=found.run_id)
    run(tmp_path / "whole", "threads", "tests.engine.test_executors:Holds")
    whole, resumed = (json.loads((where / "last_run.json").read_text()) for where in (tmp_path / "whole", tmp_path))
    assert without_times(whole) == without_times(resumed)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_models_are_asked_by_the_run_alone_behind_one_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-this-test")
    # Of 18 calls wanted and two that try the models: enough for some verdicts, in whatever order they are asked.
    settings = {"judge_model": "judge-x", "answer_model": "answer-x", "max_calls": 14}
    with FakeOpenAI(judge_by_marker) as server:
        found = run(tmp_path, executor, base_url=server.base_url, **settings)
    assert found.summary.llm["calls"] == 14
    assert found.summary.unjudged > 0 and found.summary.passed + found.summary.failed > 0
    assert {t.error.kind for t in found.traces() if t.error} == {"BudgetReached"}


def _letters(texts: Sequence[str]) -> list[list[float]]:
    return [[text.lower().count(letter) + 0.5 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def test_an_embedding_model_of_the_memory_is_asked_by_the_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-this-test")
    options = {"embedder": "openai:embed-x", "mode": "dense"}
    with FakeOpenAI(judge_by_marker, embed=_letters) as server:
        for name in ("threads", "processes"):
            run(tmp_path / name, name, "local", base_url=server.base_url, adapter_options=options)
    threads, processes = stored(tmp_path / "threads"), stored(tmp_path / "processes")
    assert threads["questions"] == processes["questions"]
    assert threads["summary"]["llm"]["calls"] == processes["summary"]["llm"]["calls"] > 0


def test_a_class_that_a_worker_cannot_find_is_refused(tmp_path: Path) -> None:
    class Local(Notebook):
        """Nowhere but here."""

    with pytest.raises(UsageError, match="cannot find the class"):
        memx.run(Local, "tests.engine.worlds:Small", directory=tmp_path, executor="processes")
    assert not (tmp_path / "last_run.json").exists()


@pytest.mark.skipif(HAS_DASK, reason="the extra cluster is installed")
def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pip install 'memx\[cluster\]'"):
        run(tmp_path, "dask")


@pytest.mark.parametrize("name", ["fork", "processes:4", "threads:2"])
def test_an_unknown_executor_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--executor is threads, processes, dask"):
        run(tmp_path, name)


def test_every_error_crosses_a_connection_whole() -> None:
    made = {
        "UnknownNameError": errors.UnknownNameError("adapter", "x", ["y"], "hint"),
        "InputError": errors.InputError("bad", "hint", path="p", place="line 2"),
        "UnreadableReply": errors.UnreadableReply("bad", "hint", reply="{"),
    }
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.MemxError):
            error = made.get(name) or kind("message", "hint")
            back = unpacked(packed(error))
            assert type(back) is kind and vars(back) == vars(error) and str(back) == str(error)
    assert str(unpacked(packed(KeyError("x")))) == "'x'"
    odd = ValueError("cannot travel")
    odd.lock = open  # type: ignore[attr-defined]
    odd.more = lambda: None  # type: ignore[attr-defined]
    assert "cannot travel" in str(unpacked(packed(odd)))
    assert pickle.loads(packed(odd))
