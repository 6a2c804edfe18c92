"""Each cause, told apart on stores that hold exactly one fault, with and without provenance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memx.diagnose.contract import History
from memx.diagnose.diagnoser import Diagnoser
from memx.model import CAUSES_OF, Cause, DecidedBy, Fact, FactStatus, Snapshot, Stage
from tests.diagnose.talk import FAIL, answered, ask, case, diagnose, rows, verbatim

DOGS = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "a4")
REHEARSAL = ask("When does Ines's choir rehearse?", "Monday at 8 pm", "b4", metadata={"stale_evidence": ["a3"]})
TWO_HOPS = ask("What does Tomas sell and where?", "cardamom buns on Skippergata", "b1", "b3")
OTHERS = [fact for turn, fact in verbatim().items() if turn in ("a2", "b2", "c1", "c3")]

both = pytest.mark.parametrize("provenance", [True, False], ids=["provenance", "text"])


@both
def test_never_stored(provenance: bool) -> None:
    found = diagnose(DOGS, verbatim(provenance=provenance, without=["a4"]).values(), rows(*OTHERS))
    assert (found.stage, found.cause) == (Stage.EXTRACTION, Cause.NEVER_STORED)
    assert "a4" in found.why
    assert found.evidence[0].stored == () and found.evidence[0].rank is None


@both
def test_partly_stored(provenance: bool) -> None:
    found = diagnose(TWO_HOPS, verbatim(provenance=provenance, without=["b1"]).values(), rows(*OTHERS))
    assert found.cause is Cause.PARTLY_STORED
    assert [piece.stored for piece in found.evidence] == [(), ("f-b3",)]


@both
def test_distorted(provenance: bool) -> None:
    facts = verbatim(provenance=provenance)
    facts["a4"] = replace(facts["a4"], content="Tomas: I adopted some greyhounds last week, they sleep all day.")
    found = diagnose(DOGS, facts.values(), rows(facts["a4"]))
    assert (found.stage, found.cause) == (Stage.EXTRACTION, Cause.DISTORTED)
    assert "moss" in found.why and "f-a4" in found.why


def test_a_clock_time_that_an_extracted_fact_lost() -> None:
    asked = ask("What time does Ines's choir rehearse?", "6:30 pm", "a3")
    lost = Fact("m1", "Ines joined a choir that rehearses on Thursday evenings.", source_turn_ids=("a3",))
    kept = Fact("m1", "Ines's choir rehearses Thursdays at 6:30 pm.", source_turn_ids=("a3",))
    assert diagnose(asked, [lost], rows(lost)).cause is Cause.DISTORTED
    assert diagnose(asked, [kept], rows(kept)).cause is Cause.SYNTHESIS


def test_a_relative_date_survives_as_an_absolute_one_and_not_as_recently() -> None:
    asked = ask("When did Ines join a choir?", "3 March 2024", "a3")
    absolute = Fact("m1", "Ines joined a choir on 3 March 2024.", source_turn_ids=("a3",))
    vague = Fact("m1", "Ines recently joined a choir.", source_turn_ids=("a3",))
    assert diagnose(asked, [absolute], rows(absolute)).stage is Stage.NONE
    assert diagnose(asked, [vague], rows(vague)).cause is Cause.DISTORTED


@both
def test_two_active_values_are_a_conflict_when_the_answer_used_the_old_one(provenance: bool) -> None:
    facts = verbatim(provenance=provenance)
    found = diagnose(REHEARSAL, facts.values(), rows(facts["a3"], facts["b4"]), answer="Thursday at 6:30 pm")
    assert (found.stage, found.cause) == (Stage.CONFLICT, Cause.BOTH_ACTIVE)
    assert {fact.fact_id: fact.role for fact in found.facts} == {"f-b4": "expected", "f-a3": "conflicting"}


def test_no_conflict_is_claimed_when_neither_value_came_back() -> None:
    facts = verbatim()
    found = diagnose(REHEARSAL, facts.values(), rows(*OTHERS))
    assert (found.stage, found.cause) == (Stage.RETRIEVAL, Cause.ABSENT)
    assert any("disagree" in note for note in found.notes)


def test_no_conflict_when_the_answer_used_the_current_value() -> None:
    facts = verbatim()
    found = diagnose(REHEARSAL, facts.values(), rows(facts["a3"], facts["b4"]), answer="Every Monday at 8 pm")
    assert found.cause is Cause.JUDGE_DOUBTFUL


@both
def test_a_planted_contradiction_is_a_conflict_without_any_annotation(provenance: bool) -> None:
    facts = verbatim(provenance=provenance)
    planted = Fact("x1", "Tomas: I adopted two greyhounds last week, Comet and Fern, they sleep all day.")
    found = diagnose(DOGS, [*facts.values(), planted], rows(planted, facts["a4"]), answer="Comet and Fern")
    assert found.cause is Cause.BOTH_ACTIVE
    assert {fact.fact_id for fact in found.facts} == {"x1", "f-a4"}


def test_facts_that_agree_are_no_conflict() -> None:
    facts = verbatim()
    more = [
        replace(facts["a4"], fact_id="copy"),
        Fact("m1", "Tomas adopted two greyhounds named Pixel and Moss.", source_turn_ids=("a4",)),
    ]
    found = diagnose(DOGS, [*facts.values(), *more], rows(facts["a4"], *more))
    assert found.cause is Cause.SYNTHESIS
    assert set(found.evidence[0].stored) == {"f-a4", "copy", "m1"}


@both
def test_a_superseded_fact_that_is_still_active(provenance: bool) -> None:
    facts = verbatim(provenance=provenance)
    facts["b4"] = replace(facts["b4"], supersedes=("f-a3",))
    found = diagnose(REHEARSAL, facts.values(), rows(facts["a3"], facts["b4"]), answer="Thursday")
    assert (found.stage, found.cause) == (Stage.MUTATION, Cause.OLD_STILL_ACTIVE)
    repeated = replace(facts["b4"], fact_id="again", supersedes=())
    assert diagnose(REHEARSAL, [*facts.values(), repeated], rows(facts["a3"], facts["b4"])).stage is Stage.MUTATION


@both
def test_the_current_fact_was_retired(provenance: bool) -> None:
    facts = verbatim(provenance=provenance)
    facts["b4"] = replace(facts["b4"], status=FactStatus.SUPERSEDED)
    found = diagnose(REHEARSAL, facts.values(), rows(facts["a3"]), answer="Thursday")
    assert (found.stage, found.cause) == (Stage.MUTATION, Cause.CURRENT_RETIRED)
    assert found.evidence[0].status is FactStatus.SUPERSEDED
    assert "f-a3" in found.why


def test_rewriting_in_place_that_lost_the_value() -> None:
    early = Fact("m1", "Tomas has two greyhounds named Pixel and Moss.")
    late = Fact("m1", "Tomas runs a bakery and takes a pottery course.")
    steps = [("s1", [early]), ("s2", [late]), ("s3", [late])]
    found = diagnose(DOGS, [late], rows(late), by_session=steps)
    assert (found.stage, found.cause) == (Stage.MUTATION, Cause.CURRENT_RETIRED)
    assert "session s2 rewrote it" in found.why


def test_a_fact_that_a_later_session_removed() -> None:
    facts = verbatim()
    left = [fact for turn, fact in facts.items() if turn != "a4"]
    found = diagnose(DOGS, left, rows(*left[:2]), by_session=[("s1", facts.values()), ("s2", left)])
    assert found.cause is Cause.CURRENT_RETIRED and "removed it" in found.why


def test_absent_ranked_below_k_and_partly_retrieved() -> None:
    facts = verbatim()
    assert diagnose(DOGS, facts.values(), rows(*OTHERS)).cause is Cause.ABSENT
    below = diagnose(DOGS, facts.values(), rows(*OTHERS, facts["a4"]))
    assert below.cause is Cause.RANKED_BELOW_K
    assert below.evidence[0].rank == 5 and not below.evidence[0].in_top_k
    partly = diagnose(TWO_HOPS, facts.values(), rows(facts["b3"], *OTHERS, facts["b1"]))
    assert partly.cause is Cause.PARTLY_RETRIEVED
    assert [piece.in_top_k for piece in partly.evidence] == [False, True]


def test_a_retired_fact_took_the_place_of_the_current_one() -> None:
    facts = verbatim()
    facts["a3"] = replace(facts["a3"], status=FactStatus.SUPERSEDED)
    facts["b4"] = replace(facts["b4"], supersedes=("f-a3",))
    found = diagnose(REHEARSAL, facts.values(), rows(facts["a3"], *OTHERS, facts["b4"]), answer="Thursday at 6:30 pm")
    assert (found.stage, found.cause) == (Stage.RETRIEVAL, Cause.STALE_OUTRANKED)
    assert "rank 1" in found.why and "rank 6" in found.why


def test_over_budget() -> None:
    facts = verbatim()
    retrieved = rows(OTHERS[0], OTHERS[1], facts["a4"])
    assert diagnose(DOGS, facts.values(), retrieved, context_budget=30).cause is Cause.OVER_BUDGET
    assert diagnose(DOGS, facts.values(), retrieved, context_budget=300).cause is Cause.SYNTHESIS


def test_beyond_the_memory() -> None:
    facts = verbatim()
    retrieved = rows(facts["a4"])
    assert diagnose(DOGS, facts.values(), retrieved, answer="Rex").cause is Cause.SYNTHESIS
    assert diagnose(DOGS, facts.values(), retrieved, answer="They are Moss and Pixel").cause is Cause.JUDGE_DOUBTFUL
    assert diagnose(DOGS, facts.values(), retrieved, answer="Not Pixel and Moss").cause is Cause.SYNTHESIS
    disputed = diagnose(DOGS, facts.values(), retrieved, answer="Rex", errata={"q1": {"kind": "hallucination"}})
    assert disputed.cause is Cause.GOLD_DISPUTED
    nowhere = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "z9")
    found = diagnose(nowhere, facts.values(), retrieved)
    assert (found.stage, found.cause) == (Stage.NONE, Cause.EVIDENCE_MISSING)
    assert "z9" in found.why


def test_cited_evidence_is_corrected_before_diagnosis() -> None:
    wrong = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "a2")
    errata = {"q1": {"kind": "wrong_citation", "corrected_evidence": ["a4"]}}
    found = diagnose(wrong, verbatim(without=["a4"]).values(), rows(*OTHERS), errata=errata)
    assert found.cause is Cause.NEVER_STORED and found.evidence[0].turn_id == "a4"


def test_without_annotations_pieces_are_derived_from_the_gold() -> None:
    bare = ask("What are the names of Tomas's dogs?", "Pixel and Moss")
    facts = verbatim()
    assert diagnose(bare, facts.values(), rows(*OTHERS)).cause is Cause.ABSENT
    gone = diagnose(bare, verbatim(without=["a4"]).values(), rows(*OTHERS))
    assert gone.cause is Cause.NEVER_STORED
    assert gone.confidence < diagnose(DOGS, verbatim(without=["a4"]).values(), rows(*OTHERS)).confidence
    assert any("derived" in note for note in gone.notes)


def test_session_diffs_serve_as_provenance() -> None:
    asked = ask("What animals does Tomas have?", "two greyhounds", "a4")
    early = [Fact("m1", "Tomas has two greyhounds.")]
    late = [*early, Fact("m2", "Tomas sells rye bread.")]
    found = diagnose(asked, late, rows(late[1]), by_session=[("s1", early), ("s2", late), ("s3", late)])
    assert found.stage is Stage.RETRIEVAL
    assert found.evidence[0].stored == ("m1",)
    assert found.decided_by is DecidedBy.PROVENANCE


def test_used_and_span_tell_what_the_answer_took() -> None:
    facts = verbatim()
    found = diagnose(TWO_HOPS, facts.values(), rows(facts["b1"], facts["b3"]), answer="He sells cardamom buns")
    assert [piece.used for piece in found.evidence] == [False, True]
    assert "cardamom bun" in found.evidence[1].span


def test_every_cause_belongs_to_its_stage() -> None:
    assert sorted(cause for causes in CAUSES_OF.values() for cause in causes) == sorted(Cause)


def test_a_contradiction_that_the_answer_should_have_pointed_out() -> None:
    gold = "You said two contradictory things about the choir's day: Thursday and Monday. Which is right?"
    asked = ask("On which day does the choir rehearse?", gold, "a3", "b4")
    facts = verbatim()
    seen = rows(facts["a3"], facts["b4"])
    assert diagnose(asked, facts.values(), seen, answer="On Monday").cause is Cause.BOTH_ACTIVE
    assert diagnose(asked, facts.values(), rows(*OTHERS), answer="On Monday").stage is Stage.RETRIEVAL
    pointed_out = diagnose(asked, facts.values(), seen, answer="That is contradictory: Thursday, and later Monday.")
    assert pointed_out.cause is Cause.JUDGE_DOUBTFUL


def test_an_abstention_follows_its_evidence_and_is_less_sure() -> None:
    asked = ask("What is the name of Ines's dog?", "Not mentioned", "a4", abstention=True, metadata={"trap": "Pixel"})
    facts = verbatim()
    found = diagnose(asked, facts.values(), rows(facts["a4"]), answer="Pixel")
    assert found.cause is Cause.SYNTHESIS and "refusal" in found.why
    assert found.confidence < diagnose(DOGS, facts.values(), rows(facts["a4"]), answer="Rex").confidence


def test_a_contradicting_statement_in_other_words() -> None:
    asked = ask("Where does Ines's sister Karin work as a vet?", "Trondheim", "a5")
    facts = verbatim(provenance=False)
    planted = Fact("x1", "Karin, the sister of Ines, has her work as a vet down in Kristiansand.")
    seen = rows(planted, facts["a5"])
    assert diagnose(asked, [*facts.values(), planted], seen, answer="In Kristiansand").cause is Cause.BOTH_ACTIVE
    elsewhere = Fact("x2", "Karin, the sister of Ines, has her work as a vet in the city of Trondheim.")
    assert diagnose(asked, [*facts.values(), elsewhere], seen, answer="In Kristiansand").cause is Cause.SYNTHESIS


def test_a_note_of_several_statements_carries_each_of_its_turns() -> None:
    note = Fact(
        "n1",
        "Tomas adopted two greyhounds named Pixel and Moss last week. Ines does not eat meat. "
        "Ines's choir rehearses every Monday at 8 pm.",
    )
    for question in (DOGS, ask("When does Ines's choir rehearse?", "Monday at 8 pm", "b4")):
        assert diagnose(question, [note], rows(note), answer="no idea").cause is Cause.SYNTHESIS
    lost = replace(note, content=note.content.replace("at 8 pm", "late"))
    found = diagnose(ask("At what time does Ines's choir rehearse?", "8 pm", "b4"), [lost], rows(lost))
    assert found.cause is Cause.DISTORTED


def test_what_a_note_denies_elsewhere_does_not_deny_the_turn() -> None:
    lines = [f"{turn.content}" for turn in (verbatim()[one] for one in ("a4", "b5"))]
    note = Fact("n1", " ".join([*lines, "Ines doesn't like dogs."]))
    assert diagnose(DOGS, [note], rows(note), answer="Rex").cause is Cause.SYNTHESIS


@pytest.mark.parametrize("sourced", [(True, True), (False, False), (True, False), (False, True)])
def test_a_turn_that_is_stored_raw_and_extracted_is_retrieved_when_either_comes_back(
    sourced: tuple[bool, bool],
) -> None:
    raw, told = sourced
    facts = verbatim(provenance=raw)
    note = Fact("n1", "Tomas adopted two greyhounds named Pixel and Moss.", source_turn_ids=("a4",) if told else ())
    store = [*facts.values(), note]
    for came in (note, facts["a4"]):
        found = diagnose(DOGS, store, rows(OTHERS[0], came), answer="Rex")
        assert (found.cause, found.evidence[0].rank) == (Cause.SYNTHESIS, 2)
        assert set(found.evidence[0].stored) == {"f-a4", "n1"}
    retired = [replace(fact, status=FactStatus.SUPERSEDED) if fact.fact_id == "f-a4" else fact for fact in store]
    assert diagnose(DOGS, retired, rows(note), answer="Rex").cause is Cause.SYNTHESIS
    assert diagnose(DOGS, store, rows(*OTHERS), answer="Rex").cause is Cause.ABSENT
    lossy = replace(note, content="Tomas adopted two dogs last week.")
    assert diagnose(DOGS, [*facts.values(), lossy], rows(lossy), answer="Rex").cause is Cause.ABSENT


def test_an_update_in_the_same_unit_of_time_is_another_date() -> None:
    asked = ask("When did Tomas adopt the greyhounds?", "the week before 4 March 2024", "a4")
    facts = verbatim(provenance=False)
    note = Fact("n1", "Tomas adopted two greyhounds three weeks ago, Pixel and Moss, and they sleep all day.")
    facts["a4"] = replace(facts["a4"], status=FactStatus.SUPERSEDED)
    assert diagnose(asked, [*facts.values(), note], rows(note), answer="Three weeks ago").stage is Stage.MUTATION


def test_a_turn_of_few_words_in_a_long_note() -> None:
    asked = ask("When did the piano arrive?", "on Friday", "a3")
    talk = case(asked)
    first = talk.sessions[0]
    turns = tuple(replace(turn, content="Yes, on Friday!") if turn.turn_id == "a3" else turn for turn in first.turns)
    talk = replace(talk, sessions=(replace(first, turns=turns), *talk.sessions[1:]))
    note = Fact("n1", "\n".join(f"{turn.speaker}: {turn.content}" for turn in turns))
    lacking = replace(note, content=note.content.replace("Ines: Yes, on Friday!", "Ines: It did."))
    for fact, stage in ((note, Stage.NONE), (lacking, Stage.EXTRACTION)):
        told = History(talk, Snapshot("talk", ()), Snapshot("talk", (fact,)))
        assert Diagnoser(told).diagnose(asked, rows(fact), 3, answered("no idea"), FAIL).stage is stage


def test_a_note_of_many_turns_that_lost_what_one_of_them_said() -> None:
    facts = verbatim(provenance=False)
    text = "\n".join(facts[turn].content for turn in ("a1", "a2", "a3", "a4", "a5"))
    note = Fact("n1", text.replace("Pixel and Moss", "one of those"))
    found = diagnose(DOGS, [note], rows(note), answer="Rex")
    assert (found.cause, found.evidence[0].note[:2]) == (Cause.DISTORTED, "n1")
