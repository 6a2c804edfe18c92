"""Whether the process that wrote a run still lives. Imports nothing heavy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def process_alive(pid: int | None, started: str = "") -> bool:
    """True when a process of this host has the id and has not ended.

    Args:
        started: what :func:`process_started` said of it; a process that began at another time is another one, since
            ids are given again. Empty where that is not known.
    """
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It belongs to another user, but it is there.
        pass
    found = _linux(pid)
    if found is not None and found[0] == "Z":
        return False
    now = process_started(pid) if started else ""
    return not now or now == started


def process_started(pid: int) -> str:
    """When a process began, as a text that only tells two processes apart; empty where the system does not say."""
    found = _linux(pid)
    if found is not None:
        return f"{_boot()}:{found[1]}"
    try:
        done = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True, text=True, timeout=5, check=False, env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _linux(pid: int) -> tuple[str, str] | None:
    """State letter and start in clock ticks since the boot (proc(5), fields 3 and 22); None elsewhere than on Linux."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name of the program, in brackets, may hold blanks and brackets itself.
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
