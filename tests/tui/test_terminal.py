"""The program in a real pseudo-terminal: it leaves the terminal as it found it, however it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

#: What a full-screen program must take back: alternate screen, hidden cursor, mouse reports, bracketed paste.
RESTORED = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1003l", b"\x1b[?2004l")


class Terminal:
    """``memx debug`` on a pseudo-terminal of 80 x 24; ``before`` is code that its process runs first."""

    def __init__(self, *arguments: str, before: str = "") -> None:
        code = f"{before}\nfrom memx.cli.main import main\nmain()"
        self.open()
        self.start([sys.executable, "-c", code, "debug", *arguments])

    def open(self) -> None:
        """Make the pseudo-terminal."""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""

    def start(self, command: list[str], **environment: str) -> None:
        """Start a command as the first of a session, the terminal being its own."""
        self.process = subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **environment},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip

    def read_until(self, done: Callable[[], bool]) -> None:
        while not done():
            ready = select.select([self.master], [], [], 30)[0]
            assert ready, self.seen[-500:]
            self.seen += os.read(self.master, 65536)

    def end(self) -> int:
        """Wait for the end, reading what is still written; returns the exit code."""
        while self.process.poll() is None or select.select([self.master], [], [], 0)[0]:
            if select.select([self.master], [], [], 0.05)[0]:
                self.seen += os.read(self.master, 65536)
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.mark.parametrize("end", ["q", "\x03", "\x11", signal.SIGTERM])
def test_the_terminal_is_left_as_it_was(store_dir: Path, end: str | signal.Signals) -> None:
    terminal = Terminal("--dir", str(store_dir))
    terminal.read_until(lambda: b"2 runs" in terminal.seen)
    if isinstance(end, str):
        os.write(terminal.master, end.encode())
    else:
        terminal.process.send_signal(end)
    code = terminal.end()
    assert code == (0 if isinstance(end, str) else 130)
    assert all(sequence in terminal.seen for sequence in RESTORED)
    assert termios.tcgetattr(terminal.slave) == terminal.before
    assert b"Traceback" not in terminal.seen
    terminal.close()


def test_a_fault_leaves_the_terminal_as_it_was_and_shows_no_variables(store_dir: Path) -> None:
    faulty = "from memx.tui.screens.runs import RunsScreen as R\n"
    faulty += "def fail(self):\n    key = 'sk-' + 'secret'\n    return 1 // 0\nR.action_pick = fail"
    terminal = Terminal("--dir", str(store_dir), before=faulty)
    terminal.read_until(lambda: b"2 runs" in terminal.seen)
    os.write(terminal.master, b" ")
    assert terminal.end() == 3
    assert all(sequence in terminal.seen for sequence in RESTORED)
    assert termios.tcgetattr(terminal.slave) == terminal.before
    assert b"memx: a fault in memx itself: ZeroDivisionError" in terminal.seen
    assert b"sk-secret" not in terminal.seen
    assert b"Traceback" not in terminal.seen
    report = re.search(rb"details are in (\S+);", terminal.seen)
    assert report
    text = Path(report[1].decode()).read_text()
    assert "action_pick" in text or "in fail" in text
    assert "sk-secret" not in text
    Path(report[1].decode()).unlink()
    terminal.close()


def test_stopped_by_ctrl_z_and_brought_back(store_dir: Path) -> None:
    """A shell of its own, whose jobs can be stopped: the terminal is the shell's in between."""
    terminal = Terminal.__new__(Terminal)
    terminal.open()
    command = f"{sys.executable} -m memx debug --dir {store_dir}"
    terminal.start(["bash", "--norc", "--noprofile", "-i"], PS1="prompt> ")
    terminal.read_until(lambda: b"prompt> " in terminal.seen)
    os.write(terminal.master, f"{command}\n".encode())
    terminal.read_until(lambda: b"2 runs" in terminal.seen)
    os.write(terminal.master, b"i")
    # A page that is painted already: after fg it must be painted again.
    terminal.read_until(lambda: b"Diagnostic" in terminal.seen)
    terminal.seen = b""
    os.write(terminal.master, b"\x1a")
    terminal.read_until(lambda: b"prompt> " in terminal.seen)
    assert all(sequence in terminal.seen for sequence in RESTORED)
    terminal.seen = b""
    os.write(terminal.master, b"fg\n")
    terminal.read_until(lambda: b"Diagnostic" in terminal.seen)
    terminal.seen = b""
    os.write(terminal.master, b"q")
    terminal.read_until(lambda: b"prompt> " in terminal.seen)
    os.write(terminal.master, b"exit\n")
    assert terminal.end() == 0
    terminal.close()


def test_without_a_stored_run_the_first_can_be_started_from_inside(tmp_path: Path) -> None:
    directory = tmp_path / "none"
    terminal = Terminal("--dir", str(directory))
    terminal.read_until(lambda: b"n starts one" in terminal.seen)
    os.write(terminal.master, b"n")
    terminal.read_until(lambda: b"retrieval mode" in terminal.seen)
    os.write(terminal.master, b"\x1b")
    os.write(terminal.master, b"\x03")
    assert terminal.end() == 0
    terminal.close()


def test_an_unknown_question_is_said_before_anything_is_drawn(store_dir: Path) -> None:
    terminal = Terminal("conv-1:q99x", "--dir", str(store_dir))
    assert terminal.end() == 2
    assert b"memx: no question named 'conv-1:q99x'" in terminal.seen
    assert b"\x1b[?1049h" not in terminal.seen
    terminal.close()


def test_a_question_is_opened_at_once_and_a_filter_can_be_typed_behind_it(store_dir: Path) -> None:
    terminal = Terminal("conv-3:q14", "--dir", str(store_dir), "--run", "20260228")
    terminal.read_until(lambda: b"conv-3:q14" in terminal.seen and b"ranked_below_k" in terminal.seen)
    terminal.seen = b""
    os.write(terminal.master, b"h")
    terminal.read_until(lambda: b"36 of 36 shown" in terminal.seen)
    os.write(terminal.master, b"/rank<20")
    terminal.read_until(lambda: b"11 of 36 shown" in terminal.seen)
    os.write(terminal.master, b"\x03")
    assert terminal.end() == 0
    terminal.close()
