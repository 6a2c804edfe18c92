"""``command``: a memory system as a program, driven by lines of JSON on its standard input and output."""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.options import Option, need, read_options
from memx.adapters.systems import messages
from memx.adapters.systems.service import ServiceMemory
from memx.errors import AdapterError, AdapterTimeoutError, UsageError
from memx.text.gate import safe_line
from memx.text.secrets import hide

#: How many of the last lines of standard error an error repeats.
_TAIL = 5
#: How long a program may take to end by itself once its input is closed, in seconds.
_GRACE_S = 3.0


class RefusedError(Exception):
    """The program answered a message with an error.

    Attributes:
        status_code: the error's code, read like an HTTP status where it is one.
    """

    def __init__(self, text: str, code: Any, retry_after: Any = None) -> None:
        super().__init__(text)
        self.status_code = code if isinstance(code, int) else None
        self.retry_after = retry_after


class CommandMemory(ServiceMemory):
    """A program that answers the messages of the memory service contract as JSON-RPC 2.0, one line each.

    One program runs per case and ends with it. What it writes to standard error is kept for error messages.
    """

    name = "command"
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "command": Option("", "the program with its arguments", env="MEMX_COMMAND"),
        "cwd": Option("", "the directory that it runs in"),
        "timeout_s": Option(60.0, "how long one reply may take, in seconds", least=0.001),
        "page_size": Option(200, "facts asked for at a time", least=1),
    }

    def __init__(self, **options: Any) -> None:
        given = read_options(self.name, self.OPTIONS, options)
        text = need(self.name, self.OPTIONS, given, "command")
        try:
            self._arguments = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"option command of adapter command: {error}: {text}") from None
        self._cwd: str | None = given["cwd"] or None
        if self._cwd and not Path(self._cwd).is_dir():
            raise UsageError(f"option cwd of adapter command is no directory: {self._cwd}")
        self._timeout_s: float = given["timeout_s"]
        self.page_size = given["page_size"]
        self.calls = Calls(self.name)
        self._child: _Child | None = None

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "command": hide(shlex.join(self._arguments))}

    def ask(self, method: str, params: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        if self._child is None:
            self._child = _Child(self._arguments, self._cwd)
        return self._child.ask(method, params, timeout_s or self._timeout_s)

    def close(self) -> None:
        if self._child is not None:
            self._child.end()


class _Child:
    """The running program. Its replies and its standard error are read by threads of their own, so that neither it
    nor we ever wait for a full pipe."""

    def __init__(self, arguments: list[str], cwd: str | None) -> None:
        self._program = Path(arguments[0]).name
        try:
            self._process = subprocess.Popen(
                arguments,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for memx, which then ends the program by closing its input.
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"command cannot be started: {arguments[0]}: {error.strerror}", "Give --adapter-option command=..."
            ) from None
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=_TAIL)
        self._number = 0
        assert self._process.stdout is not None and self._process.stderr is not None
        self._listeners = [
            threading.Thread(target=_read_replies, args=(self._process.stdout, self._replies), daemon=True),
            threading.Thread(target=_read_complaints, args=(self._process.stderr, self._complaints), daemon=True),
        ]
        for listener in self._listeners:
            listener.start()
        # A run that is interrupted, or that gave up on a call, closes no adapter: the program ends with Python then.
        self.end = weakref.finalize(self, _end, self._process)

    def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        self._number += 1
        line = messages.encoded({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}) + b"\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._ended(method) from None
        try:
            reply = self._replies.get(timeout=timeout_s)
        except queue.Empty:
            _kill(self._process)
            self.end()
            waited = f"within {timeout_s:g} s and was ended"
            raise AdapterTimeoutError(
                f"command: {self._program} gave no reply to {method} {waited}{self._said()}",
                "Raise --adapter-option timeout_s=..., or look at what it does.",
            ) from None
        if reply is None:
            raise self._ended(method)
        return self._result(method, reply)

    def _result(self, method: str, line: bytes) -> Mapping[str, Any]:
        try:
            reply = messages.decoded(line)
        except ValueError:
            shown = safe_line(line.decode("utf-8", "replace"), 100)
            raise AdapterError(
                f"command: {self._program} answered {method} with a line that is no JSON object: {shown}",
                "Standard output is for replies alone, a line each; print anything else to standard error.",
            ) from None
        if reply.get("id") != self._number:
            raise AdapterError(
                f"command: {self._program} answered {method} (id {self._number}) with id {reply.get('id')!r}",
                "One line per message, with its id.",
            )
        if (error := reply.get("error")) is not None:
            detail = error if isinstance(error, Mapping) else {"message": error}
            data = detail.get("data")
            wait = data.get("retry_after") if isinstance(data, Mapping) else None
            raise RefusedError(str(detail.get("message") or "an error without a message"), detail.get("code"), wait)
        result = reply.get("result")
        if not isinstance(result, Mapping):
            raise AdapterError(f"command: {self._program} answered {method} with neither a result nor an error")
        return result

    def _ended(self, method: str) -> AdapterError:
        """The error for a program that is gone: how it ended, and its last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        # Its last words may still be under way.
        self._listeners[1].join(_GRACE_S)
        code = self._process.returncode
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"ended with exit code {code}"
        return AdapterError(f"command: {self._program} {how} during {method}{self._said()}", "Mend it, then run again.")

    def _said(self) -> str:
        return f"; its last words: {hide(' | '.join(self._complaints))}" if self._complaints else ""


def _read_replies(stream: IO[bytes], replies: queue.SimpleQueue[bytes | None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream:
            if line.strip():
                replies.put(line)
    replies.put(None)


def _read_complaints(stream: IO[bytes], complaints: deque[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream:
            if text := safe_line(line.decode("utf-8", "replace").rstrip(), 300):
                complaints.append(text)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the program's input, and end it and what it started when it does not end by itself."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    if process.poll() is None:
        _kill(process)
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it started, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
