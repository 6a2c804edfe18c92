"""What is read out of a stored text beside its words: entities, relations, attributes. All derived; the text is kept.

Names, numbers and dates come from :mod:`memx.text`. A relation is ``(who, "mentions", entity)`` for a text whose
speaker is known, so it says no more than the text does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

from memx.memory.rows import Memory
from memx.text.dates import dates_in
from memx.text.names import names_in
from memx.text.numbers import numbers_in
from memx.text.words import stems

#: Longer texts are read up to here for entities and attributes; their words and vectors are not cut by this.
MAX_CHARS = 20_000
_LABEL = re.compile(r"\s*([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30})?):\s")


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one text yields.

    Attributes:
        stems: its stemmed words in order, stop words dropped.
        entities: keys of the proper names in it.
        attributes: name and value pairs, lower-cased: those the caller gave, and ``speaker`` of a leading ``Name:``.
        dates: spans of days that it names, relative ones read against its own time.
        has_number: it states a number outside dates.
        is_question: it ends by asking.
    """

    stems: tuple[str, ...]
    entities: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    dates: tuple[tuple[date, date], ...] = ()
    has_number: bool = False
    is_question: bool = False

    @property
    def relations(self) -> tuple[tuple[str, str, str], ...]:
        """``(speaker, "mentions", entity)`` for every speaker and entity."""
        speakers = [value for name, value in self.attributes if name == "speaker"]
        return tuple((who, "mentions", entity) for who in speakers for entity in self.entities if entity != who)


def extract(memory: Memory) -> Extracted:
    """Everything that a memory's text yields."""
    text = memory.text[:MAX_CHARS]
    attributes = {(name, value.lower()): None for name, value in memory.attributes.items() if value}
    rest = text
    # A pasted transcript has its own labels behind the first.
    for _ in range(2):
        label = _LABEL.match(rest)
        if label is None:
            break
        attributes["speaker", label[1].lower()] = None
        rest = rest[label.end() :]
    speakers = [value for name, value in attributes if name == "speaker"]
    dates = dates_in(rest, memory.created_at)
    inside = [d.span for d in dates]
    return Extracted(
        stems=words_only(memory).stems,
        entities=tuple(dict.fromkeys(name.key for name in names_in(rest, speakers))),
        attributes=tuple(attributes),
        dates=tuple((d.start, d.end) for d in dates),
        has_number=any(not any(a <= n.span[0] < b for a, b in inside) for n in numbers_in(rest)),
        is_question=rest.rstrip().endswith("?"),
    )


def words_only(memory: Memory) -> Extracted:
    """The words alone: all that the modes without ranking need."""
    return Extracted(tuple(stems(memory.text)))


def extraction_pool(max_workers: int) -> Executor:
    """Threads that extract while the embedder, which does not hold the interpreter's lock, computes."""
    return ThreadPoolExecutor(max(1, max_workers), thread_name_prefix="memx-extract")


def submit(pool: Executor, memories: Sequence[Memory], chunk: int = 64) -> list[Future[list[Extracted]]]:
    """Extraction of all memories in chunks, in order."""
    parts = [memories[start : start + chunk] for start in range(0, len(memories), chunk)]
    return [pool.submit(_extract_all, part) for part in parts]


def _extract_all(memories: Sequence[Memory]) -> list[Extracted]:
    return [extract(memory) for memory in memories]
