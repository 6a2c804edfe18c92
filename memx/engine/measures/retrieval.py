"""Retrieval metrics of one question at turn and session level, with binary relevance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import log2

from memx.model import RankMetrics, RetrievalMetrics

#: The cut-offs at which metrics are taken.
KS = (1, 3, 5, 10, 30, 50)


def retrieval_metrics(
    retrieved_turns: Sequence[Sequence[str]],
    evidence: Sequence[str],
    session_of: Mapping[str, str],
    evidence_sessions: Sequence[str],
) -> RetrievalMetrics | None:
    """How well the retrieved facts bring the evidence back.

    A fact is relevant at turn level when one of its source turns is evidence that no better-ranked fact came from. The
    ranking of sessions is the facts' sessions, each at its first place. ``recall_any@K`` is 1 when something relevant
    stands in the first K, ``recall_all@K`` when everything does, ``ndcg_any@K = DCG / ideal DCG`` with
    ``DCG = sum of 1 / log2(1 + rank)`` over the relevant (Järvelin and Kekäläinen 2002), ``mrr`` the reciprocal rank of
    the first relevant in the whole list.

    Args:
        retrieved_turns: the source turn ids of each retrieved fact, best fact first.
        evidence: ids of the gold turns; those that ``session_of`` does not know do not count.
        session_of: the session id of every turn of the case.
        evidence_sessions: ids of the gold sessions; empty takes the sessions of ``evidence``.

    Returns:
        None when there is no evidence to find, or when facts came back and none tells its source.
    """
    gold = {turn for turn in evidence if turn in session_of}
    if not gold or (retrieved_turns and not any(retrieved_turns)):
        return None
    gold_sessions = set(evidence_sessions) or {session_of[turn] for turn in gold}
    turns = []
    missing = set(gold)
    for sources in retrieved_turns:
        turns.append(missing.intersection(sources))
        missing.difference_update(sources)
    sessions = dict.fromkeys(session_of[turn] for sources in retrieved_turns for turn in sources if turn in session_of)
    return RetrievalMetrics(
        turn=_metrics(turns, len(gold)),
        session=_metrics([{session} & gold_sessions for session in sessions], len(gold_sessions)),
    )


def _metrics(found: Sequence[Collection[str]], wanted: int) -> RankMetrics:
    """Metrics of a ranking whose places hold the relevant items that stand there for the first time."""
    recall_any, recall_all, ndcg = {}, {}, {}
    for k in KS:
        top = found[:k]
        recall_any[k] = float(any(top))
        recall_all[k] = float(sum(map(len, top)) == wanted)
        gained = sum(_discount(rank) for rank, items in enumerate(top, start=1) if items)
        ndcg[k] = gained / sum(_discount(rank) for rank in range(1, min(wanted, k) + 1))
    first = next((rank for rank, items in enumerate(found, start=1) if items), None)
    return RankMetrics(recall_any, recall_all, ndcg, mrr=1.0 / first if first else 0.0)


def _discount(rank: int) -> float:
    return 1.0 / log2(rank + 1)
