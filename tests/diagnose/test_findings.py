"""Material that is odd: named findings, no crash, no sure guess."""

from __future__ import annotations

from dataclasses import replace

from memx.diagnose.findings import circular
from memx.model import Cause, Fact, Retrieved, Stage
from tests.diagnose.talk import ask, diagnose, rows, verbatim

DOGS = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "a4")


def notes(facts: list[Fact], retrieved: list[Retrieved]) -> str:
    return "\n".join(diagnose(DOGS, facts, retrieved).notes)


def test_each_oddity_of_a_snapshot_is_named() -> None:
    facts = list(verbatim().values())
    odd = [
        *facts,
        replace(facts[0], content="something else"),
        Fact("empty", "  "),
        Fact("x", "one", supersedes=("y", "ghost")),
        Fact("y", "two", supersedes=("x",)),
        Fact("z", "three", source_turn_ids=("D99:1",)),
    ]
    said = notes(odd, rows(facts[3]))
    assert "1 fact id more than once in the snapshot: f-a1" in said
    assert "empty content: empty" in said
    assert "x -> ghost" in said
    assert "in a circle: x -> y -> x" in said
    assert "name no turn of the case: z" in said


def test_search_and_export_disagree_and_the_stage_is_still_right() -> None:
    facts = verbatim(without=["a4"])
    stranger = Retrieved("profile-7", "Tomas adopted two greyhounds, Pixel and Moss.")
    found = diagnose(DOGS, facts.values(), [stranger])
    assert found.stage is Stage.NONE
    assert any("search and export disagree" in note and "profile-7" in note for note in found.notes)


def test_a_store_without_visible_content_is_never_sure() -> None:
    hollow = [replace(fact, content="") for fact in verbatim().values()]
    found = diagnose(DOGS, hollow, [])
    assert (found.stage, found.cause) == (Stage.RETRIEVAL, Cause.ABSENT)
    assert found.confidence <= 0.5
    blind = diagnose(DOGS, [replace(fact, source_turn_ids=()) for fact in hollow], [])
    assert blind.confidence <= 0.5


def test_an_empty_store_is_named() -> None:
    found = diagnose(DOGS, [], [])
    assert found.cause is Cause.NEVER_STORED
    assert any("no fact at all" in note for note in found.notes)


def test_circles_of_any_length() -> None:
    chain = [Fact(str(number), "x", supersedes=(str(number + 1),)) for number in range(5000)]
    assert circular(chain) == ()
    assert circular([*chain, Fact("5000", "x", supersedes=("4998",))]) == ("4998", "4999", "5000", "4998")
    assert circular([Fact("a", "x", supersedes=("a",))]) == ("a", "a")


def test_links_in_a_circle_decide_no_stage() -> None:
    facts = list(verbatim().values())
    ring = [replace(fact, supersedes=(facts[(number + 1) % len(facts)].fact_id,)) for number, fact in enumerate(facts)]
    found = diagnose(DOGS, ring, rows(ring[0]))
    assert (found.stage, found.cause) == (Stage.RETRIEVAL, Cause.ABSENT)
    assert any("in a circle" in note and "more" in note for note in found.notes)


def test_what_a_row_with_a_repeated_id_says_is_stored() -> None:
    facts = [replace(fact, fact_id="same") for fact in verbatim(provenance=False).values()]
    found = diagnose(DOGS, facts, rows(facts[0]))
    assert found.stage is not Stage.EXTRACTION
    assert any("1 fact id more than once" in note for note in found.notes)
