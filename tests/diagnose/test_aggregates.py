"""Near misses, their aggregate, clusters by mechanism, probes and the timeline."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from memx.diagnose.clusters import Mechanism, clusters
from memx.diagnose.diagnoser import Diagnoser
from memx.diagnose.explain import explain
from memx.diagnose.near_miss import LEXICAL, RECENCY, SEMANTIC
from memx.diagnose.probes import ProbeKind, ProbeResult, plan, price, summarize
from memx.diagnose.timeline import EventKind, of_fact, timeline
from memx.model import (
    Candidate,
    CandidateSource,
    Cause,
    Decider,
    Diagnosis,
    Fact,
    FactStatus,
    Outcome,
    Question,
    Retrieved,
    Trace,
    Verdict,
)
from tests.diagnose.talk import FAIL, answered, ask, case, diagnose, history, rows, verbatim

DOGS = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "a4")
FACTS = verbatim()


def row(turn_id: str, score: float, **signals: float) -> Retrieved:
    fact = FACTS[turn_id]
    return Retrieved(fact.fact_id, fact.content, score, signals)


def trace(question: Question, retrieved: list[Retrieved], answer: str, top_k: int = 2) -> Trace:
    diagnoser = Diagnoser(history(FACTS.values()))
    diagnosis = diagnoser.diagnose(question, retrieved, top_k, answered(answer), FAIL)
    return Trace(question, "talk", "talk", top_k, FAIL, tuple(retrieved), answered(answer), diagnosis)


def test_a_near_miss_says_which_signal_lost_and_what_would_have_kept_it() -> None:
    retrieved = [
        row("a5", 0.9, token=0.1, semantic=0.9),
        row("b1", 0.8, token=0.2, semantic=0.8),
        row("a4", 0.7, token=0.6, semantic=0.5),
    ]
    found = diagnose(DOGS, FACTS.values(), retrieved, top_k=2)
    (miss,) = found.near_misses
    assert (miss.expected_fact_id, miss.winner_fact_id, miss.expected_rank, miss.winner_rank) == ("f-a4", "f-b1", 3, 2)
    gaps = {signal.name: signal.gap for signal in miss.signals}
    assert gaps["token"] == pytest.approx(0.4) and gaps["semantic"] == pytest.approx(-0.3)
    assert gaps["score"] == pytest.approx(-0.1)
    assert gaps[RECENCY] < 0 and LEXICAL in gaps
    assert miss.would_keep == ("k = 3",)
    assert {fact.role for fact in found.facts} == {"expected", "winner"}


def test_a_weight_is_stated_for_a_ranking_that_adds_weighted_signals() -> None:
    retrieved = [
        row("a5", 0.9, token=0.1, novelty=1.0, mmr_score=0.9),
        row("b1", 0.8, token=0.2, novelty=1.0, mmr_score=0.8),
        row("a4", 0.7, token=0.6, novelty=0.9, mmr_score=0.7),
    ]
    (miss,) = diagnose(DOGS, FACTS.values(), retrieved, top_k=2).near_misses
    assert miss.would_keep == ("k = 3", "weight of token +0.25")


def test_memx_computes_signals_where_the_memory_declares_none() -> None:
    asked: list[str] = []

    def embed(texts: object) -> np.ndarray:
        asked.extend(texts)  # type: ignore[call-overload]
        return np.array([[1.0, 0.0] if "greyhounds" in text or "dogs" in text else [0.0, 1.0] for text in asked])

    found = diagnose(DOGS, FACTS.values(), rows(FACTS["a5"], FACTS["b1"], FACTS["a4"]), top_k=2, embed=embed)
    gaps = {signal.name: signal.gap for signal in found.near_misses[0].signals}
    assert gaps[SEMANTIC] == pytest.approx(1.0)
    asked.clear()
    diagnose(DOGS, FACTS.values(), rows(FACTS["a4"]), top_k=2, embed=embed)
    assert asked == []


def test_explain_adds_up_all_near_misses() -> None:
    one = trace(DOGS, [row("a5", 0.9, token=0.1), row("b1", 0.8, token=0.2), row("a4", 0.7, token=0.6)], "Rex")
    other = replace(one, question=replace(DOGS, question_id="q2"))
    said = explain([one, other])
    assert (said.failed, said.retrieval, len(said.near), said.ranked) == (2, 2, 2, 2)
    token = next(signal for signal in said.signals if signal.name == "token")
    assert (token.pairs, token.loses) == (2, 0) and token.mean_gap == pytest.approx(0.4)
    assert said.kept_by_k[5] == 2


def test_clusters_by_mechanism() -> None:
    when = ask("When did Ines join a choir?", "3 March 2024", "a3")
    where = ask("What does Tomas sell and where?", "cardamom buns on Skippergata", "b1", "b3")
    never = ask("Who is Ines's husband?", "Not mentioned", "a5", abstention=True)
    traces = [
        replace(trace(when, [row("a3", 1.0)], "on 4 March"), question=replace(when, question_id="w")),
        replace(trace(where, [row("b3", 1.0), row("a1", 0.9)], "buns"), question=replace(where, question_id="l")),
        replace(trace(never, [row("a5", 1.0)], "Karin"), question=replace(never, question_id="n")),
        Trace(DOGS, "talk", "talk", 2, Verdict(Outcome.PASS, Decider.RULE, "right")),
    ]
    found = {cluster.mechanism: cluster for cluster in clusters(traces)}
    assert found[Mechanism.RELATIVE_DATE].question_ids == ("w",)
    assert found[Mechanism.LIST_PARTLY].question_ids == ("l",)
    assert found[Mechanism.REFUSAL_EXPECTED].question_ids == ("n",)
    assert found[Mechanism.LIST_PARTLY].worth == pytest.approx(25.0)
    assert found[Mechanism.LIST_PARTLY].share == pytest.approx(1 / 3)


def test_a_sentence_start_in_the_question_is_no_speaker_that_was_lost() -> None:
    asked = ask("What are the dogs called? Mention only their names.", "Pixel and Moss", "a4")
    retrieved = [row("a5", 0.9), row("b1", 0.8), row("a4", 0.7)]
    (cluster,) = clusters([trace(asked, retrieved, "Rex")])
    assert cluster.mechanism is not Mechanism.SPEAKER_LOST


def test_probes_change_one_thing_each_and_the_first_flip_counts() -> None:
    retrieved = [row("a5", 0.9), row("b1", 0.8), row("a4", 0.7), row("a1", 0.6)]
    planned = {probe.kind: probe for probe in plan(trace(DOGS, retrieved, "Rex"), case().turns())}
    assert list(planned) == [ProbeKind.OTHER_JUDGE, ProbeKind.GOLD_EVIDENCE, ProbeKind.TWICE_K, ProbeKind.FOUR_TIMES_K]
    evidence = planned[ProbeKind.GOLD_EVIDENCE].context
    assert evidence is not None and evidence[0].content.startswith("[04 March 2024] Tomas: I adopted")
    assert len(planned[ProbeKind.TWICE_K].context or ()) == 4
    assert price(planned.values()) == (3, 4)
    right, wrong = Verdict(Outcome.PASS, Decider.RULE, "right"), FAIL
    results = [
        ProbeResult(probe, right if kind in (ProbeKind.TWICE_K, ProbeKind.FOUR_TIMES_K) else wrong)
        for kind, probe in planned.items()
    ]
    said = summarize(results)
    assert said.first == {"q1": ProbeKind.TWICE_K}
    assert said.fixes[ProbeKind.FOUR_TIMES_K] == 1
    assert "100 % fixed by k = 4 (1 of 1)" in said.lines()


def test_the_stale_fact_is_what_a_probe_removes() -> None:
    asked = ask("When does Ines's choir rehearse?", "Monday at 8 pm", "b4", metadata={"stale_evidence": ["a3"]})
    failed = trace(asked, [row("a3", 0.9), row("b4", 0.8)], "Thursday at 6:30 pm")
    assert failed.diagnosis and failed.diagnosis.cause is Cause.BOTH_ACTIVE
    probe = next(one for one in plan(failed, case().turns()) if one.kind is ProbeKind.WITHOUT_STALE)
    assert [one.fact_id for one in probe.context or ()] == ["f-b4"]


def test_the_timeline_of_a_fact() -> None:
    born = Fact("m1", "lives in Oslo")
    moved = Fact("m1", "lives in Bergen")
    retired = replace(moved, status=FactStatus.SUPERSEDED)
    new = Fact("m2", "lives in Voss", supersedes=("m1",))
    events = timeline(history([new], [("s1", [born]), ("s2", [moved]), ("s3", [retired, new])]))
    mine = of_fact(events, "m1")
    assert [(event.kind, event.session_id) for event in mine] == [
        (EventKind.BORN, "s1"),
        (EventKind.REWRITTEN, "s2"),
        (EventKind.RETIRED, "s3"),
        (EventKind.LOST, ""),
    ]
    assert mine[2].by == ("m2",)
    assert "'lives in Oslo' -> 'lives in Bergen'" in mine[1].sentence()


def test_a_retrieval_only_candidate_tells_nothing_of_use() -> None:
    text = Candidate("; ".join(fact.content for fact in FACTS.values()), CandidateSource.RETRIEVED)
    found: Diagnosis = Diagnoser(history(FACTS.values())).diagnose(DOGS, rows(FACTS["a5"]), 1, text, FAIL)
    assert found.evidence[0].used is None


def test_dates_of_near_misses_compare_across_zones() -> None:
    facts = [replace(fact, created_at=datetime.fromisoformat("2024-03-04T10:00:00+02:00")) for fact in FACTS.values()]
    found = diagnose(DOGS, facts, rows(facts[4], facts[5], facts[3]), top_k=2)
    assert RECENCY in {signal.name for signal in found.near_misses[0].signals}
