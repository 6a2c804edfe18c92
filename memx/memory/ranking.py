"""The ranking pipeline of mode ``full``: signals to a score, MMR against repetition, the finalizer.

MMR (Carbonell and Goldstein 1998) picks, one by one, the candidate with the highest
``score - weight * max cosine with what is picked``, which orders as their
``lambda * relevance - (1 - lambda) * similarity`` does with ``weight = (1 - lambda) / lambda``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memx.errors import UsageError
from memx.memory.features import Features
from memx.memory.query import Query
from memx.memory.signals import default_weights, registry

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Doubles = np.ndarray[Any, np.dtype[np.float64]]

#: MMR orders this many of the best candidates.
MMR_POOL = 60
#: The signal that MMR adds: 1 less the highest cosine with what is picked already.
NOVELTY = "novelty"


@dataclass(frozen=True, slots=True)
class Ranked:
    """One ranked text. ``signals`` holds ``score``, ``mmr_score`` and ``final_score`` beside the signals."""

    position: int
    final_score: float
    signals: Mapping[str, float]
    rank_before_mmr: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranked texts, best first, and what MMR did."""

    ranked: tuple[Ranked, ...]
    mmr: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weights:
    """What one unit of each signal is worth; ``novelty`` is MMR's.

    Raises:
        UsageError: a name that is no signal, or a value that is no finite number.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    novelty: float = 2.0

    def __post_init__(self) -> None:
        known = default_weights()
        for name, value in self.values.items():
            if name not in known:
                raise UsageError(f"no signal named '{name}'", f"There are: {', '.join(known)}")
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise UsageError(f"the weight of signal '{name}' is no number: {value!r}")
        object.__setattr__(self, "values", {**known, **self.values})


def rank(query: Query, features: Features, candidates: Iterable[int], weights: Weights, limit: int) -> Ranking:
    """The best ``limit`` of the candidates by weighted signals and MMR.

    ``score`` is the weighted sum, ``mmr_score = score - weight * (1 - novelty)``, and ``final_score`` the odds against
    the first: ``exp(mmr_score - its mmr_score)``.
    """
    import numpy as np

    positions = np.array(sorted(set(candidates)), dtype=np.int64)
    values = {name: found.compute(query, features)[positions] for name, found in registry().items()}
    score = np.zeros(len(positions), dtype=np.float64)
    for name, value in values.items():
        score += weights.values[name] * value
    order = np.argsort(-score, kind="stable")
    pool = order[: max(MMR_POOL, limit)]
    vectors = query.indexes.dense.rows(positions[pool].tolist()) if query.indexes.embedded else None
    picked, novelty = _mmr(score[pool], vectors, weights.novelty, limit)
    ranked: list[Ranked] = []
    best = 0.0
    shown = np.stack([*values.values(), score])[:, pool].T.tolist()
    for place, new in zip(picked, novelty, strict=True):
        *parts, total = shown[place]
        mmr_score = total - weights.novelty * (1 - new)
        best = mmr_score if not ranked else best
        final = math.exp(mmr_score - best)
        signals = dict(zip(values, parts, strict=True))
        signals |= {NOVELTY: new, "score": total, "mmr_score": mmr_score, "final_score": final}
        ranked.append(Ranked(int(positions[pool[place]]), final, signals, place + 1))
    moves = [abs(now - one.rank_before_mmr) for now, one in enumerate(ranked, start=1)]
    mmr = {"moved": sum(1 for move in moves if move), "largest_move": max(moves, default=0), "pool": len(pool)}
    return Ranking(tuple(ranked), mmr)


def _mmr(score: Doubles, vectors: Floats | None, weight: float, limit: int) -> tuple[list[int], list[float]]:
    """The first ``limit`` indexes in the order picked, each with its novelty then; scores come best first."""
    import numpy as np

    if vectors is None or weight <= 0:
        picked = list(range(min(limit, len(score))))
        return picked, [1.0] * len(picked)
    left = score.copy()
    similar = np.zeros(len(score), dtype=np.float64)
    picked, novelty = [], []
    for _ in range(min(limit, len(score))):
        best = int((left - weight * similar).argmax())
        picked.append(best)
        novelty.append(1.0 - float(similar[best]))
        left[best] = -np.inf
        # One product per pick: cheaper than all pairs at once, for which BLAS would wake its threads.
        np.maximum(similar, vectors @ vectors[best], out=similar)
    return picked, novelty
