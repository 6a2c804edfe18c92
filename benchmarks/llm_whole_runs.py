"""Whole runs over a server that fails calls, one of them killed in the middle and resumed: ``llm_faults --whole``."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import ROOT, print_rows
from benchmarks.llm_overhead import answer_or_judge, write_dataset
from tests.fake_openai import FakeOpenAI, Request

WORKERS = 16
ENVIRON = {"MEMX_API_KEY": "sk-benchmark", "MEMX_MODEL_TIMEOUT": "1"}
#: What requests take that are on their way to the server when the run is killed.
SETTLE_S = 1.0


class FaultyServer(FakeOpenAI):
    """Answers and judges. Any text is an answer, so prose in its place is sent as a body that is no JSON."""

    def __enter__(self) -> FaultyServer:
        super().__enter__()
        return self

    def note(self, body: Request, headers: dict[str, str]) -> str:
        """Record a request and say which fault it gets."""
        fault = super().note(body, headers)
        return "garbled" if fault == "prose" and "response_format" not in body else fault

    def answered(self) -> Counter[str]:
        """How often each prompt got a good reply; a prompt that is asked again with a reminder is the same."""
        asked = zip(list(self.log.requests), list(self.log.faults), strict=True)
        return Counter(_prompt(body) for body, fault in asked if not fault)


def _prompt(body: Request) -> str:
    opening = []
    for message in body["messages"]:
        if message["role"] == "assistant":
            break
        opening.append(message["content"])
    return json.dumps(opening)


def whole_runs(questions: int, fault: Callable[[int], str]) -> None:
    """One row for a run in one go, one for a run that is killed with half of it done and resumed."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "cases.jsonl"
        write_dataset(source, questions)
        with FaultyServer(answer_or_judge, faults=fault) as server:
            started = time.monotonic()
            code = _start(Path(place) / "once", source, server).wait()
            once = _results(Path(place) / "once")
            rows = [_row("memx run", code, questions, once, server, time.monotonic() - started)]
            half = len(server.log.requests) // 2
        with FaultyServer(answer_or_judge, faults=fault) as server:
            started = time.monotonic()
            directory = Path(place) / "killed"
            kept = _kill_at(_start(directory, source, server), half, server, directory)
            answered = len(server.answered())
            code = _start(directory, source, server, resume=_newest_run(directory)).wait()
            killed = _results(directory)
            rows.append(_row("kill -9, --resume", code, questions, killed, server, time.monotonic() - started))
            repeated = _repeated(server)
    print_rows(_HEADER, rows)
    print(f"    at the kill {kept} replies were kept and {answered - kept} were on their way; asked again: {repeated}")
    print(f"    same candidates and verdicts as in one go: {'yes' if killed == once else 'no'}")


def _start(directory: Path, source: Path, server: FakeOpenAI, resume: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "memx", "run", "--dir", str(directory), "--quiet", "--base-url", server.base_url]
    command += ["--resume", resume] if resume else [
        "--dataset", "jsonl", "--source", str(source), "--adapter", "word-overlap",
        "--answer-model", "m", "--judge-model", "m", "--model-concurrency", str(WORKERS),
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | ENVIRON)


def _kill_at(run: subprocess.Popen[bytes], requests: int, server: FakeOpenAI, directory: Path) -> int:
    """Kill the run at so many requests; how many replies the store has kept by then."""
    while len(server.log.requests) < requests:
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.wait()
    time.sleep(SETTLE_S)
    with sqlite3.connect(directory / "memx.db") as store:
        kept: int = store.execute("SELECT COUNT(*) FROM llm_cache").fetchone()[0]
    return kept


def _newest_run(directory: Path) -> str:
    with sqlite3.connect(directory / "memx.db") as store:
        return str(store.execute("SELECT run_id FROM runs").fetchone()[0])


def _results(directory: Path) -> dict[str, tuple[str, str]]:
    """Candidate and verdict of each question."""
    questions = json.loads((directory / "last_run.json").read_text("utf-8"))["questions"]
    return {row["question_id"]: (row["candidate"], row["verdict"]) for row in questions}


def _repeated(server: FaultyServer) -> int:
    return sum(count - 1 for count in server.answered().values())


_HEADER = ("", "questions", "exit", "lost", "wrong", "unjudged", "repeated", "requests", "faults", "s")


def _row(
    name: str, code: int, questions: int, results: dict[str, tuple[str, str]], server: FaultyServer, seconds: float
) -> tuple[object, ...]:
    verdicts = Counter(verdict for _, verdict in results.values())
    wrong = sum(
        (candidate, verdict) not in {("rightly", "PASS"), ("otherwise", "FAIL")}
        for candidate, verdict in results.values()
        if verdict in ("PASS", "FAIL")
    )
    lost = questions - len(results) + verdicts["ERROR"]
    requests = len(server.log.requests)
    faults = sum(bool(fault) for fault in server.log.faults) / requests
    return (
        name, questions, code, lost, wrong, verdicts["UNJUDGED"], _repeated(server), requests, f"{faults:.0%}",
        f"{seconds:.1f}",
    )  # fmt: skip
