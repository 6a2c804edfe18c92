"""What memx adds to a memory system's own time: per call, and over the ingest of a long case through ``http``.

    python -m benchmarks.adapters [--calls 2000] [--turns 600] [--sessions 20] [--server-ms 50]

Per call: the same searches through the harness (its thread for the adapter, deadline, checks, findings) and directly on
an adapter that does nothing; and through ``http`` to a server on loopback in a process of its own, against the same
requests by http.client over one kept-alive connection, which shows what server, kernel and machine take by themselves.
CPU is that of this process, which other load on the machine does not change; wall clock is the median of all calls.

Ingest: a case of so many turns through ``http`` to a server that takes a fixed time per session; what is beyond the sum
of those times is ours.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from benchmarks.figures import print_rows
from memx.adapters.contract import MemoryAdapter
from memx.adapters.systems import messages
from memx.adapters.systems.http import HttpMemory
from memx.engine.memory_side import MemorySide
from memx.engine.settings import RunSettings
from memx.engine.workshop import Task, Workshop
from memx.model import Case, Fact, QueryResult, Question, Retrieved, Session, Snapshot, Turn

FOUND = tuple(
    Retrieved(f"f{n}", f"Ana: fact number {n} of what she said.", 1 / (n + 1), {"rank": n}) for n in range(10)
)
FACTS = tuple(Fact(fact.fact_id, fact.content) for fact in FOUND)


class Nothing(MemoryAdapter):
    """Does nothing, at once."""

    name = "nothing"

    def ingest_session(self, session: Session) -> None:
        pass

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return QueryResult(FOUND)

    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, FACTS)


def a_case(turns: int, sessions: int) -> Case:
    """A case of one question and so many turns of 30 words."""
    text = "I told you about the garden and the long table that we put under the old pear tree. " * 2
    size = -(-turns // sessions)
    numbered = [Turn(f"t{n}", ("Ana", "Ben")[n % 2], "user", f"{text}{n}") for n in range(turns)]
    cut = (numbered[n : n + size] for n in range(0, turns, size))
    made = tuple(Session(f"s{n}", "e", tuple(part)) for n, part in enumerate(cut))
    return Case("c", "e", made, (Question("q", "e", "Where is the long table?", "under the pear tree", "x"),))


def side(adapter: type[MemoryAdapter], options: dict[str, Any], case: Case) -> MemorySide:
    """The memory system's side of a case as a run makes it, with a writer that keeps nothing."""
    needed = {
        "settings": RunSettings(),
        "adapter_class": adapter,
        "adapter_options": options,
        "writer": SimpleNamespace(write_snapshot=lambda *given: None),
        "listener": lambda event: None,
        "stop": threading.Event(),
        "left": [],
    }
    # Judge, answers and diagnosis play no part here.
    unused = {field.name: None for field in fields(Workshop)}
    shop = Workshop(**{**unused, **needed})
    return MemorySide(shop, Task(case, 0, ((0, case.questions[0]),)), "e", 1)


def per_call(work: Callable[[], object], calls: int) -> tuple[float, float]:
    """CPU milliseconds of this process per call, and the median of the wall clock."""
    for _ in range(50):
        work()
    walls = []
    cpu = time.process_time()
    for _ in range(calls):
        started = time.perf_counter()
        work()
        walls.append(time.perf_counter() - started)
    return (time.process_time() - cpu) / calls * 1000, median(walls) * 1000


def overhead(calls: int) -> None:
    """The table of single calls."""
    case = a_case(4, 1)
    question = case.questions[0]
    rows = []
    direct = Nothing()
    inside = side(Nothing, {}, case)
    floor = per_call(lambda: direct.query(question.text, "e", 50), calls)
    with_us = per_call(lambda: inside.query(question), calls)
    inside.end()
    rows.append(["in this process", *row(floor, with_us)])
    with served(0.0) as url:
        over_http = side(HttpMemory, {"url": url}, case)
        with_us = per_call(lambda: over_http.query(question), calls)
        over_http.end()
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        body = messages.encoded(messages.query(question.text, "e", 50, None))

        def bare() -> None:
            connection.request("POST", "/v1/query", body, {"Content-Type": "application/json"})
            connection.getresponse().read()

        floor = per_call(bare, calls)
    rows.append(["http on loopback", *row(floor, with_us)])
    header = ["a search, 10 facts", "floor CPU ms", "floor wall ms", "memx CPU ms", "memx wall ms", "added wall ms"]
    print_rows(header, rows)


def row(floor: tuple[float, float], with_us: tuple[float, float]) -> list[str]:
    """Floor, measured, and the difference, in milliseconds."""
    return [f"{value:.3f}" for value in (*floor, *with_us, with_us[1] - floor[1])]


def ingest(turns: int, sessions: int, server_ms: float) -> None:
    """The table of a long ingest."""
    case = a_case(turns, sessions)
    with served(server_ms) as url:
        memory = side(HttpMemory, {"url": url}, case)
        memory.adapter.describe()
        cpu, started = time.process_time(), time.perf_counter()
        memory.ingest()
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        memory.end()
    server = len(case.sessions) * server_ms / 1000
    header = ["ingest through http", "server s", "wall s", "beyond the server", "our CPU s"]
    shown = [f"{turns} turns, {len(case.sessions)} sessions", f"{server:.3f}", f"{wall:.3f}"]
    print()
    print_rows(header, [[*shown, f"{(wall - server) / server:.1%}", f"{cpu:.3f}"]])


# ----------------------------------------------------------------------------------------------------------- the server


@contextmanager
def served(server_ms: float) -> Iterator[str]:
    """The address of the server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.adapters", "--serve", str(server_ms)]
    with tempfile.TemporaryFile() as errors:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
            server.wait()


def serve(server_ms: float) -> None:
    """Answer every message at once, and an ingest after its time."""
    facts = [{"fact_id": f.fact_id, "content": f.content, "score": f.score, "signals": dict(f.signals)} for f in FOUND]
    replies = {
        "system": {"protocol": messages.PROTOCOL, "name": "bench", "version": "1", "keeps_data": False},
        "ready": {"ready": True},
        "query": {"facts": facts},
        "export": {"facts": [{"fact_id": f.fact_id, "content": f.content} for f in FACTS], "next": None},
    }
    bodies = {method: json.dumps(reply).encode() for method, reply in replies.items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            method = self.path.rpartition("/")[2]
            if method == "ingest":
                time.sleep(server_ms / 1000)
            body = bodies.get(method, b"{}")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=600)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--server-ms", type=float, default=50.0)
    parser.add_argument("--serve", type=float, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    overhead(given.calls)
    ingest(given.turns, given.sessions, given.server_ms)


if __name__ == "__main__":
    main()
