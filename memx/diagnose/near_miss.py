"""Near misses: a needed fact that did not make the top k, beside one that took its place, signal by signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memx.diagnose.carriers import Ladder
from memx.diagnose.details import overlap
from memx.diagnose.trail import Trail, ranks
from memx.model import Fact, NearMiss, Question, Retrieved, SignalGap

#: Signals that memx computes itself over both facts, whatever the memory system declares.
LEXICAL, SEMANTIC, RECENCY = "memx:lexical", "memx:semantic", "memx:recency"
#: Declared totals: what the ranking went by, so no signal whose weight could be raised.
_TOTALS = ("score", "final_score", "mmr_score")
_HALF_LIFE_DAYS = 30.0


def near_misses(
    question: Question,
    missing: Sequence[Trail],
    retrieved: Sequence[Retrieved],
    top_k: int,
    ladder: Ladder,
    said_at: Mapping[str, datetime | None],
    *,
    embedding: bool,
) -> tuple[NearMiss, ...]:
    """One near miss for each missing piece whose fact is active and for which something else stood in the top k.

    Args:
        said_at: when the content of each fact was said, by fact id, as far as known.
        embedding: compute the semantic signal; needs the ladder's embedder.
    """
    top = retrieved[:top_k]
    place = ranks(retrieved)
    rows = {row.fact_id: row for row in reversed(retrieved)}
    found = []
    taken: set[str] = set()
    for trail in missing:
        expected = next(iter(trail.carriage.active), None)
        if expected is None or expected.fact_id in taken:
            continue
        taken.add(expected.fact_id)
        carrying = {fact.fact_id for other in missing for fact in other.carriage.carriers}
        # The last row that made it took the place: it is the one to beat.
        winner = next((row for row in reversed(top) if row.fact_id not in carrying), None)
        if winner is None:
            continue
        gaps = _declared(rows.get(expected.fact_id), winner)
        gaps += _own(
            question, expected, winner, ladder, said_at, embedding=embedding and "semantic" not in _names(gaps)
        )
        keep = _would_keep(trail.rank, gaps)
        found.append(
            NearMiss(expected.fact_id, winner.fact_id, trail.rank, place[winner.fact_id], tuple(gaps), tuple(keep))
        )
    return tuple(found)


def _declared(expected: Retrieved | None, winner: Retrieved) -> list[SignalGap]:
    if expected is None:
        return []
    gaps = [
        SignalGap(name, float(value), float(winner.signals[name]))
        for name, value in expected.signals.items()
        if name in winner.signals
    ]
    if "score" not in _names(gaps) and expected.score is not None and winner.score is not None:
        gaps.append(SignalGap("score", expected.score, winner.score))
    return gaps


def _own(
    question: Question,
    expected: Fact,
    winner: Retrieved,
    ladder: Ladder,
    said_at: Mapping[str, datetime | None],
    *,
    embedding: bool,
) -> list[SignalGap]:
    lexicon = ladder.lexicon
    asked = lexicon.read(question.text)
    pair = (expected.content, winner.content)
    shares = [overlap(lexicon.read(text), asked, lexicon) for text in pair]
    gaps = [SignalGap(LEXICAL, round(shares[0], 4), round(shares[1], 4))]
    if embedding:
        vectors = ladder.vectors([question.text, *pair])
        near = [float(vectors[question.text] @ vectors[text]) for text in pair]
        gaps.append(SignalGap(SEMANTIC, round(near[0], 4), round(near[1], 4)))
    times = [said_at.get(expected.fact_id), said_at.get(winner.fact_id)]
    known = [time.replace(tzinfo=None) for time in said_at.values() if time]
    if times[0] and times[1] and known:
        now = max(known)
        fresh = [0.5 ** ((now - time.replace(tzinfo=None)).days / _HALF_LIFE_DAYS) for time in times if time]
        gaps.append(SignalGap(RECENCY, round(fresh[0], 4), round(fresh[1], 4)))
    return gaps


def _would_keep(rank: int | None, gaps: Sequence[SignalGap]) -> list[str]:
    """What would have kept the expected fact: a larger k, or more weight on a signal in which it leads.

    A weight is stated only for a ranking that is known to add weighted signals, as the built-in memory's mode ``full``
    is, whose total is ``mmr_score`` and whose signals have ``novelty`` among them: the total's gap over the lead.
    """
    keep = [f"k = {rank}"] if rank else []
    total = next((gap for gap in gaps if gap.name == "mmr_score"), None)
    if total is None or total.gap >= 0 or "novelty" not in _names(gaps):
        return keep
    for gap in gaps:
        if gap.name not in _TOTALS and not gap.name.startswith("memx:") and gap.gap > 0:
            keep.append(f"weight of {gap.name} +{-total.gap / gap.gap:.2g}")
    return keep


def _names(gaps: Sequence[SignalGap]) -> set[str]:
    return {gap.name for gap in gaps}
