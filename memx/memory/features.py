"""What ranking reads about every stored text, as arrays by position; built once after each change of the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memx.memory.extraction import Extracted
from memx.memory.lexical import Bm25Index

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Features:
    """Arrays by position.

    Attributes:
        phrases: the stems of each text in order, as one string with a blank on either side of each.
        thread: number of the thread of each text; a text without one is a thread of its own.
        by_thread, thread_starts: positions thread by thread, and where each thread begins among them.
        threads: BM25 over whole threads, with the words weighed as in single texts.
        before, after: the neighbours in the thread; -1 where there is none.
        day: ordinal of the day it was said, 0 where unknown.
        fullness: how much a text says for its speaker, 0..1: the logarithm of its number of distinct stems over that of
            the 95th percentile of the same speaker's texts.
        dates: rows of (position, first day, last day) that texts name, days as ordinals.
        feedback: sum of what users said about each text.
        entities, attributes: positions by entity, and by (attribute, value).
    """

    phrases: Sequence[str]
    thread: Ints
    by_thread: Ints
    thread_starts: Ints
    threads: Bm25Index
    before: Ints
    after: Ints
    day: Ints
    fullness: Floats
    is_question: Floats
    has_date: Floats
    has_number: Floats
    dates: Ints
    feedback: Floats
    entities: dict[str, Ints]
    attributes: dict[tuple[str, str], Ints]

    @property
    def size(self) -> int:
        """Number of texts."""
        return len(self.phrases)


def build(
    extracted: Sequence[Extracted],
    threads: Sequence[str],
    times: Sequence[datetime | None],
    feedback: Mapping[int, float],
    bm25: Bm25Index,
) -> Features:
    """The features of texts in order of position; ``bm25`` is the index of the same texts."""
    import numpy as np

    numbers: dict[object, int] = {}
    # A text without a thread is numbered by its own position, which no thread's name equals.
    thread = [numbers.setdefault(name or position, len(numbers)) for position, name in enumerate(threads)]
    together: list[list[str]] = [[] for _ in numbers]
    before, after = np.full(len(thread), -1), np.full(len(thread), -1)
    last: dict[int, int] = {}
    entities: defaultdict[str, list[int]] = defaultdict(list)
    attributes: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    dates: list[tuple[int, int, int]] = []
    for position, (one, number) in enumerate(zip(extracted, thread, strict=True)):
        together[number].extend(one.stems)
        if number in last:
            before[position], after[last[number]] = last[number], position
        last[number] = position
        for entity in one.entities:
            entities[entity].append(position)
        for attribute in one.attributes:
            attributes[attribute].append(position)
        dates.extend((position, first.toordinal(), end.toordinal()) for first, end in one.dates)
    numbered = np.array(thread, dtype=np.int64)
    by_thread = np.argsort(numbered, kind="stable")
    said = np.zeros(len(thread), dtype=np.float32)
    for position, value in feedback.items():
        said[position] = value
    return Features(
        phrases=[f" {' '.join(one.stems)} " for one in extracted],
        thread=numbered,
        by_thread=by_thread,
        thread_starts=np.searchsorted(numbered[by_thread], np.arange(len(numbers))),
        threads=Bm25Index.build(together, bm25),
        before=before,
        after=after,
        day=np.array([time.toordinal() if time else 0 for time in times], dtype=np.int64),
        fullness=_fullness(extracted),
        is_question=np.array([one.is_question for one in extracted], dtype=np.float32),
        has_date=np.array([bool(one.dates) for one in extracted], dtype=np.float32),
        has_number=np.array([one.has_number for one in extracted], dtype=np.float32),
        dates=np.array(dates, dtype=np.int64).reshape(-1, 3),
        feedback=said,
        entities={key: np.array(value) for key, value in entities.items()},
        attributes={key: np.array(value) for key, value in attributes.items()},
    )


def _fullness(extracted: Sequence[Extracted]) -> Floats:
    import numpy as np

    said = np.log1p(np.array([len(set(one.stems)) for one in extracted], dtype=np.float32))
    speakers = np.array([next((value for name, value in one.attributes if name == "speaker"), "") for one in extracted])
    full = np.zeros_like(said)
    for speaker in np.unique(speakers):
        own = speakers == speaker
        full[own] = np.minimum(1.0, said[own] / max(float(np.percentile(said[own], 95)), 1e-6))
    return full
