"""``memx debug --web``: a real server on loopback, a real websocket, and nothing without the token."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from memx.cli.debug import command
from memx.errors import UsageError
from tests.stores import write_run

UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


@pytest.fixture
def own_dir(tmp_path: Path) -> Path:
    write_run(tmp_path, "20260301-090000-bbbb", questions=4)
    return tmp_path


@pytest.fixture
def server(own_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it printed."""
    pytest.importorskip("textual_serve", reason="the extra web is not installed")
    process = subprocess.Popen(
        [sys.executable, "-m", "memx", "debug", "--web", "--dir", str(own_dir)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    found = re.fullmatch(r"memx: open (http://127\.0\.0\.1:\d+/[\w-]{32}/)\n", process.stderr.readline())
    assert found
    yield process, found[1]
    if process.poll() is None:
        process.kill()
        process.wait()
    process.stderr.close()


def asked(address: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers or {}), timeout=30) as reply:
            assert reply.headers["Referrer-Policy"] == "no-referrer"
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_the_app_is_served_to_whoever_has_the_token(
    server: tuple[subprocess.Popen[str], str], own_dir: Path
) -> None:
    import aiohttp

    process, address = server
    root, token = re.fullmatch(r"(.*/)([\w-]+)/", address).groups()  # type: ignore[union-attr]
    for path in (
        "",
        "ws",
        "static/js/textual.js",
        f"{token[:-1]}/",
        f"{token[:-1]}/ws",
        f"{'x' * 32}/ws",
        "download/1",
    ):
        for headers in ({}, UPGRADE):
            assert asked(root + path, headers)[0] == 403, path
    status, page = asked(address)
    assert status == 200
    assert f"{address.replace('http', 'ws')}ws" in page
    assert all(host == root for host in re.findall(r'(?:href|src)="(https?://[^/]+/)', page))
    assert ".xterm-helper-textarea" in page
    assert asked(f"{address}static/js/textual.js")[0] == 200
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{address}ws?width=100&height=30") as socket:
        seen = b""
        while b"20260301-090000-bbbb" not in seen:
            message = await socket.receive(timeout=30)
            assert message.type is aiohttp.WSMsgType.BINARY, message
            seen += message.data
        await socket.send_json(["stdin", "q"])
        while not socket.closed:
            await socket.receive(timeout=30)
    taken = ["--port", root.rsplit(":")[-1].strip("/"), "--dir", str(own_dir)]
    second = subprocess.run(
        [sys.executable, "-m", "memx", "debug", "--web", *taken], capture_output=True, text=True, check=False
    )
    assert second.returncode == 2
    assert "Choose another with --port" in second.stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert process.stderr is not None
    assert token not in process.stderr.read()
    assert not [path for path in own_dir.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]


def test_what_cannot_be_served_is_said_at_once(own_dir: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> None:
        CliRunner().invoke(
            command, ["--web", "--dir", str(own_dir), *arguments], catch_exceptions=False, standalone_mode=False
        )

    with pytest.raises(UsageError, match="exclude each other"):
        run("--plain")
    try:
        import textual_serve  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match=r"pip install 'memx\[web\]'"):
            run()
    else:
        with pytest.raises(UsageError, match="no question named 'x'"):
            run("x")
