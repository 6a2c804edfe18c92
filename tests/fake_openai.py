"""An OpenAI-compatible server on loopback with faults by script, for tests; for benchmarks as a process of its own.

with FakeOpenAI(reply="hello", faults=["429", "500"]) as server:
    ...  # server.base_url, server.requests

python -m tests.fake_openai --port 8123 --fault-rate 0.4 --latency 0.2
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from types import TracebackType
from typing import Any

Request = dict[str, Any]
#: A reply's text, or its whole message where it calls tools.
Message = dict[str, Any]
Reply = str | Callable[[Request], str | Message]
#: Texts to rows of numbers.
Embed = Callable[[Sequence[str]], Any]

FAULTS = ("429", "500", "hang", "cut", "prose", "empty")
PROSE = "I looked at both of them for a while and it is really hard to put into one word."


@dataclass
class Log:
    """What the server saw: request bodies in order, and of each the fault that it got."""

    requests: list[Request] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    embedded: list[str] = field(default_factory=list)


class FakeOpenAI:
    """The server.

    Args:
        reply: the text of every good reply, or a function of the request's body that gives the text or a message.
        faults: one per request in order, ``""`` for none; afterwards none. Or a function of the request's number.
            ``429`` (``429:0.5`` with that Retry-After), ``429:none`` (without), ``quota`` (429 for good), ``500``
            and any other status, ``hang``, ``drop`` (connection closed), ``cut`` (body cut off), ``garbled`` (no JSON),
            ``error`` (with status 200), ``prose``, ``empty``, ``starved`` (empty: max_tokens used up), ``html``,
            ``context``, ``temperature`` and ``max_tokens`` (those parameters are refused where present), ``system``
            (that role is refused), ``no-usage``.
        models: names that exist; None for any.
        key: the only key accepted; None for any or none.
        latency_s: how long a good reply takes.
        embed: what answers /embeddings; None for a server that has none.
        embedding_faults: as ``faults``, for requests of embeddings.
    """

    def __init__(
        self,
        reply: Reply = "OK",
        *,
        faults: Sequence[str] | Callable[[int], str] = (),
        models: Sequence[str] | None = None,
        key: str | None = None,
        latency_s: float = 0.0,
        port: int = 0,
        embed: Embed | None = None,
        embedding_faults: Sequence[str] = (),
    ) -> None:
        self.reply = reply
        self.embed = embed
        self.models = models
        self.key = key
        self.latency_s = latency_s
        self.log = Log()
        self.hung = threading.Event()
        self._guard = threading.Lock()
        self._fault: Callable[[int], str] | Iterator[str] = faults if callable(faults) else chain(faults, repeat(""))
        self._embedding_fault = chain(embedding_faults, repeat(""))
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        """The address to give as base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def requests(self) -> list[Request]:
        """Bodies of the chat requests so far."""
        return self.log.requests

    def __enter__(self) -> FakeOpenAI:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hung.set()
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        """Serve in this thread."""
        self._server.serve_forever()

    def note(self, body: Request, headers: dict[str, str]) -> str:
        """Record a request and say which fault it gets."""
        with self._guard:
            number = len(self.log.requests)
            fault = self._fault(number) if callable(self._fault) else next(self._fault)
            self.log.requests.append(body)
            self.log.faults.append(fault)
            self.log.headers.append(headers)
        return fault

    def note_embedding(self, texts: Sequence[str]) -> str:
        """Record texts to embed and say which fault their request gets."""
        with self._guard:
            self.log.embedded.extend(texts)
            return next(self._embedding_fault)

    def message(self, body: Request) -> Message:
        """The message of a good reply."""
        said = self.reply if isinstance(self.reply, str) else self.reply(body)
        return {"role": "assistant", "content": said} if isinstance(said, str) else {"role": "assistant", **said}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # the default of 5 refuses connections that many threads open at once


def _handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and body leave in one packet

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                names = fake.models or ["fake-model"]
                self._json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
            else:
                self._html(200)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.startswith("/page/"):
                return self._redirect()
            if self.path == "/v1/embeddings" and fake.embed is not None:
                return self._embed(body, fake.embed)
            if self.path != "/v1/chat/completions":
                return self._json(404, {"detail": "Not Found"})
            fault = fake.note(body, {name.lower(): value for name, value in self.headers.items()})
            if fake.key is not None and self.headers.get("Authorization") != f"Bearer {fake.key}":
                # As servers do: the message repeats the key that it was sent.
                sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
                return self._error(401, "invalid_api_key", f"Incorrect API key provided: {sent}.")
            if fake.models is not None and body["model"] not in fake.models:
                return self._error(404, "model_not_found", f"The model `{body['model']}` does not exist.")
            if not self._fail(fault, body):
                if fake.latency_s:
                    time.sleep(fake.latency_s)
                self._say(body, fake.message(body), usage=fault != "no-usage")
            return None

        def _embed(self, body: Request, embed: Embed) -> None:
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            if self._fail(fake.note_embedding(texts), body):
                return
            rows: list[Any] = [[float(value) for value in row] for row in embed(texts)]
            if body.get("encoding_format") == "base64":
                rows = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows]
            data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
            usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
            self._json(200, {"object": "list", "data": data, "model": body["model"], "usage": usage})

        def _fail(self, fault: str, body: Request) -> bool:
            """Act a fault; False when the request is to be answered well."""
            kind, _, detail = fault.partition(":")
            if kind in ("temperature", "max_tokens"):
                if kind not in body:
                    return False
                other = " Use 'max_completion_tokens' instead." if kind == "max_tokens" else ""
                message = f"Unsupported parameter: '{kind}' is not supported with this model.{other}"
                self._error(400, "unsupported_parameter", message, param=kind)
            elif kind == "system":
                self._error(400, "unsupported_value", "'messages[0].role' does not support 'system' with this model.")
            elif kind == "429":
                after = {} if detail == "none" else {"Retry-After": detail or "0.01"}
                self._error(429, "rate_limit_exceeded", "Rate limit reached.", headers=after)
            elif kind == "quota":
                self._error(429, "insufficient_quota", "You exceeded your current quota.")
            elif kind == "context":
                message = "This model's maximum context length is 8192 tokens. Your messages resulted in 9001 tokens."
                self._error(400, "context_length_exceeded", message)
            elif kind.isdigit():
                self._error(int(kind), "server_error" if int(kind) >= 500 else "refused", f"status {kind}")
            elif kind == "hang":
                fake.hung.wait(float(detail) if detail else 60)
                self.close_connection = True
            elif kind == "drop":
                self.close_connection = True
            elif kind == "cut":
                self._cut(body)
            elif kind == "garbled":
                self._send(200, b'{"id": "x", "choices": [{"mess', "application/json")
            elif kind == "error":
                self._json(200, {"error": {"code": 502, "message": "upstream is gone"}})
            elif kind == "html":
                self._html(200)
            elif kind in ("prose", "empty", "starved"):
                self._chat(body, PROSE if kind == "prose" else "", finish="length" if kind == "starved" else "stop")
            else:
                return False
            return True

        def _chat(self, body: Request, text: str, *, finish: str = "stop") -> None:
            self._json(200, _completion(body, {"role": "assistant", "content": text}, finish, True))

        def _say(self, body: Request, message: Message, *, usage: bool) -> None:
            self._json(200, _completion(body, message, "tool_calls" if message.get("tool_calls") else "stop", usage))

        def _cut(self, body: Request) -> None:
            whole = json.dumps(_completion(body, fake.message(body), "stop", True)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])
            self.close_connection = True

        def _redirect(self) -> None:
            self.send_response(302)
            self.send_header("Location", "/login")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _html(self, status: int) -> None:
            self._send(status, b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html")

        def _error(
            self, status: int, code: str, message: str, *, param: str = "", headers: dict[str, str] | None = None
        ) -> None:
            error = {"message": message, "type": code, "code": code, "param": param or None}
            self._json(status, {"error": error}, headers)

        def _json(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
            self._send(status, json.dumps(content).encode(), "application/json", headers)

        def _send(self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Type": kind, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _completion(body: Request, message: Message, finish: str, usage: bool) -> dict[str, Any]:
    sent = sum(len(said["content"] or "") for said in body["messages"]) // 4
    content: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
    }
    if usage:
        spent = len(message["content"] or "") // 4 + 1
        content["usage"] = {"prompt_tokens": sent, "completion_tokens": spent, "total_tokens": sent + spent}
    return content


def random_faults(rate: float, seed: int = 0, kinds: Sequence[str] = FAULTS) -> Callable[[int], str]:
    """Faults for a share of the requests, one of ``kinds`` each, the same for the same number and seed."""

    def fault(number: int) -> str:
        dice = random.Random(f"{seed}-{number}")
        return dice.choice(list(kinds)) if dice.random() < rate else ""

    return fault


def judge_by_marker(body: Request) -> str:
    """A judge's reply that says PASS exactly when the candidate in the prompt holds the word ``rightly``."""
    whole = "\n".join(message["content"] for message in body["messages"])
    candidate = re.search(r"<candidate>(.*?)</candidate>", whole, re.DOTALL)
    passed = candidate is not None and "rightly" in candidate.group(1)
    return json.dumps({"why": "by the marker", "verdict": "PASS" if passed else "FAIL"})


def main() -> None:
    """Serve until interrupted; prints the base URL first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--fault-rate", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reply", default="", help="text of every reply; without it, judges' verdicts by marker")
    arguments = parser.parse_args()
    fake = FakeOpenAI(
        arguments.reply or judge_by_marker,
        faults=random_faults(arguments.fault_rate, arguments.seed),
        latency_s=arguments.latency,
        port=arguments.port,
    )
    print(fake.base_url, flush=True)
    try:
        fake.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
