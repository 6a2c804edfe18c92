"""The embedder that judging and diagnosis share; not loaded until a text needs it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from memx.diagnose.contract import Embed


def lazy_embedder(cache: Path) -> Embed:
    """MiniLM with its vectors cached on disk, loaded when the first text is embedded."""
    lock = threading.Lock()
    made: list[Any] = []

    def embed(texts: Any) -> Any:
        with lock:
            if not made:
                from memx.memory.embedding import minilm
                from memx.memory.embedding_cache import CachedEmbedder

                made.append(CachedEmbedder(minilm(), cache))
        return made[0].embed(texts)

    return embed
