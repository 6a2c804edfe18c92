"""A model judge over a server that answers 40 % of calls with faults: nothing lost, nothing wrong, nothing paid twice.

    python -m benchmarks.llm_faults [--questions 500] [--rate 0.4] [--seed 0] [--whole]

Faults are 429 with Retry-After, 500, a hanging server, a body cut off, prose instead of JSON and an empty reply. Then
the same again from the cache, with credit that runs out in the middle, and with an interrupt. With ``--whole`` instead:
``memx run`` with an answer model and a judge model, in one go, and killed in the middle and resumed.
"""

from __future__ import annotations

import argparse
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.llm_whole_runs import whole_runs
from memx.engine.judges.contract import JudgeItem
from memx.engine.judges.model import ModelJudge
from memx.errors import Interrupted, MemxError
from memx.llm.cache import MemoryCache
from memx.llm.models import Models, ModelSettings
from memx.model import Candidate, CandidateSource, Outcome, Question
from tests.fake_openai import FAULTS, FakeOpenAI, judge_by_marker, random_faults

WORKERS = 16
TIMEOUT_S = 1.0


def items(count: int, seed: int) -> list[JudgeItem]:
    """Questions whose candidate is right where it holds the word ``rightly``, which the server's judge looks for."""
    dice = random.Random(seed)
    return [
        JudgeItem(
            Question(f"q{number}", "case", f"What is number {number}?", f"gold {number}", "single-hop"),
            Candidate(f"{'rightly' if dice.random() < 0.5 else 'otherwise'} {number}", CandidateSource.MODEL),
        )
        for number in range(count)
    ]


def judge_all(
    asked: Sequence[JudgeItem], server: FakeOpenAI, cache: MemoryCache, stop: threading.Event
) -> list[Outcome | MemxError]:
    """What came of each question: its outcome, or the error that left it unjudged."""
    settings = ModelSettings(base_url=server.base_url, concurrency=WORKERS, timeout_s=TIMEOUT_S)
    with Models(settings, cache=cache, stop=stop, environ={"MEMX_API_KEY": "sk-benchmark"}) as models:
        judge = ModelJudge(models.llm("fake-model"), dataset_name="locomo")

        def one(item: JudgeItem) -> Outcome | MemxError:
            try:
                return judge.judge(item).outcome
            except MemxError as error:
                return error

        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(one, asked))


def report(
    name: str, asked: Sequence[JudgeItem], results: Sequence[Outcome | MemxError], server: FakeOpenAI, seconds: float
) -> None:
    """One row: what was judged, lost and wrong, and what the server was asked."""
    right = [Outcome.PASS if "rightly" in item.candidate.text else Outcome.FAIL for item in asked]
    lost = sum(not isinstance(result, Outcome) for result in results)
    wrong = sum(isinstance(got, Outcome) and got is not want for got, want in zip(results, right, strict=True))
    good: Counter[str] = Counter()
    for body, fault in zip(server.log.requests, server.log.faults, strict=True):
        if not fault:
            found = re.search(r"<question>(.*?)</question>", str(body["messages"]))
            good[found[1] if found else ""] += 1
    repeated = sum(count - 1 for count in good.values())
    faulty = sum(bool(fault) for fault in server.log.faults)
    requests = len(server.log.requests)
    print(
        f"{name:<22}{len(asked):>6}{lost:>10}{wrong:>7}{repeated:>10}{requests:>10}"
        f"{faulty / requests if requests else 0:>9.0%}{seconds:>8.1f}"
    )


def interrupt_when(server: FakeOpenAI, requests: int, stop: threading.Event, stopped_at: list[float]) -> None:
    """Set ``stop`` once the server saw so many requests."""
    while len(server.log.requests) < requests:
        time.sleep(0.005)
    stopped_at.append(time.monotonic())
    stop.set()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", action="store_true", help="whole runs, killed and resumed")
    arguments = parser.parse_args()
    asked = items(arguments.questions, arguments.seed)
    kinds = ["429:0.1" if kind == "429" else kind for kind in FAULTS]
    fault = random_faults(arguments.rate, arguments.seed, kinds)
    if arguments.whole:
        whole_runs(arguments.questions, fault)
        return
    half = arguments.questions // 2
    print(f"{'':<22}{'asked':>6}{'unjudged':>10}{'wrong':>7}{'repeated':>10}{'requests':>10}{'faults':>9}{'s':>8}")

    def run(name: str, server: FakeOpenAI, cache: MemoryCache, stop: threading.Event) -> list[Outcome | MemxError]:
        started = time.monotonic()
        results = judge_all(asked, server, cache, stop)
        report(name, asked, results, server, time.monotonic() - started)
        return results

    def server(faults: Callable[[int], str], latency_s: float = 0.0) -> FakeOpenAI:
        return FakeOpenAI(judge_by_marker, faults=faults, latency_s=latency_s)

    cache = MemoryCache()
    with server(fault) as faulty:
        run(f"faults, {arguments.rate:.0%}", faulty, cache, threading.Event())
        seen = len(faulty.log.requests)
        started = time.monotonic()
        results = judge_all(asked, faulty, cache, threading.Event())
        again = len(faulty.log.requests) - seen
        lost = sum(not isinstance(result, Outcome) for result in results)
        print(f"{'again, from the cache':<22}{len(asked):>6}{lost:>10}{'':>17}{again:>10}{'':>9}"
              f"{time.monotonic() - started:>8.1f}")  # fmt: skip
    with server(lambda number: "402" if number >= half else "") as broke:
        results = run(f"402 from call {half}", broke, MemoryCache(), threading.Event())
        print(f"    asked after the first 402: {len(broke.log.requests) - half - 1} (those under way)")
        print(f"    {next(result for result in results if isinstance(result, MemxError))}")
    stop, stopped_at = threading.Event(), list[float]()
    with server(lambda _: "429:30" if _ % 40 == 39 else "", latency_s=0.02) as slow:
        threading.Thread(target=interrupt_when, args=(slow, 40, stop, stopped_at), daemon=True).start()
        results = run("interrupted, waiting", slow, MemoryCache(), stop)
        refused = sum(isinstance(result, Interrupted) for result in results)
        print(f"    {refused} refused; all threads back {time.monotonic() - stopped_at[0]:.2f} s after the interrupt")


if __name__ == "__main__":
    main()
