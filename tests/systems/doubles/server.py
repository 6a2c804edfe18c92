"""The ground of all doubles: a real HTTP server on loopback with a log of calls and faults by script.

with ZepDouble() as zep:
    zep.fail("429", path="/messages", times=1)
    ...  # zep.url, zep.calls
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

KEY = "sk-double-0123456789"


@dataclass(frozen=True)
class Call:
    """One request: ``path`` is unquoted, ``query`` holds the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """An answer with an error status; ``body`` in the vendor's own shape, else the double's."""

    def __init__(self, status: int, message: str = "", body: Any = None) -> None:
        super().__init__(message)
        self.status, self.message, self.body = status, message, body


@dataclass
class _Fault:
    kind: str
    method: str
    path: str
    left: int
    skip: int


class Double:
    """A double; a subclass answers calls through :meth:`answer`.

    Faults (:meth:`fail`): a status such as ``429``, ``401``, ``500``; ``html`` (a page with status 200), ``garbled``
    (JSON that stops in the middle), ``cut`` (the connection closes in the middle of the body), ``drop`` (it closes
    without an answer), ``hang`` (no answer until the double ends), ``late`` (the call is carried out, then 500).
    """

    #: A prefix that the SDK's base URL has, such as ``/api/v4``.
    prefix = ""
    retry_after = "0"

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.ended = threading.Event()
        self._faults: list[_Fault] = []
        self._guard = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """The address to give as base URL, without a trailing slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, call: Call) -> Any:
        """The JSON body of a good answer, or ``(status, body)``; an error is a :class:`Refusal`."""
        raise NotImplementedError

    def error_body(self, status: int, message: str) -> Any:
        """The vendor's error body."""
        return {"error": message}

    def allowed(self, call: Call) -> bool:
        """Whether the key is right."""
        return KEY in call.headers.get("authorization", "")

    def fail(self, kind: str, *, method: str = "", path: str = "", times: int = 1, skip: int = 0) -> None:
        """Answer the next ``times`` calls whose method and path match (``path`` is a pattern) with a fault, after
        letting ``skip`` of them through."""
        self._faults.append(_Fault(kind, method, path, times, skip))

    def clear(self) -> None:
        """Forget faults that were not taken, and the calls so far."""
        with self._guard:
            self._faults.clear()
            self.calls.clear()

    def seen(self, method: str, path: str = "") -> list[Call]:
        """The calls so far with that method whose path matches the pattern."""
        return [call for call in self.calls if call.method == method and re.search(path, call.path)]

    def take_fault(self, call: Call) -> str:
        """The fault that this call gets, ``""`` for none; notes the call."""
        with self._guard:
            self.calls.append(call)
            for fault in self._faults:
                if fault.left and fault.method in ("", call.method) and re.search(fault.path, call.path):
                    if fault.skip:
                        fault.skip -= 1
                        continue
                    fault.left -= 1
                    return fault.kind
        return ""

    def reply(self, call: Call) -> tuple[int, Any]:
        """Status and body of a call that got no fault."""
        if not self.allowed(call):
            return 401, self.error_body(401, "invalid api key")
        with self._guard:
            try:
                body = self.answer(call)
            except Refusal as refusal:
                return refusal.status, refusal.body or self.error_body(refusal.status, refusal.message)
        return body if isinstance(body, tuple) else (200, body)


def _handler(double: Double) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body of each answer waits 40 ms for the header's acknowledgement

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            body = json.loads(raw) if raw else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = unquote(parts.path).removeprefix(double.prefix)
            call = Call(self.command, path, dict(parse_qsl(parts.query, keep_blank_values=True)), body, headers)
            fault = double.take_fault(call)
            if fault == "hang":
                double.ended.wait(30)
                self.close_connection = True
            elif fault == "drop":
                self.close_connection = True
            elif fault == "html":
                self._send(200, b"<html><body>Sign in</body></html>", "text/html")
            elif fault.isdigit():
                self._send(int(fault), json.dumps(double.error_body(int(fault), f"fault {fault}")).encode())
            elif fault == "late":
                double.reply(call)
                self._send(500, json.dumps(double.error_body(500, "too late")).encode())
            else:
                status, answered = double.reply(call)
                sent = b"" if answered is None else json.dumps(answered).encode()
                if fault == "garbled":
                    sent = sent[: len(sent) // 2]
                self._send(status, sent, cut=fault == "cut")

        def _send(self, status: int, body: bytes, kind: str = "application/json", cut: bool = False) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", double.retry_after)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            if cut:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    return Handler
