"""Fetching, against a real server on loopback that cuts, stalls, lies about lengths and serves web pages."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memx.adapters.datasets.downloads import BEAM_SIZES, DOWNLOADS, Remote
from memx.adapters.datasets.opening import open_dataset
from memx.adapters.datasets.pulling import Link, describe, pull
from memx.errors import InputError, UnknownNameError
from tests.datasets.builders import beam_chat, beam_questions, locomo_sample

BODY = json.dumps([locomo_sample()]).encode() * 3000
SHA256 = hashlib.sha256(BODY).hexdigest()
URL = "https://files.example/data/locomo10.json"
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Gives each request the next of the server's answers, the last one for ever."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Range"), self.headers.get("If-Range")))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, *args: Any) -> None:
        pass

    def send(self, status: int, body: bytes, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        # What was promised and not sent ends with the connection.
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    answers: list[Answer]
    requests: list[tuple[str, str | None, str | None]]
    released: threading.Event

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.answers, server.requests, server.released = [whole], [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(**changes: Any) -> None:
        fields = {"url": URL, "path": "locomo10.json", "sha256": SHA256, "size": len(BODY), **changes}
        monkeypatch.setitem(DOWNLOADS, "locomo", {"": (Remote(**fields),)})  # type: ignore[arg-type]

    put()
    return put


def whole(handler: Handler) -> None:
    handler.send(200, BODY, ETag='"one"')


def ranged(handler: Handler) -> None:
    wanted = handler.headers.get("Range")
    if wanted is None:
        return whole(handler)
    start = int(wanted.removeprefix("bytes=").removesuffix("-"))
    return handler.send(206, BODY[start:], Content_Range=f"bytes {start}-{len(BODY) - 1}/{len(BODY)}", ETag='"one"')


def cut(handler: Handler) -> None:
    handler.send(200, BODY[:300_000], len(BODY), ETag='"one"')


def stall(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    handler.wfile.write(BODY[:300_000])
    handler.server.released.wait(10)
    handler.close_connection = True


def status(code: int) -> Answer:
    return lambda handler: handler.send(code, b"")


def link(server: Server, **changes: Any) -> Link:
    return Link(mirror=server.address, timeout_s=0.3, attempts=2, pause_s=0.0, **changes)


def test_a_file_is_fetched_checked_and_not_fetched_again(server: Server, remote: Any, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    (found,) = pull("locomo", progress=lambda *args: told.append(args), link=link(server), into=tmp_path)
    assert found.path.read_bytes() == BODY and found.pinned and found.fetched
    assert told[-1] == ("locomo10.json", len(BODY), len(BODY)) and len(told) > 2
    assert [count for _, count, _ in told] == sorted(count for _, count, _ in told)
    assert server.requests == [("/data/locomo10.json", None, None)]
    (again,) = pull("locomo", link=link(server), into=tmp_path)
    assert not again.fetched and len(server.requests) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["locomo10.json", "pulled.json"]


def test_the_cache_is_found_without_a_source(server: Server, remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps([locomo_sample()]).encode()
    remote(sha256=hashlib.sha256(body).hexdigest(), size=len(body))
    server.answers = [lambda handler: handler.send(200, body)]
    monkeypatch.setenv("MEMX_MIRROR", server.address)
    pull("locomo")
    assert [case.case_id for case in open_dataset("locomo").cases()] == ["conv-1"]


@pytest.mark.parametrize(("first", "then"), [(cut, "bytes=300000-"), (stall, "bytes=300000-"), (status(503), None)])
def test_it_goes_on_after_a_cut_a_stall_or_a_busy_server(
    server: Server, remote: Any, tmp_path: Path, first: Answer, then: str | None
) -> None:
    server.answers = [first, ranged]
    (found,) = pull("locomo", link=link(server), into=tmp_path)
    assert found.path.read_bytes() == BODY
    assert server.requests[1][1] == then


def test_many_cuts_are_borne_as_long_as_bytes_come(server: Server, remote: Any, tmp_path: Path) -> None:
    def piece(handler: Handler) -> None:
        start = int((handler.headers.get("Range") or "bytes=0-")[6:-1])
        body = BODY[start : start + len(BODY) // 8 + 1]
        length = len(BODY) - start
        handler.send(206 if start else 200, body, length, Content_Range=f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")

    server.answers = [piece]
    (found,) = pull("locomo", link=link(server), into=tmp_path)
    assert found.path.read_bytes() == BODY and len(server.requests) == 8


def test_a_part_of_an_interrupted_pull_is_gone_on_from(server: Server, remote: Any, tmp_path: Path) -> None:
    (tmp_path / "locomo10.json.part").write_bytes(BODY[:1000])
    server.answers = [ranged]
    pull("locomo", link=link(server), into=tmp_path)
    assert server.requests == [("/data/locomo10.json", "bytes=1000-", None)]


def test_a_server_without_ranges_or_with_another_file_is_begun_anew(
    server: Server, remote: Any, tmp_path: Path
) -> None:
    server.answers = [cut, whole]
    (found,) = pull("locomo", link=link(server), into=tmp_path)
    assert found.path.read_bytes() == BODY
    assert server.requests[1] == ("/data/locomo10.json", "bytes=300000-", '"one"')


def test_a_range_that_was_not_asked_for_is_not_taken(server: Server, remote: Any, tmp_path: Path) -> None:
    def wrong(handler: Handler) -> None:
        handler.send(206, BODY[5:], Content_Range=f"bytes 5-{len(BODY) - 1}/{len(BODY)}")

    server.answers = [cut, wrong, ranged]
    (found,) = pull("locomo", link=link(server), into=tmp_path)
    assert found.path.read_bytes() == BODY


def page(kind: str) -> Answer:
    return lambda handler: handler.send(200, b"\n<!DOCTYPE html><p>Sign in</p>", Content_Type=kind)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda handler: handler.send(200, BODY, len(BODY) // 2), "is not the file of the release"),
        (lambda handler: handler.send(200, BODY[:-1] + b"x"), "is not the file of the release"),
        (lambda handler: handler.send(200, BODY[:5000], len(BODY) * 2), "the connection ended after 5,000 of"),
        (page("text/html; charset=utf-8"), "served a web page instead of the file"),
        (page("application/octet-stream"), "served a web page instead of the file"),
        (status(404), "HTTP 404"),
        (status(403), "HTTP 403"),
        (status(500), "HTTP 500"),
    ],
)
def test_what_cannot_be_had_leaves_nothing_in_place(
    server: Server, remote: Any, tmp_path: Path, answer: Answer, words: str
) -> None:
    server.answers = [answer]
    with pytest.raises(InputError) as caught:
        pull("locomo", link=link(server), into=tmp_path)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "locomo10.json").exists()
    assert "--source" in caught.value.hint


def test_offline_says_what_to_download_and_where_to_put_it(remote: Any, tmp_path: Path) -> None:
    with Server(("127.0.0.1", 0), Handler) as closed:
        address = closed.address
    with pytest.raises(InputError) as caught:
        pull("locomo", link=Link(mirror=address, attempts=1, pause_s=0.0), into=tmp_path)
    said = str(caught.value)
    assert "cannot be reached" in said and f"{address}/data/locomo10.json" in said
    assert str(tmp_path / "locomo10.json") in said and "HTTPS_PROXY" in said and "MEMX_MIRROR" in said


def test_a_proxy_is_taken_from_the_environment(
    server: Server, remote: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote(url="http://files.example/data/locomo10.json")
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.delenv("no_proxy", raising=False)
    pull("locomo", into=tmp_path)
    assert server.requests[0][0] == "http://files.example/data/locomo10.json"


def test_mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = "https://huggingface.co/datasets/x/resolve/main/f.json"
    assert Link().address(hub) == hub
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example/")
    assert Link().address(hub) == "https://hub.example/datasets/x/resolve/main/f.json"
    assert Link().address(URL) == URL
    monkeypatch.setenv("MEMX_MIRROR", "https://mirror.example/base")
    assert Link().address(hub) == "https://mirror.example/base/datasets/x/resolve/main/f.json"


def test_files_without_known_checksum_are_recorded(server: Server, remote: Any, tmp_path: Path) -> None:
    remote(sha256="", size=0)
    (tmp_path / "locomo10.json.part").write_bytes(b"of another file")
    (found,) = pull("locomo", link=link(server), into=tmp_path)
    assert (found.sha256, found.pinned) == (SHA256, False)
    assert not pull("locomo", link=link(server), into=tmp_path)[0].fetched
    found.path.write_bytes(b"changed")
    assert pull("locomo", link=link(server), into=tmp_path)[0].fetched
    assert [wanted for _, wanted, _ in server.requests] == [None, None]


def test_an_optional_file_may_be_missing(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answer(handler: Handler) -> None:
        if handler.path.endswith("trunecated.json"):
            return handler.send(404, b"")
        content: Any = beam_questions() if "probing" in handler.path else beam_chat()
        return handler.send(200, json.dumps(content).encode())

    server.answers = [answer]
    monkeypatch.setitem(DOWNLOADS, "beam", {"1M": DOWNLOADS["beam"]["1M"][:3]})  # type: ignore[arg-type]
    assert len(pull("beam:1m", link=link(server), into=tmp_path)) == 2
    assert [case.case_id for case in open_dataset("beam:1m", tmp_path).cases()] == ["1M-1"]


def test_a_place_that_cannot_be_written(server: Server, remote: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        pull("locomo", link=link(server), into=tmp_path / "file")


def test_what_can_be_pulled() -> None:
    assert describe("longmemeval")[0].path == "s/longmemeval_s_cleaned.json"
    assert describe("longmemeval:M-original")[0].size == 2_745_274_681
    assert sum(remote.path.endswith("/chat.json") for tier in BEAM_SIZES for remote in describe(f"beam:{tier}")) == 100
    for parts in DOWNLOADS.values():
        for remote in (remote for remotes in parts.values() for remote in remotes):
            assert remote.url.startswith("https://") and len(remote.sha256) in (0, 64)
    with pytest.raises(UnknownNameError, match="Did you mean locomo"):
        describe("locom")
    with pytest.raises(UnknownNameError, match="no part of beam named '2M'"):
        describe("beam:2M")
