"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# A shell's background job ignores Ctrl-C, and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

_BESIDE = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark data; a test that asks for it is skipped where the folder is absent."""
    folder = Path(os.environ.get("MEMX_SHARED", _BESIDE))
    if not (folder / "data" / "locomo10.json").is_file():
        pytest.skip(f"real data is absent: {folder}/data/locomo10.json (set MEMX_SHARED)")
    return folder


@pytest.fixture(autouse=True)
def _own_directories(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes into the checkout, reads a user's cache, or finds a key."""
    monkeypatch.setenv("MEMX_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("MEMX_DIR", str(tmp_path_factory.mktemp("memx")))
    for name in ("OPENAI_API_KEY", "MEMX_API_KEY", "OPENAI_BASE_URL", "MEMX_BASE_URL", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
