"""Replies kept by content, so that a question that was answered once is never paid for again."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit


class ResponseCache(Protocol):
    """Where replies are kept; safe to call from several threads. The engine keeps them in ``memx.db``."""

    def get(self, key: str) -> dict[str, Any] | None:
        """The kept reply, or None."""

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a reply (JSON values only) under its key."""


class MemoryCache:
    """Replies kept in this process only."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Any]] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        """The kept reply, or None."""
        return self._kept.get(key)

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a reply under its key."""
        self._kept[key] = value

    def __len__(self) -> int:
        return len(self._kept)


def cache_key(
    model: str, base_url: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any], salt: str = ""
) -> str:
    """SHA-256 over everything that decides a reply: model, host and path, messages, parameters and the salt that
    tells repeated votes apart. Credentials in the address are left out."""
    parts = urlsplit(base_url)
    host = f"{parts.hostname or ''}:{parts.port or ''}{parts.path.rstrip('/')}"
    content = [model, host, [dict(message) for message in messages], dict(parameters), salt]
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class KeyedLocks:
    """One lock per key while somebody holds it: two threads with the same question pay for one reply."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Be the only holder of ``key`` inside the block."""
        with self._guard:
            lock, holders = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = (lock, holders + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, holders = self._held.pop(key)
                if holders > 1:
                    self._held[key] = (lock, holders - 1)
