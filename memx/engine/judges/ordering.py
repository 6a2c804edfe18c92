"""How well a reply keeps the order of events: Kendall's tau-b, and BEAM's score made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations


def kendall_tau_b(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's rank correlation with the correction for ties, in -1..1; None where either side is all ties.

    tau_b = (C - D) / sqrt((C + D + Tx) (C + D + Ty)), with C and D the concordant and discordant pairs, and Tx and Ty
    the pairs tied in x alone and in y alone (Kendall 1945, "The treatment of ties in ranking problems").

    Raises:
        ValueError: the sequences differ in length.
    """
    if len(x) != len(y):
        raise ValueError(f"two rankings of one length, not of {len(x)} and {len(y)}")
    concordant = discordant = tied_x = tied_y = 0
    for (x1, y1), (x2, y2) in combinations(zip(x, y, strict=True), 2):
        product = _sign(x1 - x2) * _sign(y1 - y2)
        if product > 0:
            concordant += 1
        elif product < 0:
            discordant += 1
        elif x1 != x2:
            tied_y += 1
        elif y1 != y2:
            tied_x += 1
    pairs = concordant + discordant
    scale = math.sqrt((pairs + tied_x) * (pairs + tied_y))
    return (concordant - discordant) / scale if scale else None


def event_order_score(positions: Sequence[int | None], listed: int) -> float:
    """BEAM's score for event ordering, in 0..1: (tau_b + 1) / 2 times the F1 of the events that were listed.

    Over the union of the true events and what the reply lists besides, each side ranks what it has, and ties what it
    has not at the last rank (Tavakoli et al. 2025, "Beyond a Million Tokens", event ordering).

    Args:
        positions: for each event in true order, its place in the reply, from 1; None where it is not listed.
        listed: how many events the reply lists in all.
    """
    taken = [place for place in positions if place is not None]
    if not taken:
        return 0.0
    strangers = [place for place in range(1, listed + 1) if place not in taken]
    last = len(positions) + len(strangers) + 1
    true_ranks = [*range(1, len(positions) + 1), *[last] * len(strangers)]
    reply_ranks = [*[last if place is None else place for place in positions], *strangers]
    tau = kendall_tau_b(true_ranks, reply_ranks)
    precision, recall = len(taken) / (len(taken) + len(strangers)), len(taken) / len(positions)
    f1 = 2 * precision * recall / (precision + recall)
    # A single event on both sides has no order that could be wrong.
    return (1.0 if tau is None else (tau + 1) / 2) * f1


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
