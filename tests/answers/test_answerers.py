"""Answerers: context and budget, what a model is told, the sentence picked offline."""

from __future__ import annotations

from datetime import datetime

import pytest

from memx.engine.answers import build_answerer, fit_context
from memx.engine.answers.extractive import ExtractiveAnswerer
from memx.engine.answers.model import ModelAnswerer
from memx.engine.answers.retrieved import RetrievedText
from memx.errors import QuotaError
from memx.llm.tokens import estimate_tokens
from memx.model import CandidateSource, Question, Retrieved
from tests.fake_openai import FakeOpenAI
from tests.llm.fixtures import models

MAY_8 = datetime(2023, 5, 8, 13, 56)


def question(text: str = "When did Ana adopt Rex?", **more: object) -> Question:
    return Question("q1", "case", text, "7 May 2023", "temporal", **more)  # type: ignore[arg-type]


def facts(*texts: str) -> list[Retrieved]:
    return [Retrieved(f"f{number}", text) for number, text in enumerate(texts)]


def test_context_is_dated_named_and_best_first() -> None:
    named = Retrieved("f1", "I adopted Rex.", metadata={"speaker": "Ana"})
    told = Retrieved("f2", "Ana: he is a terrier.", metadata={"speaker": "Ana"})
    context = fit_context([named, told], None, {"f1": MAY_8, "f2": datetime(2023, 6, 1)})
    assert context.lines == (
        "[Monday, 2023-05-08 13:56] Ana: I adopted Rex.",
        "[Thursday, 2023-06-01] Ana: he is a terrier.",
    )
    assert context.used == ("f1", "f2")


def test_the_budget_cuts_whole_facts_from_the_end() -> None:
    retrieved = facts("a" * 40, "b" * 40, "c" * 4)
    context = fit_context(retrieved, 22)
    assert context.used == ("f0", "f1")
    assert context.tokens == 22
    assert fit_context(retrieved, 21).used == ("f0",)
    assert fit_context(retrieved, 1).text == ""
    assert fit_context(retrieved).tokens >= estimate_tokens(fit_context(retrieved).text)


def test_retrieved_text_is_the_facts_themselves() -> None:
    candidate = RetrievedText(22).answer(question(), facts("a" * 40, "b" * 40, "c"), {"f0": MAY_8})
    assert candidate.text == "a" * 40 + "\n" + "b" * 40
    assert (candidate.source, candidate.context_tokens) == (CandidateSource.RETRIEVED, 22)
    assert RetrievedText().answer(question(), []).text == ""


def test_a_model_is_shown_context_question_and_date() -> None:
    with FakeOpenAI(" 7 May 2023 \n") as server, models(server) as clients:
        answerer = ModelAnswerer(clients.llm("m"), "locomo", 20)
        asked = question(asked_at=datetime(2023, 7, 1))
        candidate = answerer.answer(asked, facts("Rex came yesterday.", "x" * 100), {"f0": MAY_8})
        assert clients.ledger.usage("answer").calls == 1
    assert (candidate.text, candidate.source) == ("7 May 2023", CandidateSource.MODEL)
    assert candidate.context_tokens == fit_context(facts("Rex came yesterday."), None, {"f0": MAY_8}).tokens
    system, user = (message["content"] for message in server.requests[0]["messages"])
    assert "Not mentioned in the conversation" in system
    assert "[Monday, 2023-05-08 13:56] Rex came yesterday." in user
    assert "Asked on Saturday, 2023-07-01." in user
    assert "When did Ana adopt Rex?" in user
    assert "xxx" not in user


def test_an_empty_retrieval_is_asked_all_the_same() -> None:
    with FakeOpenAI("I don't know.") as server, models(server) as clients:
        candidate = ModelAnswerer(clients.llm("m")).answer(question(), [])
    assert candidate.text == "I don't know."
    assert candidate.context_tokens == 0
    assert "nothing was found" in server.requests[0]["messages"][1]["content"]


def test_braces_in_data_are_left_alone() -> None:
    with FakeOpenAI() as server, models(server) as clients:
        ModelAnswerer(clients.llm("m")).answer(question("What is {context}?"), facts("{question} and {x}"))
    user = server.requests[0]["messages"][1]["content"]
    assert "{question} and {x}" in user
    assert "Question: What is {context}?" in user


def test_each_dataset_has_instructions_of_its_own_and_a_hash() -> None:
    with FakeOpenAI() as server, models(server) as clients:
        hashes = {
            name: ModelAnswerer(clients.llm("m"), name).prompt_sha256
            for name in ("locomo", "longmemeval", "beam", "demo", "own")
        }
    assert len({hashes[name] for name in ("locomo", "longmemeval", "beam", "demo")}) == 4
    assert hashes["own"] == hashes["demo"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("When did Ana adopt Rex?", "I adopted Rex yesterday! (7 May 2023)"),
        ("How many cats does Ana have?", "My three cats hate him."),
        ("What breed is Rex?", "He is a terrier breed, and loud."),
    ],
)
def test_the_sentence_that_fits_the_question_is_picked(asked: str, expected: str) -> None:
    said = facts(
        "Did Ana adopt Rex? Hello again. I adopted Rex yesterday!",
        "He is a terrier breed, and loud. My three cats hate him.",
    )
    candidate = ExtractiveAnswerer().answer(question(asked), said, {"f0": MAY_8})
    assert (candidate.text, candidate.source) == (expected, CandidateSource.EXTRACTIVE)


def test_extraction_from_nothing_is_an_empty_answer() -> None:
    assert ExtractiveAnswerer().answer(question(), []).text == ""
    assert ExtractiveAnswerer().answer(question(), facts("", " \n ")).text == ""


def test_names_of_answerers() -> None:
    with FakeOpenAI(faults=["401"]) as server, models(server) as clients:
        assert [build_answerer(name, clients.llm).name for name in (None, "none", "extractive", "gpt-4o")] == [
            "none",
            "none",
            "extractive",
            "gpt-4o",
        ]
        build_answerer("none", clients.llm).preflight()
        with pytest.raises(QuotaError):
            build_answerer("gpt-4o", clients.llm).preflight()
