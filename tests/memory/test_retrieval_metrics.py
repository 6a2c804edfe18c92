"""Retrieval metrics against ir-measures (which calls trec_eval's own code), and their edges."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.engine.measures.retrieval import KS, retrieval_metrics

SESSION_OF = {f"s{s}t{t}": f"s{s}" for s in range(8) for t in range(10)}
TURNS = sorted(SESSION_OF)


def _reference(ranking: list[str], gold: set[str]) -> dict[str, float]:
    run = {"q": {item: float(len(ranking) - rank) for rank, item in enumerate(ranking)}}
    wanted = [ir_measures.RR, *[m @ k for k in KS for m in (ir_measures.nDCG, ir_measures.Success, ir_measures.R)]]
    found = ir_measures.calc_aggregate(wanted, {"q": dict.fromkeys(gold, 1)}, run)
    return {str(name): value for name, value in found.items()}


@given(
    st.lists(st.sampled_from(TURNS), unique=True, min_size=1, max_size=60), st.sets(st.sampled_from(TURNS), min_size=1)
)
def test_formulas_agree_with_trec_eval(ranking: list[str], gold: set[str]) -> None:
    metrics = retrieval_metrics([[turn] for turn in ranking], sorted(gold), SESSION_OF, [])
    assert metrics is not None
    sessions = list(dict.fromkeys(SESSION_OF[turn] for turn in ranking))
    for level, order, wanted in (
        (metrics.turn, ranking, gold),
        (metrics.session, sessions, {SESSION_OF[turn] for turn in gold}),
    ):
        expected = _reference(order, wanted)
        assert level.mrr == pytest.approx(expected["RR"])
        for k in KS:
            assert level.ndcg_any[k] == pytest.approx(expected[f"nDCG@{k}"])
            assert level.recall_any[k] == expected[f"Success@{k}"]
            assert level.recall_all[k] == float(expected[f"R@{k}"] == 1.0)


def test_fact_from_several_turns_counts_once_and_brings_all_of_them() -> None:
    metrics = retrieval_metrics([["s1t1", "s1t2"], ["s1t1"], ["s2t0"]], ["s1t1", "s1t2"], SESSION_OF, ["s1"])
    assert metrics is not None
    assert metrics.turn.recall_all[1] == 1.0
    assert metrics.turn.ndcg_any[10] < 1.0
    assert metrics.session.ndcg_any[1] == 1.0


def test_nothing_retrieved_is_zero_and_nothing_to_find_is_none() -> None:
    found_nothing = retrieval_metrics([], ["s1t1"], SESSION_OF, [])
    assert found_nothing is not None and found_nothing.turn.recall_any[50] == 0.0 and found_nothing.session.mrr == 0.0
    assert retrieval_metrics([["s1t1"]], [], SESSION_OF, []) is None
    assert retrieval_metrics([["s1t1"]], ["gone"], SESSION_OF, []) is None
    assert retrieval_metrics([[], []], ["s1t1"], SESSION_OF, []) is None


def test_evidence_that_points_nowhere_is_no_part_of_the_denominator() -> None:
    metrics = retrieval_metrics([["s1t1"]], ["s1t1", "gone"], SESSION_OF, [])
    assert metrics is not None and metrics.turn.recall_all[1] == 1.0
