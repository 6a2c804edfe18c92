"""Threads against worker processes: seconds from start to end of a whole run, and whether the results are the same.

    python -m benchmarks.executors [--runs 3]

``plain`` is a memory system in pure Python that compares every turn with the question letter by letter; ``local`` is
the built-in memory on the bundled demo, with its caches warm. Figures of a machine with other work say nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import measured
from memx.adapters.contract import Dataset, DatasetInfo, MemoryAdapter
from memx.model import Case, Fact, QueryResult, Question, Retrieved, Session, Snapshot, Turn

_CASES, _TURNS, _QUESTIONS = 8, 300, 16


class Made(Dataset):
    """Cases of 300 turns and 16 questions."""

    name = "made"

    @classmethod
    def load(cls, source: Path | None = None, **options: Any) -> Made:
        return cls()

    @property
    def info(self) -> DatasetInfo:
        return DatasetInfo("made", sha256="ef" * 32)

    def cases(self) -> Iterator[Case]:
        for number in range(_CASES):
            case_id = f"case-{number}"
            said = [
                f"On day {n} of case {number} I put {n * 7 % 97} books on shelf {n * 13 % 89}." for n in range(_TURNS)
            ]
            start = datetime(2024, 1, 1)
            turns = tuple(Turn(f"t{n}", "Ana", "user", text, start) for n, text in enumerate(said))
            questions = tuple(
                Question(f"{case_id}:q{n}", case_id, f"On day {n} of case {number}, how many books?", str(n * 7 % 97),
                         "single-hop", (f"t{n}",), ("s",))
                for n in range(_QUESTIONS)
            )  # fmt: skip
            yield Case(case_id, case_id, (Session("s", case_id, turns, start),), questions)


class Plain(MemoryAdapter):
    """Ranks turns by the longest common subsequence with the question, in plain Python."""

    name = "plain"

    def __init__(self, **options: Any) -> None:
        self._turns: dict[str, list[Turn]] = {}

    def ingest_session(self, session: Session) -> None:
        self._turns.setdefault(session.entity_id, []).extend(session.turns)

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        scored = [(_common(query, turn.content), turn) for turn in self._turns[entity_id]]
        scored.sort(key=lambda pair: -pair[0])
        return QueryResult(tuple(Retrieved(t.turn_id, t.content, float(n)) for n, t in scored[:top_k]))

    def export_state(self, entity_id: str) -> Snapshot:
        turns = self._turns.get(entity_id, [])
        return Snapshot(entity_id, tuple(Fact(t.turn_id, t.content, source_turn_ids=(t.turn_id,)) for t in turns))


def _common(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for n, y in enumerate(b, start=1):
            before, row[n] = row[n], before + 1 if x == y else max(row[n], row[n - 1])
    return row[-1]


def _questions(directory: Path) -> list[dict[str, Any]]:
    record = json.loads((directory / "last_run.json").read_text())
    return [{name: v for name, v in one.items() if name != "timings_ms"} for one in record["questions"]]


def main() -> None:
    """Print one line per system and executor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    cores = os.cpu_count() or 1
    systems = {
        "plain": ["--dataset", "benchmarks.executors:Made", "--adapter", "benchmarks.executors:Plain"],
        "local": [],
    }
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f}, median of {runs} runs")
    with tempfile.TemporaryDirectory() as folder:
        for name, options in systems.items():
            base = [sys.executable, "-m", "memx", "run", "--quiet", "--concurrency", str(cores), *options]
            # Once for the caches, which both executors then read.
            measured([*base, "--dir", f"{folder}/{name}"])
            found, seconds = {}, {}
            for executor in ("threads", "processes"):
                command = [*base, "--dir", f"{folder}/{name}", "--executor", executor]
                figures = [measured(command) for _ in range(runs)]
                if any(one.code for one in figures):
                    sys.exit(figures[-1].output)
                found[executor] = _questions(Path(folder, name))
                seconds[executor] = median(one.wall_s for one in figures)
                cpu = median(one.cpu_s for one in figures)
                print(f"{name:<8}{executor:<11}{seconds[executor]:7.2f} s   {cpu:7.2f} s CPU")
            same = "same results" if found["threads"] == found["processes"] else "RESULTS DIFFER"
            print(f"{name:<8}threads / processes {seconds['threads'] / seconds['processes']:.2f}   {same}")


if __name__ == "__main__":
    main()
