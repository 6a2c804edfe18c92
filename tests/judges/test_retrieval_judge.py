"""Judging retrieved text by the evidence turns among it."""

from __future__ import annotations

from memx.engine.judges.contract import JudgeItem
from memx.engine.judges.retrieval import judge_retrieved
from memx.model import Candidate, CandidateSource, Decider, Outcome, Question, Retrieved
from tests.diagnose.talk import ask, case, rows, verbatim

TURNS = case().turns()
FACTS = verbatim(provenance=False)
TWO_HOPS = ask("What does Tomas sell and where?", "cardamom buns on Skippergata", "b1", "b3")


def item(question: Question, retrieved: list[Retrieved], **sources: tuple[str, ...]) -> JudgeItem:
    text = "; ".join(row.content for row in retrieved)
    evidence = tuple(TURNS[one] for one in question.evidence if one in TURNS)
    return JudgeItem(question, Candidate(text, CandidateSource.RETRIEVED), evidence, tuple(retrieved), sources)


def test_all_evidence_by_text() -> None:
    verdict = judge_retrieved(item(TWO_HOPS, rows(FACTS["a1"], FACTS["b3"], FACTS["b1"])))
    assert (verdict.outcome, verdict.decider, verdict.score) == (Outcome.PASS, Decider.RULE, 1.0)


def test_a_missing_turn_is_named() -> None:
    verdict = judge_retrieved(item(TWO_HOPS, rows(FACTS["a1"], FACTS["b3"])))
    assert verdict.outcome is Outcome.FAIL
    assert verdict.why.endswith("missing: b1") and verdict.score == 0.5


def test_provenance_counts_unless_the_detail_was_lost() -> None:
    dogs = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "a4")
    kept, lost = Retrieved("m1", "Greyhounds: Pixel, Moss"), Retrieved("m1", "Tomas has greyhounds")
    assert judge_retrieved(item(dogs, [kept], m1=("a4",))).outcome is Outcome.PASS
    assert judge_retrieved(item(dogs, [lost], m1=("a4",))).outcome is Outcome.FAIL
    declared = Retrieved("m1", "Greyhounds: Pixel, Moss", metadata={"source_turn_ids": ["a4"]})
    assert judge_retrieved(item(dogs, [declared])).outcome is Outcome.PASS
    assert judge_retrieved(item(dogs, [kept], m1=("c1",))).outcome is Outcome.FAIL


def test_a_replaced_value_is_not_needed() -> None:
    asked = ask("When does the choir rehearse?", "Monday at 8 pm", "a3", "b4", metadata={"stale_evidence": ["a3"]})
    assert judge_retrieved(item(asked, rows(FACTS["b4"]))).outcome is Outcome.PASS
    assert judge_retrieved(item(asked, rows(FACTS["a3"]))).outcome is Outcome.FAIL


def test_without_evidence_the_gold_decides() -> None:
    bare = ask("Where does Karin work?", "Trondheim")
    assert judge_retrieved(item(bare, rows(FACTS["a5"]))).outcome is Outcome.PASS
    assert judge_retrieved(item(bare, rows(FACTS["a4"]))).outcome is Outcome.FAIL
    assert judge_retrieved(item(ask("Where?", ""), rows(FACTS["a5"]))).outcome is Outcome.UNJUDGED
