"""What the client adds to the server's own latency at concurrency 16.

    python -m benchmarks.llm_overhead [--calls 640] [--latency 0.2 0.5]

The server runs in a process of its own. The floor is calls / 16 * latency; "bare" is the same number of requests by
http.client over kept-alive connections, which shows what the server and the machine take by themselves.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from memx.engine.judges.contract import JudgeItem
from memx.engine.judges.model import ModelJudge
from memx.llm.cache import MemoryCache
from memx.llm.models import Models, ModelSettings
from memx.model import Candidate, CandidateSource, Question

WORKERS = 16


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


def measure(latency_s: float, calls: int) -> None:
    """One row for one latency."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.fake_openai", "--latency", str(latency_s)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        base_url = server.stdout.readline().strip()
        settings = ModelSettings(base_url=base_url, concurrency=WORKERS)
        with Models(settings, cache=MemoryCache(), environ={"MEMX_API_KEY": "sk-benchmark"}) as models:
            judge = ModelJudge(models.llm("m"), dataset_name="locomo")
            judge.preflight()  # the package is imported and a connection open, as in a run
            bare = timed(bare_client(base_url), calls)
            ours = timed(lambda number: judge.judge(item(number)), calls)
            cached = timed(lambda number: judge.judge(item(number)), calls)
    finally:
        server.terminate()
        server.wait()
    floor = calls / WORKERS * latency_s
    print(
        f"{latency_s:>8.2f} s{calls:>7}{floor:>9.2f} s{bare:>9.2f} s{ours:>9.2f} s"
        f"{bare / floor - 1:>12.1%}{ours / floor - 1:>12.1%}{cached / calls * 1e6:>12.0f} us"
    )


def main() -> None:
    """Print one row per latency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=640)
    parser.add_argument("--latency", type=float, nargs="*", default=[0.2, 0.5])
    arguments = parser.parse_args()
    print(f"{'latency':>10}{'calls':>7}{'floor':>11}{'bare':>11}{'memx':>11}{'bare adds':>12}{'memx adds':>12}"
          f"{'from cache':>15}")  # fmt: skip
    for latency_s in arguments.latency:
        measure(latency_s, arguments.calls)


if __name__ == "__main__":
    main()
