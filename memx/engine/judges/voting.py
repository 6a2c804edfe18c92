"""Several votes on one question, and how well a judge agrees with itself over a run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Vote:
    """One reading of one question; ``score`` in 0..1 where the judge grades."""

    passed: bool
    why: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class VoteStats:
    """How a judge's votes lie to each other.

    Attributes:
        questions: judged with more than one vote.
        unanimous: of these, how many without a dissenting vote.
        pairs, flipped: pairs of votes on the same question, and how many of them disagree.
        confirmed, overturned: FAILs that were asked again, and how many of them became PASS.
    """

    questions: int = 0
    unanimous: int = 0
    pairs: int = 0
    flipped: int = 0
    confirmed: int = 0
    overturned: int = 0

    @property
    def agreement(self) -> float | None:
        """Share of questions whose votes all agree; None where no question had several."""
        return self.unanimous / self.questions if self.questions else None

    @property
    def flip_rate(self) -> float | None:
        """Share of pairs of votes that disagree: how likely a second look gives another verdict."""
        return self.flipped / self.pairs if self.pairs else None


class VoteCounter:
    """Gathers :class:`VoteStats` from several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._stats = VoteStats()

    def count(self, votes: Sequence[Vote], *, confirmed: bool = False, overturned: bool = False) -> None:
        """Count one question."""
        several = len(votes) > 1
        pairs = list(combinations([vote.passed for vote in votes], 2))
        with self._guard:
            old = self._stats
            self._stats = VoteStats(
                old.questions + several,
                old.unanimous + (several and len({vote.passed for vote in votes}) == 1),
                old.pairs + len(pairs),
                old.flipped + sum(a != b for a, b in pairs),
                old.confirmed + confirmed,
                old.overturned + overturned,
            )

    @property
    def stats(self) -> VoteStats:
        """The counts so far."""
        with self._guard:
            return self._stats


def majority(votes: Sequence[Vote]) -> Vote | None:
    """The winning side's vote: its first reason, its mean score, and the count where votes differ; None on a tie."""
    passed = [vote for vote in votes if vote.passed]
    failed = [vote for vote in votes if not vote.passed]
    if len(passed) == len(failed):
        return None
    winners = max(passed, failed, key=len)
    scores = [vote.score for vote in winners if vote.score is not None]
    why = winners[0].why
    if len(votes) > 1:
        why = f"{why} ({len(winners)} of {len(votes)} votes)".strip()
    return Vote(winners[0].passed, why, sum(scores) / len(scores) if scores else None)
