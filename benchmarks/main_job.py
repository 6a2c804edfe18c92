"""The main job as a user meets it: ``memx --help``, the demo cold, the whole of LoCoMo cold and warm.

Run: ``python -m benchmarks.main_job [--locomo]``. Whole processes, each in directories of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.data import shared_data
from benchmarks.figures import Figures, measured, print_rows

MEMX = [sys.executable, "-m", "memx"]
LOAD = (
    "import time; t = time.perf_counter(); import memx.engine.runner, memx.engine.setup, faiss;"
    "from memx.memory.embedding import minilm; minilm().embed(['warm']); print(f'{time.perf_counter() - t:.2f}')"
)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--locomo", action="store_true", help="the whole of LoCoMo too, cold and warm")
    chosen = arguments.parse_args()
    helps = [measured([*MEMX, "--help"]) for _ in range(5)]
    best = min(helps, key=lambda figures: figures.cpu_s)
    rows = [row("memx --help (best of 5)", best, "under 0.15 s CPU")]
    rows.append(
        ["import and model load", measured([sys.executable, "-c", LOAD]).output.strip(), "", "", "", "under 10 s wall"]
    )
    with tempfile.TemporaryDirectory() as folder:
        figures = measured([*MEMX, "run", "--dir", f"{folder}/demo"])
        rows.append(row("memx run (demo, cold)", figures, "under 60 s wall"))
        if chosen.locomo:
            rows += locomo(Path(folder))
    print_rows(["what", "wall s", "CPU s", "peak MB", "exit", "aim and detail"], rows)


def locomo(folder: Path) -> list[list[str]]:
    """The whole of LoCoMo twice in one directory: with empty caches, then with what the first run left."""
    command = [
        *MEMX,
        "run",
        "--dataset",
        "locomo",
        "--source",
        str(shared_data() / "data" / "locomo10.json"),
        "--quiet",
    ]
    rows = []
    for name, aim in (("LoCoMo cold", ""), ("LoCoMo warm", "under 60 s wall, 1.5 GB, 20 MB; ")):
        figures = measured([*command, "--dir", str(folder / "locomo")])
        path = folder / "locomo" / "last_run.json"
        summary = json.loads(path.read_text())["summary"]
        parts = [summary[key] for key in ("passed", "failed", "unjudged", "errors")]
        detail = f"{aim}{' + '.join(map(str, parts))} = {sum(parts)} of {summary['questions']}"
        rows.append(row(name, figures, f"{detail}, last_run.json {path.stat().st_size / 1e6:.1f} MB"))
    return rows


def row(name: str, figures: Figures, detail: str) -> list[str]:
    """One line of the table."""
    return [name, f"{figures.wall_s:.2f}", f"{figures.cpu_s:.2f}", f"{figures.peak_mb:.0f}", str(figures.code), detail]


if __name__ == "__main__":
    main()
