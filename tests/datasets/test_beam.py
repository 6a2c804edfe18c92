"""BEAM: evidence by message ids, updates apart from contradictions, markers gone, the plans of the 10M tier."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memx.adapters.datasets.beam import GOLD_FIELDS, Beam
from memx.errors import InputError, UnknownNameError
from memx.model import Case
from tests.datasets.builders import beam_chat, beam_folder, beam_questions, write


def only_case(folder: Path, **options: Any) -> Case:
    (case,) = Beam.load(folder, **options).cases()
    return case


def test_a_conversation(tmp_path: Path) -> None:
    case = only_case(beam_folder(tmp_path / "100K" / "1"))
    assert case.case_id == "100K-1"
    assert [session.session_id for session in case.sessions] == ["B1", "B2"]
    assert list(case.turns()) == ["0", "1", "2", "3", "4", "5"]
    assert case.sessions[0].at == case.turns()["2"].at == datetime(2024, 3, 15)
    assert case.turns()["4"].at == datetime(2024, 4, 5)
    assert [turn.content for turn in case.turns().values()][:4:3] == [
        "The API takes 400ms.",
        "The API takes 250ms now (see above).",
    ]
    assert not any("->->" in turn.content for turn in case.turns().values())


def test_evidence_follows_the_source_ids(tmp_path: Path) -> None:
    by_ability = {q.category: q for q in only_case(beam_folder(tmp_path / "1")).questions}
    update = by_ability["knowledge_update"]
    assert (update.evidence, update.metadata["stale_evidence"]) == (("3",), ["0"])
    contradiction = by_ability["contradiction_resolution"]
    assert contradiction.evidence == ("2", "5") and contradiction.evidence_sessions == ("B1", "B2")
    assert contradiction.metadata["evidence_roles"] == {"first_statement": ["2"], "second_statement": ["5"]}
    assert by_ability["event_ordering"].evidence == ("0", "2", "3")
    assert by_ability["event_ordering"].metadata["rubric"] == ["speed", "Redis"]
    assert by_ability["abstention"].abstention and not by_ability["abstention"].evidence
    json.dumps([dict(question.metadata) for question in by_ability.values()])


def test_repeated_and_dangling_message_ids_are_reported(tmp_path: Path) -> None:
    chat = beam_chat()
    chat[1]["turns"][0][1]["id"] = 3
    questions = beam_questions()
    questions["event_ordering"][0]["source_chat_ids"] = [3, 99]
    dataset = Beam.load(beam_folder(tmp_path / "1", chat, questions))
    (case,) = dataset.cases()
    assert list(case.turns()) == ["0", "1", "2", "3", "3#2", "5"]
    assert case.questions[-1].evidence == ("3",)
    kinds = Counter(quirk.kind for quirk in dataset.quirks())
    assert kinds["repeated_message_id"] == 1 and kinds["dangling_evidence"] == 1 and kinds["ambiguous_evidence"] == 2


def test_gold_and_ids_in_unusual_form(tmp_path: Path) -> None:
    questions: dict[str, Any] = beam_questions()
    questions["knowledge_update"][0]["ideal_answer"] = questions["knowledge_update"][0].pop("answer")
    questions["event_ordering"][0] = {
        "question": "Order?",
        "rubric": ["a", "b"],
        "source_chat_ids": ["3", "Session 4", 1.5],
    }
    dataset = Beam.load(beam_folder(tmp_path / "1", [batch["turns"][0] for batch in beam_chat()], questions))
    (case,) = dataset.cases()
    assert {q.category: q.gold for q in case.questions}["knowledge_update"] == "250ms"
    assert case.questions[-1].gold == "a; b" and case.questions[-1].evidence == ("3",)
    kinds = Counter(quirk.kind for quirk in dataset.quirks())
    assert kinds["gold_in_other_field"] == kinds["gold_from_rubric"] == kinds["text_as_message_id"] == 1
    assert kinds["unreadable_evidence"] == 2


@pytest.mark.parametrize("combined", [True, False])
def test_the_plans_of_the_10m_tier(tmp_path: Path, combined: bool) -> None:
    folder = beam_folder(tmp_path / "10M" / "1")
    if combined:
        write(folder / "chat.json", [{"plan-1": beam_chat(), "plan-2": None}, {"plan-2": beam_chat(6)}])
    else:
        (folder / "chat.json").unlink()
        for number in range(2):
            (folder / f"plan-{number}").mkdir()
            write(folder / f"plan-{number}" / "chat.json", beam_chat())
    questions = beam_questions()
    questions["event_ordering"][0]["source_chat_ids"] = [5, 11]
    write(folder / "probing_questions.json", questions)
    case = only_case(tmp_path, part="10m")
    assert [session.session_id for session in case.sessions] == ["P1:B1", "P1:B2", "P2:B1", "P2:B2"]
    assert list(case.turns()) == [str(number) for number in range(12)]
    assert case.questions[-1].evidence_sessions == ("P1:B2", "P2:B2")


def test_questions_as_a_python_literal_and_the_truncated_chat(tmp_path: Path) -> None:
    folder = beam_folder(tmp_path / "1", beam_chat(), repr(beam_questions()))
    assert len(only_case(folder).questions) == 4
    write(folder / "chat_trunecated.json", beam_chat()[:1])
    with_short = only_case(folder, skip_bad=True)
    assert list(with_short.turns()) == ["0", "1", "2"]
    (folder / "probing_questions.json").write_text("{'abstention': [__import__('os')]}")
    with pytest.raises(InputError, match="is neither JSON nor a Python literal"):
        only_case(folder)


def test_tiers_and_order(tmp_path: Path) -> None:
    for place in ("100K/10", "100K/2", "1M/1"):
        beam_folder(tmp_path / place)
    assert [case.case_id for case in Beam.load(tmp_path).cases()] == ["100K-2", "100K-10", "1M-1"]
    assert [case.case_id for case in Beam.load(tmp_path, part="1m").cases()] == ["1M-1"]
    assert Beam.load(tmp_path).info.version == "100K, 1M"
    assert Beam.load(tmp_path).info.sha256 == Beam.load(tmp_path).info.sha256 != Beam.load(tmp_path / "1M").info.sha256
    with pytest.raises(InputError, match="no BEAM conversation of tier 10M"):
        Beam.load(tmp_path, part="10M")
    with pytest.raises(UnknownNameError, match="no tier of beam named '2M'"):
        Beam.load(tmp_path, part="2M")


def changed(ability: str, **fields: Any) -> dict[str, Any]:
    questions: dict[str, Any] = beam_questions()
    questions[ability][0] = {
        key: value for key, value in {**questions[ability][0], **fields}.items() if value is not ...
    }
    return questions


BROKEN: list[tuple[Any, Any, str]] = [
    (None, changed("knowledge_update", rubric="250ms"), "1:knowledge_update:0: rubric: should be a list, is a text"),
    (None, changed("knowledge_update", answer=..., rubric=[]), "1:knowledge_update:0: answer: is missing"),
    (None, {**beam_questions(), "telepathy": []}, "telepathy: is no ability of BEAM"),
    (None, [], "1: should be an object, is a list"),
    ({}, None, "should be a list of batches, is an object"),
    ([{"batch_number": 1}], None, "1: batch 1: turns: is missing"),
    (
        [{"turns": [[{"role": "user", "id": "0", "content": "x"}]]}],
        None,
        "message 1: id: should be a whole number, is a text",
    ),
    (
        [{"turns": [[{"role": "user", "id": 0, "content": None}]]}],
        None,
        "message 1: content: should be a text, is null",
    ),
    ([{"turns": [], "time_anchor": "15.3.2024"}], None, "time_anchor: '15.3.2024' is no date of the form"),
]


@pytest.mark.parametrize(("chat", "questions", "words"), BROKEN)
def test_a_bad_record_is_named_and_can_be_skipped(tmp_path: Path, chat: Any, questions: Any, words: str) -> None:
    beam_folder(tmp_path / "1", chat, questions)
    beam_folder(tmp_path / "2")
    with pytest.raises(InputError) as caught:
        list(Beam.load(tmp_path).cases())
    assert words in caught.value.message and "\n" not in str(caught.value)
    dataset = Beam.load(tmp_path, skip_bad="true")
    assert [case.case_id for case in dataset.cases()][-1] == "2"
    assert "bad_record" in {quirk.kind for quirk in dataset.quirks()}


def test_folders_that_are_not_beam(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no BEAM conversation"):
        Beam.load(tmp_path)
    with pytest.raises(InputError, match="is a file; BEAM is a folder"):
        Beam.load(write(tmp_path / "x.parquet", b"PAR1\0\0"))
    (beam_folder(tmp_path / "1") / "chat.json").unlink()
    with pytest.raises(InputError, match=r"holds no chat\.json"):
        list(Beam.load(tmp_path).cases())


def test_the_conversations_at_hand(shared_data: Path) -> None:
    folder = shared_data / "data" / "beam"
    if not folder.is_dir():
        pytest.skip(f"needs the real data: {folder} is not there")
    dataset = Beam.load(folder)
    cases = list(dataset.cases())
    assert all(len(case.questions) == 20 for case in cases)
    for case in cases:
        assert Counter(q.category for q in case.questions) == dict.fromkeys(GOLD_FIELDS, 2)
        assert all(q.evidence or q.abstention for q in case.questions)
        assert not any("->" in turn.content and "->->" in turn.content for turn in case.turns().values())
    # The messages stand as the file has them, but for the markers.
    raw = json.loads((folder / "100K" / "1" / "chat.json").read_text())
    texts = [message["content"] for batch in raw for turn in batch["turns"] for message in turn]
    for turn, text in zip(cases[0].turns().values(), texts, strict=True):
        assert text.startswith(turn.content) and (text == turn.content or "->->" in text[len(turn.content) :])
    assert Counter(quirk.kind for quirk in dataset.quirks()) == {"probe_marker": 815, "update_in_one_turn": 1}
