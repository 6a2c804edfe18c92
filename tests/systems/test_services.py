"""``http`` and ``command``: against the example service, really running, and against services that misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memx.adapters.registry import adapter_class
from memx.adapters.systems.command import CommandMemory
from memx.adapters.systems.http import HttpMemory
from memx.errors import AdapterError, AdapterTimeoutError, MemxError, UsageError
from memx.model import Session, Turn

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "memory_service.py"
CONTRACT = json.loads((ROOT / "memx" / "adapters" / "systems" / "memory_service.openapi.json").read_text())
Reply = tuple[int, dict[str, str], bytes]


def session(entity: str = "e1", name: str = "s1", turns: int = 2) -> Session:
    said = (Turn(f"{name}:{n}", "Ana", "user", f"I keep bees, hive number {n}.") for n in range(turns))
    return Session(name, entity, tuple(said), datetime(2024, 5, 1, 9))


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """The example service in a process of its own; its address."""
    with subprocess.Popen([sys.executable, EXAMPLE, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def example(kind: str, service: str) -> HttpMemory | CommandMemory:
    if kind == "http":
        return HttpMemory(url=service, page_size=3)
    return CommandMemory(command=f"{sys.executable} {EXAMPLE} --stdio", page_size=3)


@pytest.mark.parametrize("kind", ["http", "command"])
def test_the_example_is_driven_from_ingest_to_reset(kind: str, service: str) -> None:
    adapter = example(kind, service)
    try:
        assert adapter.describe()["name"] == "word-notebook" and not adapter.keeps_data
        adapter.ingest_session(session("e1", turns=8))
        adapter.ingest_session(session("other", turns=1))
        adapter.wait_until_ready("e1", 5)
        facts = adapter.export_state("e1").facts
        assert len(facts) == 8
        assert (facts[3].fact_id, facts[3].source_turn_ids) == ("s1/s1:3", ("s1:3",))
        assert facts[3].content == "Ana: I keep bees, hive number 3." and facts[3].created_at == datetime(2024, 5, 1, 9)
        found = adapter.query("Which hive number 5?", "e1", 2).facts
        assert len(found) == 2 and found[0].fact_id == "s1/s1:5" and found[0].signals == {"shared_words": 3}
        adapter.reset("e1")
        adapter.reset("nobody")
        assert adapter.export_state("e1").facts == () and len(adapter.export_state("other").facts) == 1
    finally:
        adapter.reset("other")
        adapter.close()


def test_every_message_and_reply_keeps_to_the_contract(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonschema.Draft202012Validator.check_schema({"$defs": CONTRACT["components"]["schemas"]})
    seen = set()
    ask = HttpMemory.ask

    def checked(self: HttpMemory, method: str, params: Any, timeout_s: float | None = None) -> Any:
        operation = CONTRACT["paths"][f"/v1/{method}"]["post"]
        sent = json.loads(json.dumps(params))
        validate(sent, operation["requestBody"]["content"]["application/json"]["schema"])
        reply = ask(self, method, params, timeout_s)
        validate(reply, operation["responses"]["200"]["content"]["application/json"]["schema"])
        seen.add(f"/v1/{method}")
        return reply

    monkeypatch.setattr(HttpMemory, "ask", checked)
    test_the_example_is_driven_from_ingest_to_reset("http", service)
    assert seen == set(CONTRACT["paths"])


def validate(value: Any, schema: dict[str, str]) -> None:
    jsonschema.validate(value, {**schema, "components": CONTRACT["components"]})


# ------------------------------------------------------------------------------------------------- a server that errs

HELLO = json.dumps({"protocol": "memx.memory/1", "idempotent_ingest": False}).encode()


@pytest.fixture
def server() -> Iterator[Callable[..., HttpMemory]]:
    """Makes a real server that gives the listed replies to a method in turn (the last for good) and counts them."""
    running = []

    def make(replies: dict[str, list[Reply]], **options: Any) -> HttpMemory:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def setup(self) -> None:
                super().setup()
                asked.append("connected")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                method = self.path.rpartition("/")[2]
                listed = replies.get(method, [(200, {}, HELLO)])
                status, headers, body = listed[min(asked.count(method), len(listed) - 1)]
                asked.append(method)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                if int(headers.get("Content-Length", 0)) > len(body):
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.daemon_threads = True
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(made)
        adapter = HttpMemory(url=f"http://127.0.0.1:{made.server_port}", attempts=2, **options)
        adapter.calls._sleep = lambda seconds: asked.append(f"slept {seconds:g}")
        adapter.asked = asked  # type: ignore[attr-defined]
        return adapter

    yield make
    for made in running:
        made.shutdown()
        made.server_close()


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    return status, {name.replace("_", "-"): text for name, text in headers.items()}, json.dumps(value).encode()


def facts(*rows: Any, **more: Any) -> Reply:
    return json_reply({"facts": list(rows), "next": None, **more})


@pytest.mark.parametrize(
    ("replies", "call", "words"),
    [
        ({"system": [(200, {}, b"<!DOCTYPE html><html>Log in</html>")]}, "export", "it sent a web page. Is http://"),
        ({"system": [(404, {}, b"not found")]}, "export", r"\(404\): not found. Is http://.* of its API"),
        ({"system": [json_reply({"hello": 1})]}, "export", "does not say what contract it speaks"),
        ({"system": [json_reply({"protocol": "memx.memory/9"})]}, "export", "speaks 'memx.memory/9'"),
        ({"system": [(302, {"Location": "https://login.example/x?token=1"}, b"")]}, "export",
         r"redirects to https://login.example/x\. Give the address itself"),
        ({"export": [(200, {"Content-Length": "500"}, b'{"facts": [')]}, "export", "failed inside"),
        ({"export": [(200, {}, b'{"facts": [')]}, "export", "cut off or no JSON"),
        ({"export": [(200, {}, b"[1, 2]")]}, "export", "a list instead of an object"),
        ({"export": [facts({"content": "x"})]}, "export", r"facts\[0\]: fact_id is missing"),
        ({"export": [facts({"fact_id": "a", "content": 3})]}, "export", r"facts\[0\]: content is 3"),
        ({"export": [facts({"fact_id": "a", "content": "x", "status": "old"})]}, "export", "status is 'old'"),
        ({"export": [facts({"fact_id": "a", "content": "x", "created_at": "today"})]}, "export", "is 'today'"),
        ({"export": [facts({"fact_id": "a", "content": "x"}, total=9)]}, "export", "9 rows were promised; 1 rows"),
        ({"export": [json_reply({"facts": [], "next": "c"})]}, "export", "repeats its cursor 'c'"),
        ({"query": [json_reply({"facts": 3})]}, "query", "facts is 3; it should be a list"),
        ({"query": [json_reply({"error": {"message": "no index"}}, 500)]}, "query", r"\(2 attempts\).*no index"),
        ({"query": [json_reply({"error": "bad token"}, 401)]}, "query", r"refused \(401\): bad token.*MEMX_HTTP_TOKEN"),
        ({"ingest": [json_reply({"error": {"message": "disk full"}}, 507)]}, "ingest",
         "disk full; stored so far: 0 of 2 turns of session s1"),
        ({"ready": [json_reply({"ready": False, "failed": "model is gone"})]}, "ready", "failed to.*model is gone"),
    ],
)  # fmt: skip
def test_a_service_that_errs_is_named(server: Any, replies: Any, call: str, words: str) -> None:
    adapter = server(replies)
    with pytest.raises(AdapterError, match=words):
        {
            "export": lambda: adapter.export_state("e"),
            "query": lambda: adapter.query("bees", "e", 3),
            "ingest": lambda: adapter.ingest_session(session()),
            "ready": lambda: adapter.wait_until_ready("e", 1),
        }[call]()
    adapter.close()


def test_a_rate_limit_is_waited_out_an_uncertain_ingest_is_not_sent_again_and_one_connection_serves_all(
    server: Any,
) -> None:
    limited = json_reply({"error": {"message": "slow"}}, 429, Retry_After="3")
    adapter = server({"ingest": [limited, json_reply({})]})
    adapter.ingest_session(session())
    assert adapter.asked == ["connected", "system", "ingest", "slept 3", "ingest"]
    adapter = server({"ingest": [json_reply({"error": {"message": "oh"}}, 500), json_reply({})]})
    with pytest.raises(AdapterError, match="it failed inside"):
        adapter.ingest_session(session())
    assert adapter.asked == ["connected", "system", "ingest"]


def test_a_service_that_is_never_ready_says_what_it_waits_for(server: Any) -> None:
    adapter = server({"ready": [json_reply({"ready": False, "outstanding": "3 of 9 turns"})]})
    with pytest.raises(AdapterTimeoutError, match="3 of 9 turns"):
        adapter.wait_until_ready("e", 0.01)


def test_the_token_is_sent_and_shown_nowhere(server: Any) -> None:
    said = json_reply({"error": {"message": "the token tok-0123456789 is not known"}}, 403)
    adapter = server({"system": [said]}, token="tok-0123456789")
    with pytest.raises(AdapterError) as caught:
        adapter.describe()
    assert "tok-0123456789" not in str(caught.value) and "***" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("http", {}, "Set MEMX_HTTP_URL or give --adapter-option url"),
        ("http", {"url": "localhost:8077"}, "no http address"),
        ("http", {"url": "http://127.0.0.1:9", "attempts": 1}, "cannot be reached.*Is the server up at http"),
        ("http", {"url": "http://h", "header": "X-Api-Key"}, "written 'Name: value'"),
        ("command", {}, "Set MEMX_COMMAND"),
        ("command", {"command": "no-such-program-here --x"}, "cannot be started: no-such-program-here: No such file"),
        ("command", {"command": "'half a quote"}, "No closing quotation"),
        ("command", {"command": "true", "cwd": "/no/such/place"}, "no directory: /no/such/place"),
    ],
)  # fmt: skip
def test_what_cannot_start_is_one_clear_error(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(MemxError, match=words):
        adapter_class(name)(**options).describe()


# ------------------------------------------------------------------------------------------------- programs that err

SPEAKS = """
import json, sys, os, time
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "system":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocol": "memx.memory/1"}}), flush=True)
    else:
        %s
"""


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("print('loading', file=sys.stderr); 1 / 0",
         "ended with exit code 1 during ingest; its last words: .*ZeroDivisionError.*stored so far: 0 of 2 turns"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL during ingest"),
        ("print('Hello!', flush=True)", "a line that is no JSON object: Hello!.*Standard output is for replies"),
        ("print(json.dumps({'id': 77, 'result': {}}), flush=True)", "with id 77"),
        ("print(json.dumps({'id': message['id']}), flush=True)", "neither a result nor an error"),
        ("print(json.dumps({'id': message['id'], 'error': {'code': 401, 'message': 'who are you'}}), flush=True)",
         r"refused \(401\): who are you"),
        ("time.sleep(60)", "no reply to ingest within 0.2 s and was ended"),
    ],
)  # fmt: skip
def test_a_program_that_errs_is_named(tmp_path: Path, does: str, words: str) -> None:
    (tmp_path / "program.py").write_text(SPEAKS % does)
    adapter = CommandMemory(command=f"{sys.executable} program.py", cwd=str(tmp_path), timeout_s=20)
    adapter.system()
    adapter._timeout_s = 0.2 if "sleep" in does else 20
    with pytest.raises(AdapterError, match=words):
        adapter.ingest_session(session())
    adapter.close()


def test_the_program_ends_with_the_adapter_and_with_python(tmp_path: Path) -> None:
    adapter = example("command", "")
    adapter.describe()
    assert isinstance(adapter, CommandMemory) and adapter._child is not None
    process = adapter._child._process
    adapter.close()
    assert process.returncode == 0
    script = "import sys; from memx.adapters.systems.command import CommandMemory\n"
    script += f"a = CommandMemory(command='{sys.executable} {EXAMPLE} --stdio'); a.describe()\n"
    script += "print(a._child._process.pid)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_command_line_options_are_usage_errors_not_tracebacks() -> None:
    with pytest.raises(UsageError, match="Did you mean timeout_s"):
        CommandMemory(command="true", timeout="3")
