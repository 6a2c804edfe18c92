"""What memx adds to the server's own latency at concurrency 16: the client alone, and whole runs.

    python -m benchmarks.llm_overhead [--calls 640] [--latency 0.2 0.5] [--questions 640] [--adapter word-overlap local]

The server runs in a process of its own. The floor is calls / 16 * latency. First table: a judge by itself; "bare" is
the same number of requests by http.client over kept-alive connections, which shows what server and machine take by
themselves. Second table: ``memx run`` with an answer model and a judge model, as a whole process, from its start to
the end of its summary: imports, reading, ingest, queries, answers, verdicts, diagnosis of half of the questions,
storing. Its floor holds the one call of the preflight whole, since nothing is asked beside it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.figures import measured
from memx.engine.judges.contract import JudgeItem
from memx.engine.judges.model import ModelJudge
from memx.llm.cache import MemoryCache
from memx.llm.models import Models, ModelSettings
from memx.model import Candidate, CandidateSource, Question
from tests.fake_openai import FakeOpenAI, Request, judge_by_marker

WORKERS = 16
QUESTIONS_A_CASE = 16


def answer_or_judge(body: Request) -> str:
    """A verdict where a judge asks; to anyone else an answer, right for every other question."""
    said = str(body["messages"])
    if "<candidate>" in said:
        return judge_by_marker(body)
    number = re.search(r"number (\d+)", said)
    return "rightly" if number is not None and int(number[1]) % 2 else "otherwise"


@contextmanager
def served(latency_s: float) -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.llm_overhead", "--serve", str(latency_s)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


# ----------------------------------------------------------------------------------------------------- the client alone


def timed(work: Callable[[int], object], calls: int) -> float:
    """Seconds for all calls by 16 threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        started = time.perf_counter()
        list(pool.map(work, range(calls)))
        return time.perf_counter() - started


def bare_client(base_url: str) -> Callable[[int], object]:
    """One request by http.client, on a connection per thread."""
    parts = urlsplit(base_url)
    local = threading.local()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 2000}]})

    def call(_: int) -> bytes:
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        local.connection.request("POST", f"{parts.path}/chat/completions", body, {"Content-Type": "application/json"})
        reply: bytes = local.connection.getresponse().read()
        return reply

    return call


def item(number: int) -> JudgeItem:
    """A question to judge, different from all others."""
    question = Question(f"q{number}", "case", f"What is number {number}?", f"gold {number}", "single-hop")
    return JudgeItem(question, Candidate(f"rightly {number}", CandidateSource.MODEL))


def measure_client(latency_s: float, calls: int) -> None:
    """One row for one latency."""
    with served(latency_s) as base_url:
        settings = ModelSettings(base_url=base_url, concurrency=WORKERS)
        with Models(settings, cache=MemoryCache(), environ={"MEMX_API_KEY": "sk-benchmark"}) as models:
            judge = ModelJudge(models.llm("m"), dataset_name="locomo")
            judge.preflight()  # the package is imported and a connection open, as in a run
            bare = timed(bare_client(base_url), calls)
            ours = timed(lambda number: judge.judge(item(number)), calls)
            cached = timed(lambda number: judge.judge(item(number)), calls)
    floor = calls / WORKERS * latency_s
    print(
        f"{latency_s:>8.2f} s{calls:>7}{floor:>9.2f} s{bare:>9.2f} s{ours:>9.2f} s"
        f"{bare / floor - 1:>12.1%}{ours / floor - 1:>12.1%}{cached / calls * 1e6:>12.0f} us"
    )


# ----------------------------------------------------------------------------------------------------------- whole runs


def write_dataset(path: Path, questions: int) -> None:
    """Cases of 16 questions, 40 turns in four sessions, each question with one evidence turn."""
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, questions, QUESTIONS_A_CASE):
            numbers = range(first, min(first + QUESTIONS_A_CASE, questions))
            turns = [
                {
                    "turn_id": f"t{first}-{n}",
                    "speaker": "Iva" if n % 2 else "Boris",
                    "content": f"As for number {first + n}, I keep the {WORDS[n % len(WORDS)]} in drawer {first + n}.",
                }
                for n in range(40)
            ]
            sessions = [
                {"session_id": f"s{n}", "at": f"2024-03-{10 + n}T09:00:00", "turns": turns[n * 10 : n * 10 + 10]}
                for n in range(4)
            ]
            asked = [
                {
                    "question_id": f"q{n}",
                    "text": f"What is kept under number {n}?",
                    "gold": f"the {WORDS[(n - first) % len(WORDS)]}",
                    "evidence": [f"t{first}-{n - first}"],
                }
                for n in numbers
            ]
            case = {"case_id": f"case-{first}", "sessions": sessions, "questions": asked}
            file.write(json.dumps(case) + "\n")


WORDS = ("violin", "kettle", "ledger", "lantern", "compass", "quilt", "atlas", "thimble", "saddle", "teapot")


def measure_run(latency_s: float, questions: int, adapter: str) -> None:
    """One row: a whole run with an answer model and a judge model."""
    with served(latency_s) as base_url, tempfile.TemporaryDirectory() as place:
        source = Path(place) / "cases.jsonl"
        write_dataset(source, questions)
        command = [
            sys.executable, "-m", "memx", "run", "--dataset", "jsonl", "--source", str(source), "--adapter", adapter,
            "--answer-model", "m", "--judge-model", "m", "--model-concurrency", str(WORKERS), "--base-url", base_url,
            "--dir", place,
        ]  # fmt: skip
        figures = measured(command, {"MEMX_API_KEY": "sk-benchmark"})
        if figures.code:
            raise SystemExit(f"exit {figures.code}: {figures.output}")
        calls = json.loads((Path(place) / "last_run.json").read_text("utf-8"))["summary"]["llm"]["calls"]
    floor = (1 + (calls - 1) / WORKERS) * latency_s
    print(
        f"{adapter:<14}{latency_s:>8.2f} s{questions:>10}{calls:>7}{floor:>9.2f} s{figures.wall_s:>9.2f} s"
        f"{figures.wall_s / floor - 1:>9.1%}{figures.cpu_s:>9.2f} s{figures.cpu_s / calls * 1e3:>12.1f} ms"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=640)
    parser.add_argument("--latency", type=float, nargs="*", default=[0.2, 0.5])
    parser.add_argument("--questions", type=int, default=640)
    parser.add_argument("--adapter", nargs="*", default=["word-overlap", "local"])
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        fake = FakeOpenAI(answer_or_judge, latency_s=arguments.serve)
        print(fake.base_url, flush=True)
        fake.serve_forever()
    if arguments.calls:
        print(f"{'latency':>10}{'calls':>7}{'floor':>11}{'bare':>11}{'memx':>11}{'bare adds':>12}{'memx adds':>12}"
              f"{'from cache':>15}")  # fmt: skip
        for latency_s in arguments.latency:
            measure_client(latency_s, arguments.calls)
    if arguments.questions:
        print(f"\n{'memx run':<14}{'latency':>10}{'questions':>10}{'calls':>7}{'floor':>11}{'wall':>11}{'adds':>9}"
              f"{'CPU':>11}{'CPU a call':>15}")  # fmt: skip
        for adapter in arguments.adapter:
            for latency_s in arguments.latency:
                measure_run(latency_s, arguments.questions, adapter)


if __name__ == "__main__":
    main()
