"""A small history and a small embedder for tests of the built-in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from memx.memory.embedding import Embedder, Signature
from memx.memory.rows import Memory
from memx.text.words import stems

SAID = [
    ("s1", "Ana", "2024-03-01", "I adopted a beagle called Pretzel yesterday."),
    ("s1", "Ben", "2024-03-01", "What a lovely name! Did you get him at the shelter?"),
    ("s1", "Ana", "2024-03-01", "Yes, the Lakeside shelter had five puppies."),
    ("s2", "Ben", "2024-05-12", "I am training for the Oslo marathon."),
    ("s2", "Ana", "2024-05-12", "How many kilometres do you run each week?"),
    ("s2", "Ben", "2024-05-12", "About 60 kilometres, mostly along the river."),
    ("s3", "Ana", "2024-07-20", "My sister moved to Lisbon last month."),
    ("s3", "Ben", "2024-07-20", "I sprained my ankle, so no race for me."),
]


def history() -> list[Memory]:
    """The eight texts, with threads, speakers and times."""
    return [
        Memory(
            f"m{index}",
            f"{who}: {what}",
            datetime.fromisoformat(day),
            thread,
            {"speaker": who, "role": "user" if who == "Ana" else "assistant"},
            {"turn_id": f"t{index}"},
        )
        for index, (thread, who, day, what) in enumerate(SAID)
    ]


class HashedWords(Embedder):
    """Bags of stems hashed into a few dimensions: deterministic, and near where words are shared."""

    def __init__(self, dimension: int = 32) -> None:
        self.dimension = dimension
        self.asked = 0

    @property
    def signature(self) -> Signature:
        return Signature("hashed-words", self.dimension)

    def encode(self, texts: Sequence[str]) -> Any:
        self.asked += len(texts)
        vectors = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for stem in stems(text):
                vectors[row, sum(stem.encode("utf-8", "replace")) % self.dimension] += 1.0
        return vectors
