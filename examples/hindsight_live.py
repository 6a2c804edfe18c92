"""A real Hindsight server for memx, with nothing of the internet: its own Postgres, a model of rules, memx's embedder.

From a checkout, in an environment of its own (1.6 GB):

    pip install -e '.[hindsight]' 'hindsight-api-slim[embedded-db]==1.1.*'
    python -m examples.hindsight_live                              # the conformance kit, then the demo dataset
    python -m examples.hindsight_live memx run --adapter hindsight --snapshots session

Everything runs on loopback in a temporary directory and is ended and deleted at the end. Postgres refuses to be started
by root; then it is started as the user ``nobody`` (Linux, ``runuser``).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.hindsight_llm import hindsight_model

BESIDE = Path(sys.executable).parent
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("memx", "adapters", "check", "hindsight", "--ready-timeout", "240"),
    ("memx", "run", "--adapter", "hindsight", "--snapshots", "session", "--ready-timeout", "240", "--cleanup"),
)
_BOOT_S = 240


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """An embedded Postgres with pgvector; yields its address."""
    import pg0

    binary, home, port = folder / "pg0", folder / "home", free_port()
    shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", binary)
    binary.chmod(0o755)
    home.mkdir()
    command = [str(binary)]
    if os.geteuid() == 0:
        shutil.chown(home, "nobody")
        folder.chmod(0o755)
        command = ["runuser", "-u", "nobody", "--", "env", f"HOME={home}", *command]
    given = {**os.environ, "HOME": str(home)}
    started = [*command, "start", "--name", "memx", "--port", str(port), "--database", "hindsight"]
    # The server inherits the pipes of what starts it, so its words go to a file.
    with (folder / "postgres.log").open("wb") as log:
        subprocess.run(started, cwd=home, env=given, stdout=log, stderr=log, check=True)
    try:
        yield f"postgresql://postgres:postgres@127.0.0.1:{port}/hindsight"
    finally:
        subprocess.run([*command, "stop", "--name", "memx"], cwd=home, env=given, capture_output=True, check=False)


@contextmanager
def hindsight(folder: Path, database: str, model: str) -> Iterator[str]:
    """The server, once it answers; yields its address."""
    port = free_port()
    given = {
        "DATABASE_URL": database,
        "LLM_PROVIDER": "openai",
        "LLM_MODEL": "rules",
        "LLM_API_KEY": "none",
        "LLM_BASE_URL": model,
        "SKIP_LLM_VERIFICATION": "true",
        "EMBEDDINGS_PROVIDER": "openai",
        "EMBEDDINGS_OPENAI_MODEL": "minilm",
        "EMBEDDINGS_OPENAI_API_KEY": "none",
        "EMBEDDINGS_OPENAI_BASE_URL": model,
        "RERANKER_PROVIDER": "rrf",
        "WORKER_ID": "memx",
    }
    settings = {f"HINDSIGHT_API_{name}": value for name, value in given.items()}
    command = [str(BESIDE / "hindsight-api"), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "HF_HUB_OFFLINE": "1", **settings}, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        begun = time.monotonic()
        while not answers(url):
            if server.poll() is not None or time.monotonic() - begun > _BOOT_S:
                sys.exit(f"the server did not start:\n{(folder / 'server.log').read_text()[-3000:]}")
            time.sleep(0.5)
        print(f"hindsight-api is up after {time.monotonic() - begun:.0f} s", flush=True)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()


def answers(url: str) -> bool:
    """Whether a server tells its version there."""
    try:
        with urllib.request.urlopen(f"{url}/version", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def call(command: Sequence[str], given: Mapping[str, str], folder: Path) -> int:
    """Run one command of this environment, shown as typed; its exit code."""
    print(f"\n$ {' '.join(command)}", flush=True)
    begun = time.monotonic()
    done = subprocess.run([str(BESIDE / command[0]), *command[1:]], env=dict(given), cwd=folder, check=False)
    print(f"(exit code {done.returncode}, {time.monotonic() - begun:.0f} s)", flush=True)
    return done.returncode


def main() -> int:
    """Start everything, run the commands, end everything."""
    commands = [tuple(sys.argv[1:])] if sys.argv[1:] else list(COMMANDS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memx-hindsight-")))
        database = stack.enter_context(postgres(folder))
        model = stack.enter_context(hindsight_model())
        url = stack.enter_context(hindsight(folder, database, model.base_url))
        given = {**os.environ, "HINDSIGHT_BASE_URL": url, "MEMX_DIR": str(folder / ".memx")}
        return max(call(command, given, folder) for command in commands)


if __name__ == "__main__":
    sys.exit(main())
