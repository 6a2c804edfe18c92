"""What benchmarks share: whole-process figures, and a plain table."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Figures:
    """A finished process: wall and CPU seconds, peak resident memory in MB, exit code and what it printed."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int
    output: str


def measured(command: Sequence[str], environ: dict[str, str] | None = None) -> Figures:
    """Run a command to its end and measure it as a whole process, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | (environ or {}), cwd=ROOT
    )
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    return Figures(wall, cpu, usage.ru_maxrss / 1024, process.returncode, output)


def print_rows(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns on stdout."""
    texts = [[str(value) for value in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
    for row in texts:
        print("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
