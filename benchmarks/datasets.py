"""Loaders: time of LoCoMo and BEAM, and how fast and in how much memory a LongMemEval-shaped file streams.

    python -m benchmarks.datasets [--questions 500] [--sessions 48] [--file FILE]

The file is written by ``tools/make_longmemeval_shaped.py`` of the shared folder (``MEMX_SHARED`` or ``../shared``);
``--sessions 500`` gives the size of the m part. Each figure is the best of several fresh processes, since other load on
the machine only ever adds; CPU time is given beside wall time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import shared_data
from benchmarks.figures import ROOT, print_rows

_PROBE = """
import collections, json, resource, sys, time
from pathlib import Path
from memx.adapters.datasets.opening import open_dataset
name, path = sys.argv[1:]
import memx.adapters.datasets.beam, memx.adapters.datasets.locomo, memx.adapters.datasets.longmemeval
wall, cpu = time.perf_counter(), time.process_time()
dataset = open_dataset(name, Path(path))
first, cases, turns, categories = None, 0, 0, collections.Counter()
for case in dataset.cases():
    first = first or time.perf_counter() - wall
    cases += 1
    turns += sum(len(session.turns) for session in case.sessions)
    categories.update(question.category for question in case.questions)
print(json.dumps({
    "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "first": first,
    "cases": cases, "turns": turns, "categories": categories,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def probe(name: str, path: Path, times: int) -> dict[str, Any]:
    """The figures of the fastest of ``times`` processes that read the dataset whole."""
    runs = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, name, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
        )
        runs.append(json.loads(done.stdout))
    best: dict[str, Any] = min(runs, key=lambda run: run["wall"])
    return {**best, "cpu": min(run["cpu"] for run in runs)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--sessions", type=int, default=48)
    parser.add_argument("--file", type=Path, help="a LongMemEval file to read instead of one made now")
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args(arguments)
    data = shared_data() / "data"
    rows: list[list[object]] = []

    def row(label: str, found: dict[str, Any], size: float) -> None:
        rows.append(
            [
                label,
                f"{size:.1f}",
                found["cases"],
                found["turns"],
                sum(found["categories"].values()),
                f"{found['wall']:.2f}",
                f"{found['cpu']:.2f}",
                f"{size / found['wall']:.0f}",
                f"{size / found['cpu']:.0f}",
                f"{found['first']:.2f}",
                f"{found['peak_mb']:.0f}",
            ]
        )

    locomo = probe("locomo", data / "locomo10.json", chosen.times + 2)
    row("locomo", locomo, (data / "locomo10.json").stat().st_size / 1e6)
    if (data / "beam").is_dir():
        beam = probe("beam", data / "beam", chosen.times)
        row("beam 100K", beam, sum(path.stat().st_size for path in (data / "beam").rglob("*.json")) / 1e6)
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.file or Path(folder) / "longmemeval_s.json"
        if not chosen.file:
            tool = data.parent / "tools" / "make_longmemeval_shaped.py"
            sizes = ["--questions", str(chosen.questions), "--sessions", str(chosen.sessions)]
            subprocess.run(
                [sys.executable, tool, data / "locomo10.json", path, *sizes], check=True, capture_output=True
            )
        row(f"longmemeval {path.name}", probe("longmemeval", path, chosen.times), path.stat().st_size / 1e6)
    print_rows(
        ["dataset", "MB", "cases", "turns", "questions", "wall s", "CPU s", "MB/s", "MB/CPU s", "first s", "peak MB"],
        rows,
    )
    print("\nlocomo by category:", ", ".join(f"{name} {count}" for name, count in locomo["categories"].items()))


if __name__ == "__main__":
    main()
