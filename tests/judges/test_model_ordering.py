"""Kendall's tau-b and BEAM's score for the order of events."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.engine.judges.ordering import event_order_score, kendall_tau_b

ranks = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


def test_known_values() -> None:
    assert kendall_tau_b([1, 2, 3], [1, 2, 3]) == 1.0
    assert kendall_tau_b([1, 2, 3], [3, 2, 1]) == -1.0
    # Worked by hand: 4 concordant, 1 tied in x, 1 tied in y: 4 / sqrt(5 * 5).
    assert kendall_tau_b([1, 2, 2, 3], [1, 2, 3, 3]) == pytest.approx(0.8)
    # As scipy.stats.kendalltau gives it.
    pi, e = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]
    assert kendall_tau_b(pi, e) == pytest.approx(0.13041013273932525)
    assert kendall_tau_b([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="one length"):
        kendall_tau_b([1], [1, 2])


@given(ranks)
def test_it_is_symmetric_and_turns_with_the_order(pairs: list[tuple[int, int]]) -> None:
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    tau = kendall_tau_b(x, y)
    assert kendall_tau_b(y, x) == tau
    assert tau is None or -1 <= tau <= 1
    assert kendall_tau_b(x, [-value for value in y]) == (None if tau is None else pytest.approx(-tau))


def test_it_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    dice = random.Random(7)
    for _ in range(300):
        x, y = ([dice.randint(0, 5) for _ in range(8)] for _ in range(2))
        ours, theirs = kendall_tau_b(x, y), float(stats.kendalltau(x, y).statistic)
        assert (ours is None and theirs != theirs) or ours == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("positions", "listed", "score"),
    [
        ([1, 2, 3], 3, 1.0),
        ([3, 2, 1], 3, 0.0),
        ([1], 1, 1.0),
        ([None, None], 2, 0.0),
        # One stranger behind: all pairs agree, precision 3/4.
        ([1, 2, 3], 4, 2 * 0.75 / 1.75),
        # One event missing at the end: still all pairs agree, recall 2/3.
        ([1, 2, None], 2, 2 * (2 / 3) / (5 / 3)),
    ],
)
def test_event_order_scores(positions: list[int | None], listed: int, score: float) -> None:
    assert event_order_score(positions, listed) == pytest.approx(score)


@given(st.permutations(range(1, 6)), st.integers(0, 5))
def test_scores_stay_in_range_and_strangers_never_help(order: list[int], strangers: int) -> None:
    alone = event_order_score(order, 5)
    assert 0 <= alone <= 1
    assert 0 <= event_order_score(order, 5 + strangers) <= 1
    assert event_order_score([1, 2, 3, 4, 5], 5 + strangers) <= 1
