"""All near misses of a run together: which signal loses, by how much, and what a larger k would have kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from memx.model import NearMiss, Stage, Trace


@dataclass(frozen=True, slots=True)
class SignalAdvantage:
    """One signal over all near misses that have it.

    Attributes:
        pairs: in how many near misses both facts have it.
        mean_gap: expected minus winner on average: negative where the signal works against the needed facts.
        loses: in how many the winner is ahead.
    """

    name: str
    pairs: int
    mean_gap: float
    median_gap: float
    loses: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the near misses of a run say together.

    Attributes:
        failed: diagnosed FAILs.
        retrieval: those of stage retrieval.
        near: near misses by question id, in the run's order.
        kept_by_k: for each k, how many near misses of a known rank it would have kept.
        ranked: near misses whose expected fact has a known rank.
    """

    failed: int
    retrieval: int
    near: tuple[tuple[str, NearMiss], ...]
    signals: tuple[SignalAdvantage, ...]
    kept_by_k: dict[int, int]
    ranked: int


def explain(traces: Iterable[Trace], ks: Iterable[int] = (5, 10, 15, 20, 30, 50)) -> Explanation:
    """Gather the near misses of a run.

    Args:
        ks: the values of k to count for.
    """
    diagnosed = [(trace, trace.diagnosis) for trace in traces if trace.diagnosis is not None]
    near = tuple((trace.question.question_id, miss) for trace, found in diagnosed for miss in found.near_misses)
    gaps: dict[str, list[float]] = {}
    for _, miss in near:
        for signal in miss.signals:
            gaps.setdefault(signal.name, []).append(signal.gap)
    signals = [
        SignalAdvantage(name, len(found), fmean(found), median(found), sum(gap < 0 for gap in found))
        for name, found in gaps.items()
    ]
    ranks = Counter(miss.expected_rank for _, miss in near if miss.expected_rank is not None)
    return Explanation(
        failed=len(diagnosed),
        retrieval=sum(found.stage is Stage.RETRIEVAL for _, found in diagnosed),
        near=near,
        signals=tuple(sorted(signals, key=lambda one: (one.mean_gap, one.name))),
        kept_by_k={k: sum(count for rank, count in ranks.items() if rank <= k) for k in ks},
        ranked=ranks.total(),
    )
