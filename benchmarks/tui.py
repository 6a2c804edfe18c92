"""`memx debug` in a real pseudo-terminal: first paint, keystrokes, memory.

    python -m benchmarks.tui [--questions 2000,20000] [--runs 1,200] [--dir DIR] [--store DIR]
    python -m benchmarks.tui --fuzz [--keys 5000] [--seed N]

A keystroke is timed from its write to the last byte that the program sends before it falls silent. Stores are made by
the builder of the tests and kept in ``--dir`` for the next time; ``--store`` measures one that is there already. Times
are wall times: on a machine that is busy with other work they say more about that work, so the best and the load are
printed too. ``--fuzz`` sends random keys and resizes to an app whose every text is hostile, and fails when it dies.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import closing
from pathlib import Path

from memx.engine.store.reader import Store
from tests.stores import write_run
from tests.tui.fuzz import FuzzedApp, fuzz

#: Silence after which an answer counts as whole, and the longest wait for its first byte.
_QUIET_S, _ANSWER_S = 0.12, 5.0
_FILTER = "stage:retrieval oslo"


class Terminal:
    """The program in a pseudo-terminal of 120 x 36."""

    def __init__(self, store: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.begun = time.perf_counter()
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memx", "debug", "--dir", str(store)],
            stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def read_until(self, words: bytes, limit_s: float = 60.0) -> float:
        """Seconds from the start until the words have been painted."""
        seen = b""
        while time.perf_counter() - self.begun < limit_s:
            if select.select([self.master], [], [], 0.5)[0]:
                seen += os.read(self.master, 65536)
                if words in seen:
                    return time.perf_counter() - self.begun
        raise SystemExit(f"not painted within {limit_s} s; the program said: {seen[-400:]!r}")

    def settle(self) -> float:
        """Time of the last byte before the program fell silent."""
        last = time.perf_counter()
        select.select([self.master], [], [], _ANSWER_S)
        while select.select([self.master], [], [], _QUIET_S)[0]:
            os.read(self.master, 65536)
            last = time.perf_counter()
        return last

    def press(self, key: str) -> tuple[float, float]:
        """Milliseconds from a key to the last byte it brings about, and of processor time until the silence."""
        start, used = time.perf_counter(), self.cpu_ms()
        os.write(self.master, key.encode())
        return 1000 * (self.settle() - start), self.cpu_ms() - used

    def memory_mb(self) -> float:
        """Resident memory of the program."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def cpu_ms(self) -> float:
        """Processor time the program has used."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6

    def close(self) -> None:
        """End the program."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


def store_of(directory: Path, questions: int, runs: int) -> Path:
    """A store with a run of that many questions, and smaller runs beside it."""
    store = directory / f"q{questions}-r{runs}"
    if not (store / "done").is_file():
        print(f"making {store} ...", file=sys.stderr)
        for number in range(runs - 1):
            write_run(store, f"20260101-{number:06d}-small", questions=3)
        write_run(store, "20260301-090000-large", questions=questions, cases=max(3, questions // 200))
        (store / "done").touch()
    return store


def measure(store: Path, label: str, repeats: int) -> None:
    """Measure one store and print its rows."""
    paints, cpus = [], []
    for _ in range(repeats):
        terminal = Terminal(store)
        paints.append(1000 * terminal.read_until(b"runs"))
        cpus.append(terminal.cpu_ms())
        terminal.close()
    terminal = Terminal(store)
    terminal.read_until(b"runs")
    terminal.settle()
    timings: dict[str, list[tuple[float, float]]] = {"open a run": [terminal.press("\r")]}
    timings["filter key"] = []
    for _ in range(3):
        terminal.press("/")
        timings["filter key"] += [terminal.press(char) for char in _FILTER]
        terminal.press("\r")
        terminal.press("\x1b")
    timings["sort"] = [terminal.press("s") for _ in range(6)]
    timings["row down"] = [terminal.press("j") for _ in range(20)]
    timings["page down"] = [terminal.press("\x1b[6~") for _ in range(20)]
    timings["to the end"] = [terminal.press(key) for key in "GgGg"]
    timings["open question"] = [terminal.press("\r")]
    timings["next question"] = [terminal.press("]") for _ in range(20)]
    timings["tab"] = [terminal.press(key) for key in "123456123456"]
    memory = terminal.memory_mb()
    terminal.close()
    print(f"\n{label}")
    print(
        f"  first paint     best {min(paints):6.0f} ms  median {statistics.median(paints):6.0f} ms  "
        f"cpu {min(cpus):.0f} ms"
    )
    for name, values in timings.items():
        print(f"  {name:<15} {_spread([wall for wall, _ in values])}   cpu {_spread([cpu for _, cpu in values])}")
    print(f"  memory          {memory:.0f} MB")


async def fuzz_app(keys: int, seed: int) -> None:
    """Random keys in parts of 1,000, each to a program of its own; a death shows its traceback."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for number in (1, 2):
            write_run(directory, f"2026030{number}-090000-evil", questions=30, hostile=True)
        for part in range(-(-keys // 1000)):
            with closing(Store(directory)) as store, closing(Store(directory)) as search_store:
                app = FuzzedApp(store, search_store)
                async with app.run_test(size=(80, 24)) as pilot:
                    await fuzz(pilot, min(1000, keys - 1000 * part), seed + part)
            print(f"{min(keys, 1000 * (part + 1)):,} keys and resizes, alive; it asked for {len(app.asked)} commands")


def _spread(values: list[float]) -> str:
    ranked = sorted(values)
    high = ranked[min(len(ranked) - 1, int(0.95 * len(ranked)))]
    return f"best {ranked[0]:6.1f}  median {statistics.median(ranked):6.1f}  p95 {high:6.1f} ms"


def main() -> None:
    """Measure the stores that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", default="2000,20000")
    parser.add_argument("--runs", default="1,200", help="as many as sizes: runs in each store")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "memx-bench-tui")
    parser.add_argument("--store", type=Path, help="measure this store instead")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--fuzz", action="store_true", help="send random keys instead of measuring")
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.fuzz:
        asyncio.run(fuzz_app(options.keys, options.seed))
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if options.store:
        measure(options.store, str(options.store), options.repeats)
        return
    for questions, runs in zip(options.questions.split(","), options.runs.split(","), strict=True):
        store = store_of(options.dir, int(questions), int(runs))
        measure(store, f"{int(questions):,} questions, {runs} runs", options.repeats)


if __name__ == "__main__":
    main()
