"""Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009): ``score(d) = sum over lists of 1 / (60 + rank)``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

RRF_K = 60


def reciprocal_rank_fusion(rankings: Iterable[Sequence[int]], k: int = RRF_K) -> dict[int, float]:
    """Items of several rankings (best first) with their fused score, best first; ties keep the order of first sight."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (k + rank)
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))
