"""Whether the process that wrote a run still lives: real processes, ids that were given again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from memx.engine.store.processes import process_alive, process_started
from memx.engine.store.reader import Store
from tests.stores import write_run

WAITS = [sys.executable, "-c", "input()"]


def test_a_process_is_known_by_id_and_start() -> None:
    process = subprocess.Popen(WAITS, stdin=subprocess.PIPE)
    started = process_started(process.pid)
    assert started and started != process_started(os.getpid())
    assert process_alive(process.pid) and process_alive(process.pid, started)
    assert not process_alive(process.pid, process_started(os.getpid()))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    # It has ended, though its parent has not asked yet how.
    assert not process_alive(process.pid, started)
    process.wait()
    assert not process_alive(process.pid, started) and not process_alive(None)
    process.communicate()


def test_a_run_whose_process_id_is_anothers_now_was_interrupted(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", questions=4, state="running")
    assert Store(tmp_path).run().state == "running"
    with sqlite3.connect(tmp_path / "memx.db") as db:
        db.execute("UPDATE runs SET pid_started = 'long ago'")
    assert Store(tmp_path).run().state == "interrupted"
    with sqlite3.connect(tmp_path / "memx.db") as db:
        db.execute("UPDATE runs SET pid_started = NULL")
    assert Store(tmp_path).run().state == "running"
