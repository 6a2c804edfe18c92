"""Commands that run beside the UI, each in a process of its own: started, listened to, stopped. No textual here.

What the UI starts is the command a user would type, so that both do the same, and the UI loads nothing of an engine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from memx.engine.store.reader import RunRow, Store
from memx.errors import StoreError

#: Bytes of a command's output that are read back.
_TAIL = 64_000
#: Exit codes after which there is nothing to complain of: done, a threshold missed, interrupted.
QUIET_CODES = (0, 1, 130)


class Job:
    """One command under way, or ended.

    Args:
        arguments: after ``memx``; ``--dir`` is added.
        directory: of the run store; the command's output is kept in ``logs`` there until it has ended well.

    Raises:
        StoreError: the output cannot be written.
    """

    def __init__(self, arguments: Sequence[str], directory: Path) -> None:
        self.arguments = [*arguments, "--dir", str(directory)]
        self.verb = arguments[0]
        self.begun = time.monotonic()
        self.stopping = False
        self.log = directory / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{self.verb}-{os.urandom(2).hex()}.log"
        try:
            self.log.parent.mkdir(exist_ok=True)
            # A file, not a pipe: the command goes on when the UI has gone.
            with self.log.open("wb") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "memx", *self.arguments],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    # Keys pressed in this terminal (Ctrl-C, Ctrl-Z) are not the command's.
                    start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )  # fmt: skip
        except OSError as error:
            raise StoreError(f"{self.log}: {error.strerror}", "A command's output is kept there.") from None

    @property
    def pid(self) -> int:
        """Of the command's process."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs. A command killed by a signal has 128 and the signal's number."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def output(self) -> str:
        """What it has said so far, the last part of it."""
        return tail(self.log)

    def complaint(self) -> tuple[str, str]:
        """The last error that it told, and the way out."""
        lines = self.output().rstrip().splitlines()
        starts = [place for place, line in enumerate(lines) if line.startswith("memx: ")]
        if not starts:
            return f"memx {self.verb} ended with {self.code}", "\n".join(lines[-8:])
        return lines[starts[-1]].removeprefix("memx: "), "\n".join(line.strip() for line in lines[starts[-1] + 1 :])

    def stop(self) -> None:
        """Ask it to end as Ctrl-C would: what is finished is kept. Asked again, it is killed."""
        # SIGTERM is Ctrl-C to memx; SIGINT itself is ignored by whatever a shell started in the background.
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL if self.stopping else signal.SIGTERM)
        self.stopping = True

    def wait(self, seconds: float) -> None:
        """Wait for its end, but not for ever."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def tidy(self) -> None:
        """Remove what it said, after it ended and was read."""
        self.log.unlink(missing_ok=True)

    def run_of(self, store: Store) -> RunRow | None:
        """The run that it writes, once it is in the store."""
        return next((run for run in store.runs() if run.pid == self.pid and self._is_new(run)), None)

    def _is_new(self, run: RunRow) -> bool:
        # A process id may have been another's before.
        age = time.time() - (run.updated_at or run.started_at).timestamp()
        return age < time.monotonic() - self.begun + 2


def tail(log: Path) -> str:
    """The last part of a file; nothing where there is none."""
    try:
        with log.open("rb") as written:
            written.seek(max(0, log.stat().st_size - _TAIL))
            return written.read().decode("utf-8", "replace")
    except OSError:
        return ""


class Pace:
    """How fast runs go, from what was seen of them in the last minute."""

    _WINDOW_S = 60.0

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def note(self, run: RunRow, now: float | None = None) -> None:
        """Remember how far a run is; ``now`` in seconds of a clock that never goes back."""
        now = time.monotonic() if now is None else now
        seen = self._seen.setdefault(run.run_id, deque())
        if not seen or seen[-1][1] != run.done:
            seen.append((now, run.done))
        while len(seen) > 2 and now - seen[0][0] > self._WINDOW_S:
            seen.popleft()

    def rate(self, run: RunRow) -> float | None:
        """Questions a second; None when too little was seen."""
        seen = self._seen.get(run.run_id, deque())
        if len(seen) < 2 or seen[-1][0] <= seen[0][0] or seen[-1][1] <= seen[0][1]:
            return None
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])

    def left(self, run: RunRow) -> float | None:
        """Seconds until it is done at this rate; None when not known."""
        rate = self.rate(run)
        return (run.question_total - run.done) / rate if rate and run.question_total is not None else None


def clock(seconds: float) -> str:
    """``4:05`` or ``1:04:05``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
