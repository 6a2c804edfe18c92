"""LoCoMo: every question of the file, each quirk with its policy, and one clear line for each broken file."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memx.adapters.contract import Dataset
from memx.adapters.datasets.locomo import CATEGORIES, NOT_MENTIONED, Locomo
from memx.errors import InputError, UsageError
from memx.model import Question
from tests.datasets.builders import locomo_sample, write


def load(tmp_path: Path, sample: dict[str, Any], **options: Any) -> Locomo:
    return Locomo.load(write(tmp_path / "locomo10.json", [sample]), **options)


def questions(dataset: Dataset) -> list[Question]:
    return [question for case in dataset.cases() for question in case.questions]


def test_a_conversation_keeps_ids_speakers_times_and_order(tmp_path: Path) -> None:
    (case,) = load(tmp_path, locomo_sample()).cases()
    assert (case.case_id, [s.session_id for s in case.sessions]) == ("conv-1", ["D1", "D2"])
    first = case.sessions[0].turns[0]
    assert (first.turn_id, first.speaker, first.role) == ("D1:1", "Ada", "user")
    assert case.sessions[0].turns[1].role == "assistant"
    assert first.at == case.sessions[0].at == datetime(2023, 5, 8, 13, 56)
    assert case.sessions[1].at == datetime(2023, 9, 13, 0, 9)
    assert [q.question_id for q in case.questions] == [f"conv-1:q{n}" for n in range(5)]
    assert case.questions[0].evidence_sessions == ("D1", "D2")


def test_the_trap_of_an_adversarial_question_is_never_gold(tmp_path: Path) -> None:
    question = questions(load(tmp_path, locomo_sample()))[4]
    assert question.gold == NOT_MENTIONED and question.abstention
    assert question.metadata["trap"] == "a kayak"


def test_an_adversarial_question_with_an_answer_is_disputed_and_answerable(tmp_path: Path) -> None:
    sample = locomo_sample()
    sample["qa"][4]["answer"] = "No"
    dataset = load(tmp_path, sample)
    question = questions(dataset)[4]
    assert (question.gold, question.abstention, question.category) == ("No", False, "adversarial")
    assert "disputed" in question.metadata
    assert [q.policy for q in dataset.quirks() if q.kind == "answerable_adversarial"] == ["flagged"]


@pytest.mark.parametrize(
    ("captions", "text"),
    [
        ("labelled", "Look at mine! [image: a red kayak on a lake]"),
        ("on", "Look at mine! a red kayak on a lake"),
        ("off", "Look at mine!"),
    ],
)
def test_captions_follow_the_option(tmp_path: Path, captions: str, text: str) -> None:
    dataset = load(tmp_path, locomo_sample(), captions=captions)
    (case,) = dataset.cases()
    turn = case.turns()["D1:2"]
    assert turn.content == text
    assert turn.metadata["caption"] == "a red kayak on a lake"
    assert dataset.info.notes["captions"] == captions


@pytest.mark.parametrize(
    ("raw", "evidence", "kind"),
    [
        (["D1:1; D2:1"], ("D1:1", "D2:1"), "malformed_evidence"),
        (["D1:1 D1:2 D2:2"], ("D1:1", "D1:2", "D2:2"), "malformed_evidence"),
        (["D:2:1"], ("D2:1",), "malformed_evidence"),
        (["D2:01"], ("D2:1",), "malformed_evidence"),
        (["D1:1", "D1:1"], ("D1:1",), "duplicated_evidence"),
        (["D9:9", "D1:1"], ("D1:1",), "dangling_evidence"),
        (["D", "D1:1"], ("D1:1",), "unreadable_evidence"),
        ([], (), "no_evidence"),
    ],
)
def test_evidence_is_repaired_or_flagged(tmp_path: Path, raw: list[str], evidence: tuple[str, ...], kind: str) -> None:
    sample = locomo_sample()
    sample["qa"][0]["evidence"] = raw
    dataset = load(tmp_path, sample)
    question = questions(dataset)[0]
    assert question.evidence == evidence
    assert kind in {quirk.kind for quirk in dataset.quirks() if quirk.place == "conv-1:q0"}
    if raw:
        assert question.metadata["raw_evidence"] == raw
    json.dumps(dict(question.metadata))


def test_lone_dates_repeats_and_empty_sessions_are_reported(tmp_path: Path) -> None:
    sample = locomo_sample()
    sample["conversation"]["session_7_date_time"] = "1:00 pm on 1 June, 2023"
    sample["conversation"]["session_3"] = []
    sample["qa"].append({"question": "when did  Ada buy it?", "answer": "May", "evidence": ["D1:1"], "category": 1})
    kinds = Counter(quirk.kind for quirk in load(tmp_path, sample).quirks())
    assert kinds["date_without_session"] == kinds["empty_session"] == kinds["repeated_question"] == 1


@pytest.mark.parametrize(
    ("gold", "found"),
    [
        ("thekayak", True),
        ("a kayak,a paddle", True),
        ("the week before 21May, 2022", True),
        ("a kayak, 300 dollars", False),
        ("12:30pm", False),
        ("themselves", False),
    ],
)
def test_gold_whose_words_run_together_is_flagged(tmp_path: Path, gold: str, found: bool) -> None:
    sample = locomo_sample()
    sample["qa"][0]["answer"] = gold
    dataset = load(tmp_path, sample)
    assert [quirk.place for quirk in dataset.quirks() if quirk.kind == "run_together_words"] == ["conv-1:q0"] * found
    assert questions(dataset)[0].gold == gold


@pytest.mark.parametrize("captions", ["labelled", "on", "off"])
@pytest.mark.parametrize(
    ("gold", "found"), [("a red one on a lake", True), ("a kayak", False), ("bought yesterday", False)]
)
def test_answers_that_were_seen_and_not_said_are_flagged(tmp_path: Path, captions: str, gold: str, found: bool) -> None:
    sample = locomo_sample()
    sample["qa"][0] = {"question": "Which kayak?", "answer": gold, "evidence": ["D1:1", "D1:2"], "category": 4}
    dataset = load(tmp_path, sample, captions=captions)
    assert [quirk.place for quirk in dataset.quirks() if quirk.kind == "image_dependent"] == ["conv-1:q0"] * found


BROKEN = [
    (lambda s: s["qa"][2].update(category=9), "conv-1:q2: category: 9 is no category"),
    (lambda s: s["qa"][2].update(category="4"), "conv-1:q2: category: should be a whole number, is a text"),
    (lambda s: s["qa"][2].update(evidence="D1:1"), "conv-1:q2: evidence: should be a list, is a text"),
    (lambda s: s["qa"][2].update(evidence=[None]), "conv-1:q2: evidence[0]: should be a text, is null"),
    (lambda s: s["qa"][2].update(question=None), "conv-1:q2: question: should be a text, is null"),
    (lambda s: s["qa"][2].pop("answer"), "conv-1:q2: answer: is missing"),
    (lambda s: s["qa"].__setitem__(2, "what?"), "conv-1:q2: should be an object, is a text"),
    (lambda s: s["conversation"]["session_2"][0].update(text="\ud800"), "half a surrogate"),
    (lambda s: s["conversation"]["session_2"][0].update(dia_id="D1:1"), "dia_id: 'D1:1' stands twice"),
    (lambda s: s["conversation"]["session_2"][0].pop("speaker"), "session_2[0]: speaker: is missing"),
    (lambda s: s["conversation"].update(session_2="hello"), "session_2: should be a list"),
    *(
        (lambda s, date=date: s["conversation"].update(session_2_date_time=date), "session_2_date_time: ")
        for date in (
            "2023-05-08",
            "13:56 pm on 8 May, 2023",
            "1:56 pm on 31 June, 2023",
            "May 8",
            "1:56 pm on 8 Mai, 2023",
        )
    ),
]


@pytest.mark.parametrize(("breaking", "words"), BROKEN)
def test_a_bad_record_is_named_and_can_be_skipped(tmp_path: Path, breaking: Any, words: str) -> None:
    sample = locomo_sample()
    breaking(sample)
    with pytest.raises(InputError) as caught:
        load(tmp_path, sample)
    assert words in caught.value.message and "locomo10.json" in caught.value.message
    assert "\n" not in str(caught.value)
    dataset = load(tmp_path, sample, skip_bad=True)
    assert [quirk.policy for quirk in dataset.quirks() if quirk.kind == "bad_record"] == ["dropped"]
    assert len(questions(dataset)) >= 4


def test_a_repeated_conversation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="conversation 2: sample_id: 'conv-1' stands twice"):
        Locomo.load(write(tmp_path / "locomo10.json", [locomo_sample(), locomo_sample()]))


def test_options_and_sources_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="captions is on, off or labelled"):
        load(tmp_path, locomo_sample(), captions="some")
    with pytest.raises(UsageError, match="no option of locomo named 'colour'"):
        load(tmp_path, locomo_sample(), colour=1)
    with pytest.raises(InputError, match="no such file"):
        Locomo.load(tmp_path / "elsewhere" / "locomo10.json")
    with pytest.raises(InputError, match="needs its file"):
        Locomo.load(None)
    with pytest.raises(InputError, match="should be a list of conversations"):
        Locomo.load(write(tmp_path / "other.json", {"conversations": []}))


def test_the_release_whole(shared_data: Path) -> None:
    dataset = Locomo.load(shared_data / "data")
    loaded = questions(dataset)
    assert len(loaded) == len({q.question_id for q in loaded}) == 1986
    assert Counter(q.category for q in loaded) == dict(zip(CATEGORIES.values(), (282, 321, 96, 841, 446), strict=True))
    assert dataset.info.version == "release"
    assert Counter(quirk.kind for quirk in dataset.quirks()) == {
        "caption": 1226,
        "adversarial_without_answer": 444,
        "date_without_session": 16,
        "repeated_question": 12,
        "number_as_answer": 6,
        "malformed_evidence": 6,
        "no_evidence": 4,
        "answerable_adversarial": 2,
        "dangling_evidence": 2,
        "unreadable_evidence": 1,
        "duplicated_evidence": 1,
        "run_together_words": 32,
        "image_dependent": 37,
    }
    turns = [turn for case in dataset.cases() for session in case.sessions for turn in session.turns]
    assert len(turns) == 5882 and sum("caption" in turn.metadata for turn in turns) == 1226
    # Text and gold stand as the file has them.
    raw = json.loads((shared_data / "data" / "locomo10.json").read_text())
    rows = [row for sample in raw for row in sample["qa"]]
    assert [q.text for q in loaded] == [row["question"] for row in rows]
    assert all(q.gold == str(row["answer"]) for q, row in zip(loaded, rows, strict=True) if "answer" in row)
    assert sum(len(dataset.observations(case.case_id)) for case in dataset.cases()) == 2541
