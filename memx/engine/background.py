"""Runs in the background: started in a process of their own, and ended from outside, politely first."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memx.engine.last_run import write_last_run
from memx.engine.runner import GRACE_S, new_run_id
from memx.engine.store.processes import process_alive
from memx.engine.store.reader import RunRow, Store
from memx.engine.store.writer import RunWriter
from memx.engine.summary import summarize
from memx.errors import MemxError, StoreError, UsageError

#: The environment variable by which a run in the background is told its id.
RUN_ID_VARIABLE = "MEMX_RUN_ID"
#: How long a run that is asked to end may take: its own wait for questions under way, and what it writes then.
PATIENCE_S = GRACE_S + 10.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Detached:
    """A run in the background, and the file that holds what it says."""

    run_id: str
    pid: int
    log: Path


class EndedAtOnce(MemxError):
    """The process ended before its run began.

    Args:
        said: what it printed.
    """

    def __init__(self, said: str, exit_code: int) -> None:
        super().__init__(said)
        self.exit_code = exit_code


def start_detached(arguments: Sequence[str], directory: Path, resume: str | None = None) -> Detached:
    """Start ``memx ARGUMENTS`` in the background and wait until its run is in the store.

    Args:
        arguments: ``run`` and its options, without ``--detach``.
        resume: the run that they go on with.

    Raises:
        EndedAtOnce: it could not begin; the words and the exit code are its own.
        StoreError: the log cannot be written.
    """
    run_id = new_run_id()
    if resume is not None:
        with contextlib.closing(Store(directory)) as store:
            run_id = store.run(resume).run_id
    log = directory / "logs" / f"{run_id}.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "memx", *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                # A session of its own: neither Ctrl-C in this terminal nor closing it reaches the run.
                start_new_session=True, env={**os.environ, RUN_ID_VARIABLE: run_id, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
    except OSError as error:
        raise StoreError(f"{log}: {error.strerror}", "Choose another place with --dir.") from None
    try:
        _wait_for_begin(process, directory, run_id, log)
    except KeyboardInterrupt:
        process.terminate()
        raise
    return Detached(run_id, process.pid, log)


def _wait_for_begin(process: subprocess.Popen[bytes], directory: Path, run_id: str, log: Path) -> None:
    while True:
        ended = process.poll()
        if _begun(directory, run_id, process.pid):
            return
        if ended is not None:
            said = log.read_text(errors="replace")
            log.unlink(missing_ok=True)
            raise EndedAtOnce(said, ended if ended >= 0 else 128 - ended)
        time.sleep(_LOOK_S)


def _begun(directory: Path, run_id: str, pid: int) -> bool:
    try:
        with contextlib.closing(Store(directory)) as store:
            return bool(store.query("SELECT 1 FROM runs WHERE run_id = ? AND pid = ?", [run_id, pid]))
    except MemxError:
        # The store is only just being made.
        return False


def kill_run(directory: Path, run_id: str, patience_s: float = PATIENCE_S) -> bool:
    """End a run of this host that another process writes, as an interrupt does; returns whether it ended by itself.

    A process that has not ended after ``patience_s`` seconds is killed. Either way the run is ``interrupted``
    afterwards, what it finished is kept, and it can be resumed.

    Raises:
        UsageError: the run is not running.
        StoreError: it runs on another host, or its process may not be ended by this user.
    """
    with contextlib.closing(Store(directory)) as store:
        run = store.run(run_id)
    if run.state != "running" or run.pid is None:
        raise UsageError(f"run {run.run_id} is not running, it is {run.state}", "memx runs ls shows which are.")
    if run.host != socket.gethostname():
        raise StoreError(f"run {run.run_id} runs on host {run.host}", "End it there.")
    clean = _end(run, signal.SIGTERM, patience_s)
    if not clean:
        _end(run, signal.SIGKILL, patience_s)
    with contextlib.closing(Store(directory)) as store:
        left = store.query("SELECT state FROM runs WHERE run_id = ?", [run.run_id])
    if left and left[0]["state"] == "running":
        mark_interrupted(directory, run.run_id)
        return False
    return clean


def _end(run: RunRow, number: signal.Signals, patience_s: float) -> bool:
    """Send a signal to the process of a run and wait for its end; True when it ended."""
    assert run.pid is not None
    try:
        if process_alive(run.pid, run.pid_started):
            os.kill(run.pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        raise StoreError(f"process {run.pid} of run {run.run_id} is another user's", "End it as that user.") from None
    until = time.monotonic() + patience_s
    while process_alive(run.pid, run.pid_started):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True


def mark_interrupted(directory: Path, run_id: str) -> None:
    """Write down that a run whose process is gone was interrupted: its state, summary and ``last_run.json``.

    Raises:
        StoreError: a live process writes it.
    """
    writer = RunWriter(directory, run_id)
    try:
        writer.reopen()
        with contextlib.closing(Store(directory)) as store:
            writer.end("interrupted", summarize(store, run_id).as_dict())
            write_last_run(store, run_id)
    finally:
        writer.close()
