#!/usr/bin/env python3
"""A memory service that memx can drive, in about 150 lines of the standard library. Copy it, in any language.

    python examples/memory_service.py --port 8077
    memx adapters check http --adapter-option url=http://127.0.0.1:8077
    memx run --adapter http --adapter-option url=http://127.0.0.1:8077

The same messages over standard input and output, one JSON-RPC line each:

    memx run --adapter command --adapter-option command="python examples/memory_service.py --stdio"

It keeps every turn word for word, ranks by shared words, and forgets all when it ends.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROTOCOL = "memx.memory/1"
Message = dict[str, Any]


class BadRequest(Exception):
    """A message that cannot be served."""


class Memory:
    """Facts by entity, in the order they came; one lock, since requests come side by side."""

    def __init__(self) -> None:
        self._facts: dict[str, list[Message]] = {}
        self._lock = threading.Lock()

    def system(self, params: Message) -> Message:
        """Who answers here. ``idempotent_ingest``: the same session twice is stored once, so it may be sent again."""
        return {
            "protocol": PROTOCOL,
            "name": "word-notebook",
            "version": "1",
            "deep_query": True,
            "keeps_data": False,
            "idempotent_ingest": True,
            "describe": {"ranking": "shared words"},
        }

    def ingest(self, params: Message) -> Message:
        """Store a session: each turn becomes one fact with its speaker, time and the turn it came from."""
        entity_id, session_id = text(params, "entity_id"), text(params, "session_id")
        new = [
            {
                "fact_id": f"{session_id}/{turn['turn_id']}",
                "content": f"{turn['speaker']}: {turn['content']}" if turn.get("speaker") else turn["content"],
                "status": "active",
                "source_turn_ids": [turn["turn_id"]],
                "created_at": turn.get("at") or params.get("at"),
            }
            for turn in params.get("turns", [])
        ]
        with self._lock:
            facts = self._facts.setdefault(entity_id, [])
            known = {fact["fact_id"] for fact in facts}
            facts += [fact for fact in new if fact["fact_id"] not in known]
        return {"stored": len(new)}

    def ready(self, params: Message) -> Message:
        """Everything is found as soon as it is stored; a service that indexes later says what is outstanding."""
        return {"ready": True, "outstanding": ""}

    def query(self, params: Message) -> Message:
        """The facts that share the most words with the question, best first, at most ``top_k``."""
        asked = words(text(params, "query", empty=True))
        scored = [(len(asked & words(fact["content"])), fact) for fact in self._of(params)]
        scored.sort(key=lambda pair: -pair[0])
        found = [(score, fact) for score, fact in scored if score][: int(params["top_k"])]
        return {
            "facts": [
                {**fact, "score": score / max(1, len(asked)), "signals": {"shared_words": score}}
                for score, fact in found
            ]
        }

    def export(self, params: Message) -> Message:
        """Every fact of the entity, retired ones too, a page at a time; ``next`` is null on the last page."""
        facts = self._of(params)
        start, limit = int(params.get("cursor") or 0), int(params.get("limit") or 100)
        after = start + limit if start + limit < len(facts) else None
        return {"facts": facts[start : start + limit], "next": after, "total": len(facts)}

    def reset(self, params: Message) -> Message:
        """Forget the entity; one that is not known is no error."""
        with self._lock:
            self._facts.pop(text(params, "entity_id"), None)
        return {}

    def _of(self, params: Message) -> list[Message]:
        with self._lock:
            return list(self._facts.get(text(params, "entity_id"), ()))


def answer(memory: Memory, method: str, params: Any) -> tuple[int, Message]:
    """HTTP status and body for one message."""
    if method not in {"system", "ingest", "ready", "query", "export", "reset"}:
        return 404, {"error": {"message": f"no method '{method}'"}}
    try:
        if not isinstance(params, dict):
            raise BadRequest("the body is no JSON object")
        return 200, getattr(memory, method)(params)
    except (BadRequest, KeyError, TypeError, ValueError) as error:
        return 400, {"error": {"message": f"{method}: {type(error).__name__}: {error}"}}


def text(params: Message, name: str, *, empty: bool = False) -> str:
    """A field that is a text."""
    value = params.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise BadRequest(f"{name} is missing")
    return value


def words(content: str) -> set[str]:
    """The distinct words of a text in lower case."""
    return set(re.findall(r"\w+", content.lower()))


def handler(memory: Memory) -> type[BaseHTTPRequestHandler]:
    """The handler of POST /v1/METHOD."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps the connection open
        wbufsize = -1  # head and body leave together; apart, each reply takes 40 ms longer

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                params = json.loads(raw or b"{}")
            except ValueError:
                params = None
            prefix, _, method = self.path.rpartition("/")
            status, reply = answer(memory, method if prefix == "/v1" else self.path, params)
            body = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def serve_lines(memory: Memory) -> None:
    """JSON-RPC 2.0 over standard input and output, one line each way, until the input ends."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        status, reply = answer(memory, message["method"], message.get("params", {}))
        outcome = {"result": reply} if status == 200 else {"error": {"code": status, **reply["error"]}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="A small memory service for memx.")
    parser.add_argument("--port", type=int, default=8077, help="0 takes a free one")
    parser.add_argument("--stdio", action="store_true", help="lines on standard input and output instead of HTTP")
    arguments = parser.parse_args()
    if arguments.stdio:
        serve_lines(Memory())
        return
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), handler(Memory()))
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
