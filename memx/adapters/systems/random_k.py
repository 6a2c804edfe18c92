"""``random-k``: the control that retrieves at random. A system that does no better than this retrieves nothing."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any, ClassVar

from memx.adapters.options import Option, read_options
from memx.adapters.systems.controls import VerbatimControl
from memx.adapters.systems.verbatim import retrieved_of
from memx.model import QueryResult


class RandomK(VerbatimControl):
    """Returns ``top_k`` turns drawn at random; the draw follows from the seed and the question, so a run repeats."""

    name = "random-k"
    OPTIONS: ClassVar[Mapping[str, Any]] = {"seed": Option(0, "of the draw")}

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._seed: int = read_options(self.name, self.OPTIONS, options)["seed"]

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        memories = self.memories(entity_id)
        # The first of a deep draw are the whole of a shallow one.
        key = hashlib.blake2b(f"{self._seed}\0{query}".encode("utf-8", "replace"), digest_size=8).digest()
        order = random.Random(key).sample(range(len(memories)), len(memories))[:top_k]
        return QueryResult(tuple(retrieved_of(memories[i]) for i in order))
