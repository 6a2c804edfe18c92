"""What the tests of models share: a clock that need not be waited for, and clients of a fake server."""

from __future__ import annotations

import threading
from typing import Any

from memx.llm.cache import ResponseCache
from memx.llm.gate import Wait
from memx.llm.models import Models, ModelSettings
from tests.fake_openai import FakeOpenAI

KEY = "sk-test-0123456789abcdef"


class FastClock:
    """Waiting moves the time on at once."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._guard = threading.Lock()

    def now(self) -> float:
        return self.time

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(0.0005)  # lets another thread have the condition
        with self._guard:
            self.time += seconds


def models(
    server: FakeOpenAI | None = None,
    *,
    base_url: str = "",
    key: str = KEY,
    cache: ResponseCache | None = None,
    stop: threading.Event | None = None,
    clock: FastClock | None = None,
    waits: list[Wait] | None = None,
    **settings: Any,
) -> Models:
    """Clients of a fake server."""
    address = base_url or (server.base_url if server else "")
    return Models(
        ModelSettings(base_url=address or None, **{"timeout_s": 5.0, **settings}),
        cache=cache,
        stop=stop,
        on_wait=None if waits is None else waits.append,
        environ={"MEMX_API_KEY": key} if key else {},
        clock=clock or FastClock(),
    )


def ask(text: str = "hello") -> list[dict[str, str]]:
    """Messages with one user text."""
    return [{"role": "user", "content": text}]
