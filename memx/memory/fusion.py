"""Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009): ``score(d) = sum over lists of 1 / (k + rank)``.

The paper takes k = 60, for many rankings of thousands of texts. Of two rankings of which one is much the better, that
prefers whatever stands in both to what one of them puts first; 5 was chosen on five conversations of LoCoMo.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

RRF_K = 5


def reciprocal_rank_fusion(rankings: Iterable[Sequence[int]], k: int = RRF_K) -> dict[int, float]:
    """Items of several rankings (best first) with their fused score, best first; ties keep the order of first sight."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (k + rank)
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))
