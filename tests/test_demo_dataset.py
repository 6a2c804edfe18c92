"""The bundled dataset: its promises (size, categories, evidence) and its loader."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

import memx.adapters.datasets.demo as demo_module
from memx.adapters.datasets.demo import CATEGORIES, Demo
from memx.errors import InputError, UsageError
from memx.model import Case, Question
from memx.text.words import stems

CASES = list(Demo.load().cases())
QUESTIONS = [(case, question) for case in CASES for question in case.questions]
SHIPPED = sorted((Path(demo_module.__file__).parent / "demo_data").glob("*.json"))


def _ids(entry: tuple[Case, Question]) -> str:
    return entry[1].question_id


def test_size() -> None:
    assert len(CASES) >= 8
    assert len(QUESTIONS) >= 80
    counts = Counter(question.category for _, question in QUESTIONS)
    assert set(counts) == set(CATEGORIES)
    assert min(counts.values()) >= 8


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.case_id)
def test_case(case: Case) -> None:
    assert case.entity_id == case.case_id
    assert len(case.sessions) >= 6
    assert 90 <= len(case.turns()) <= 130
    assert all(12 <= len(session.turns) <= 20 for session in case.sessions)
    assert len({turn.speaker for turn in case.turns().values()}) == 2
    times = [turn.at for turn in case.turns().values() if turn.at is not None]
    assert len(times) == len(case.turns())
    assert all(earlier < later for earlier, later in pairwise(times))
    days = [session.at.date() for session in case.sessions if session.at is not None]
    assert all(earlier < later for earlier, later in pairwise(days))
    assert all(question.asked_at is not None and question.asked_at > times[-1] for question in case.questions)
    texts = [question.text for question in case.questions]
    assert len(texts) == len(set(texts))


def test_some_cases_are_with_an_assistant_and_some_between_people() -> None:
    roles = [{turn.role for turn in case.turns().values()} for case in CASES]
    assert {"user", "assistant"} in roles
    assert any("assistant" not in parts for parts in roles)


def test_question_ids_are_unique_in_the_dataset() -> None:
    ids = [question.question_id for _, question in QUESTIONS]
    assert len(ids) == len(set(ids))
    assert all(question.question_id.startswith(f"{case.case_id}:q") for case, question in QUESTIONS)


@pytest.mark.parametrize("entry", QUESTIONS, ids=_ids)
def test_evidence_points_at_turns(entry: tuple[Case, Question]) -> None:
    case, question = entry
    named = (*question.evidence, *question.metadata.get("stale_evidence", ()))
    assert set(named) | set(question.metadata.get("tempting_turns", ())) <= set(case.turns())
    assert len(named) == len(set(named))
    assert question.abstention == (question.category == "abstention")
    assert bool(question.evidence) != question.abstention
    session_of = case.session_of()
    assert set(question.evidence_sessions) == {session_of[turn_id] for turn_id in question.evidence}
    assert set(question.metadata) <= {"stale_evidence", "tempting_turns", "trap"}


@pytest.mark.parametrize(
    "entry", [e for e in QUESTIONS if e[1].category in {"single-hop", "knowledge-update"}], ids=_ids
)
def test_gold_is_said_in_the_evidence(entry: tuple[Case, Question]) -> None:
    case, question = entry
    turns = case.turns()
    said = set(stems(" ".join(f"{turns[key].speaker}: {turns[key].content}" for key in question.evidence)))
    # A gloss in brackets explains the value; it need not be said.
    wanted = set(stems(re.sub(r"\(.*?\)", "", question.gold)))
    assert wanted <= said


def test_an_updated_value_is_later_than_the_one_it_replaces() -> None:
    for case, question in QUESTIONS:
        order = list(case.turns())
        stale = question.metadata.get("stale_evidence", ())
        if question.category == "knowledge-update":
            assert stale, question.question_id
        for old in stale:
            assert order.index(old) < max(order.index(new) for new in question.evidence), question.question_id


def test_contradictions_have_two_sides() -> None:
    for case, question in QUESTIONS:
        if question.category == "contradiction":
            assert len(question.evidence) >= 2, (case.case_id, question.text)


def test_traps_are_set_only_where_the_answer_is_not_told() -> None:
    trapped = [question for _, question in QUESTIONS if "trap" in question.metadata]
    assert len(trapped) >= 8
    assert all(question.abstention for question in trapped)


def test_weekdays_in_gold_answers_are_right() -> None:
    dated = re.compile(r"(\w+day) (\d{1,2} \w+ \d{4})")
    found = [match for _, question in QUESTIONS for match in dated.findall(question.gold)]
    assert len(found) >= 8
    for weekday, day in found:
        assert datetime.strptime(day, "%d %B %Y").strftime("%A") == weekday, day


def test_loading_twice_gives_equal_cases() -> None:
    dataset = Demo.load()
    assert list(dataset.cases()) == list(dataset.cases()) == CASES
    assert dataset.info == Demo.load().info
    assert dataset.quirks() == []


def test_checksum_covers_the_shipped_bytes() -> None:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in SHIPPED)).hexdigest()
    assert Demo.load().info.sha256 == digest
    changed = [(path.name, path.read_bytes() + b" ") for path in SHIPPED]
    assert Demo(changed).info.sha256 != digest


def test_nothing_of_the_files_is_lost() -> None:
    for path, case in zip(SHIPPED, CASES, strict=True):
        data = json.loads(path.read_text(encoding="utf-8"))
        said = [(turn["id"], turn["speaker"], turn["text"]) for part in data["sessions"] for turn in part["turns"]]
        assert [(turn.turn_id, turn.speaker, turn.content) for turn in case.turns().values()] == said
        asked = [(question["question_id"], question["text"], question["gold"]) for question in data["questions"]]
        assert [(question.question_id, question.text, question.gold) for question in case.questions] == asked


def test_the_page_on_demo_counts_right() -> None:
    page = (Path(__file__).parents[1] / "docs" / "demo.md").read_text(encoding="utf-8")
    rows = {name: int(count) for name, count in re.findall(r"^\| `([\w-]+)` \| (\d+) \|", page, re.MULTILINE)}
    assert rows == Counter(question.category for _, question in QUESTIONS)
    turns = sum(len(case.turns()) for case in CASES)
    assert f"{turns:,} turns and {len(QUESTIONS)} questions" in " ".join(page.split())


def test_a_source_and_options_are_refused() -> None:
    with pytest.raises(UsageError, match=r"does not read elsewhere\.json"):
        Demo.load(Path("elsewhere.json"))
    with pytest.raises(UsageError, match="no option captions"):
        Demo.load(captions="on")


def test_a_broken_file_is_named() -> None:
    with pytest.raises(InputError, match=r"01_x\.json: broken case: KeyError: 'speakers'"):
        list(Demo([("01_x.json", b'{"case_id": "x"}')]).cases())
