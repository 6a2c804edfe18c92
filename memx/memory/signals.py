"""Signals of ranking: how well each stored text fits a query, one array of values per signal.

The registry names each signal, its default weight and its formula. A text's score is the weighted sum of its signals,
so a weight says how much one unit of a signal is worth, and a gap in a signal how much it cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from memx.memory.features import Features
from memx.memory.query import Query

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]

#: Half-life of the recency signal.
RECENCY_HALF_LIFE_DAYS = 30.0
#: A date that spans more days than this ("last year") places no text.
_PLACING_SPAN_DAYS = 40
# Parts of attribute_boost, relative to a text said on the very day that the query names.
_SPEAKER_PART, _DATE_ASKED_PART, _NUMBER_ASKED_PART, _DATE_NAMED_PART = 0.4, 0.35, 0.3, 0.28
_QUESTION_PART = 0.1
_BEST_COSINE_PART = 0.75


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: ``compute`` gives its value for every text."""

    name: str
    weight: float
    compute: Callable[[Query, Features], Floats]


_REGISTRY: dict[str, Signal] = {}


def signal(name: str, weight: float) -> Callable[[Callable[[Query, Features], Floats]], Callable[..., Floats]]:
    """Register a function as a signal under a name, with its default weight; each query computes it once."""

    def register(compute: Callable[[Query, Features], Floats]) -> Callable[..., Floats]:
        def once(query: Query, features: Features) -> Floats:
            found: Floats = query.once(f"signal {name}", lambda: compute(query, features))
            return found

        once.__doc__ = compute.__doc__
        _REGISTRY[name] = Signal(name, weight, once)
        return once

    return register


def registry() -> Mapping[str, Signal]:
    """All signals by name."""
    return dict(_REGISTRY)


def default_weights() -> dict[str, float]:
    """The default weight of every signal."""
    return {found.name: found.weight for found in _REGISTRY.values()}


@signal("semantic", 5.8)
def semantic(query: Query, features: Features) -> Floats:
    """Cosine of the text with the query's topic: the query without the main speakers it names."""
    return query.semantic


@signal("token", 5.4)
def token(query: Query, features: Features) -> Floats:
    """BM25 as a share of the most that the query's words can score."""
    return query.token


@signal("phrase", 1.8)
def phrase(query: Query, features: Features) -> Floats:
    """Share of the query's pairs of neighbouring words that stand side by side in the text too."""
    import numpy as np

    share = np.zeros(features.size, dtype=np.float32)
    pairs = set(pairwise(query.stems))
    bm25 = query.indexes.bm25
    for first, second in pairs:
        side_by_side = f" {first} {second} "
        both = np.intersect1d(bm25.positions(first), bm25.positions(second), assume_unique=True).tolist()
        share[[position for position in both if side_by_side in features.phrases[position]]] += 1.0 / len(pairs)
    return share


@signal("graph", 3.4)
def graph(query: Query, features: Features) -> Floats:
    """Activation that reaches a text from its neighbours in the thread and from the entities that the query names.

    A text's own activation is its cosine plus its BM25 share. Half of it flows to each neighbour and a quarter to the
    next but one; an entity named in ``n`` texts passes ``0.1 / (1 + ln n)`` to each.
    """
    import numpy as np

    activation = np.maximum(query.semantic, 0) + query.token
    reached = np.zeros(features.size, dtype=np.float32)
    for near in (features.before, features.after):
        steps, share = near, 0.5
        for _ in range(2):
            linked = np.flatnonzero(steps >= 0)
            reached[linked] += share * activation[steps[linked]]
            steps = np.where(steps >= 0, near[steps], -1)
            share /= 4
    for entity in query.entities(features):
        positions = features.entities[entity]
        reached[positions] += 0.1 / (1 + np.log(len(positions)))
    return reached


@signal("thread", 5.9)
def thread(query: Query, features: Features) -> Floats:
    """How well the whole thread that the text stands in fits: its BM25 share, words weighed as in single texts, and
    three quarters of the highest cosine in it (a document by its best passage: Dai and Callan, SIGIR 2019)."""
    import numpy as np

    best: Floats = np.maximum.reduceat(query.semantic[features.by_thread], features.thread_starts)
    fits: Floats = features.threads.shares(query.stems) + _BEST_COSINE_PART * best
    return fits[features.thread]


@signal("attribute_boost", 6.3)
def attribute_boost(query: Query, features: Features) -> Floats:
    """What the query asks for by attribute: the speaker, a kind of answer, a time.

    Sum of 0.4 for a text of the speaker that the query names, 0.35 for one that names a date when a date is asked, 0.3
    for one with a number when a number is asked, 0.28 for one that names the query's date, and up to 1 for one said on
    the query's date: full for a day or week, 0.8 for a month, 0.3 for longer, fading by ``exp(-days / 7)`` after it
    (what happens is told later) and ``exp(-days / 2)`` before it.
    """
    import numpy as np

    boost = np.zeros(features.size, dtype=np.float32)
    spoken = np.zeros(features.size, dtype=bool)
    for attribute in query.attributes(features):
        spoken[features.attributes[attribute]] = True
    boost += _SPEAKER_PART * spoken
    if query.asks_date:
        boost += _DATE_ASKED_PART * features.has_date
    if query.asks_number:
        boost += _NUMBER_ASKED_PART * features.has_number
    said, named = np.zeros_like(boost), np.zeros_like(boost)
    for first, last in query.dates:
        span = last - first
        certainty = 1.0 if span < 8 else 0.8 if span < _PLACING_SPAN_DAYS else 0.3
        early, late = np.maximum(0, first - features.day), np.maximum(0, features.day - last)
        said = np.maximum(said, certainty * np.exp(-early / 2.0 - late / 7.0) * (features.day > 0))
        positions, starts, ends = features.dates.T
        fits = (starts <= last) & (ends >= first) & (ends - starts <= _PLACING_SPAN_DAYS)
        named[positions[fits]] = np.maximum(named[positions[fits]], certainty)
    total: Floats = boost + said + _DATE_NAMED_PART * named
    return total


@signal("importance", 3.8)
def importance(query: Query, features: Features) -> Floats:
    """How much a text says, whatever is asked: 0.9 by its fullness for its speaker, 0.1 for being no question."""
    value: Floats = (1 - _QUESTION_PART) * features.fullness + _QUESTION_PART * (1 - features.is_question)
    return value


@signal("recency", 0.0)
def recency(query: Query, features: Features) -> Floats:
    """``0.5 ** (age / 30 days)``, the age counted from the newest text; 0 where the time is unknown.

    Its default weight is zero: questions about a history ask for its old parts as often as for its new ones.
    """
    import numpy as np

    newest = int(features.day.max(initial=0))
    value: Floats = np.where(features.day > 0, 0.5 ** ((newest - features.day) / RECENCY_HALF_LIFE_DAYS), 0.0)
    return value


@signal("feedback", 1.0)
def feedback(query: Query, features: Features) -> Floats:
    """What users said about a text: ``tanh`` of the sum of their feedback, so -1..1; 0 where nobody said anything."""
    import numpy as np

    return np.tanh(features.feedback)
