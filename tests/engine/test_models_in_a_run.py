"""Judge and answer models inside a run, against a real HTTP server on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

import memx
from memx.engine.events import Event, Notice
from memx.errors import ModelError
from memx.model import CandidateSource, Outcome
from tests.engine import worlds
from tests.engine.worlds import Small
from tests.fake_openai import FakeOpenAI, judge_by_marker


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key in the environment, which must not be found in any file afterwards."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-this-test")
    return "sk-secret-of-this-test"


def models(server: FakeOpenAI) -> dict[str, str]:
    return {"base_url": server.base_url, "judge_model": "judge-x", "answer_model": "answer-x"}


def test_a_second_run_of_the_same_thing_asks_nothing(tmp_path: Path, key: str) -> None:
    with FakeOpenAI(judge_by_marker) as server:
        first = memx.run(worlds.Notebook, Small(2), directory=tmp_path, **models(server))
        asked = len(server.requests)
        again = memx.run(worlds.Notebook, Small(2), directory=tmp_path, **models(server))
        assert len(server.requests) == asked > 6
    assert first.summary.questions == first.summary.passed + first.summary.failed == 6
    assert again.summary.llm["calls"] == 0 and again.summary.llm["cached"] >= 12
    trace = next(first.traces())
    assert trace.candidate is not None and trace.candidate.source is CandidateSource.MODEL
    assert first.row.manifest["judge"]["prompt_sha256"]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes()


def test_a_quota_that_runs_out_leaves_unjudged_and_resume_asks_only_those(tmp_path: Path, key: str) -> None:
    with FakeOpenAI(judge_by_marker, faults=lambda number: "402" if number > 8 else "") as server:
        run = memx.run(
            "tests.engine.worlds:Notebook", "tests.engine.worlds:Small", directory=tmp_path,
            dataset_options={"cases": "2", "questions": "6"}, **models(server),
        )  # fmt: skip
        judged = run.summary.passed + run.summary.failed
        assert run.summary.unjudged == 12 - judged > 0
    unjudged = [t for t in run.traces() if t.verdict.outcome is Outcome.UNJUDGED]
    assert {t.error.kind for t in unjudged if t.error} == {"QuotaError"}
    with FakeOpenAI(judge_by_marker, port=server.port) as mended:
        resumed = memx.run(directory=tmp_path, resume=run.run_id)
        assert resumed.summary.unjudged == 0 and resumed.summary.questions == 12
        assert 0 < len(mended.requests) <= 2 * len(unjudged) + 2


def test_a_model_that_does_not_exist_is_refused_before_anything_is_ingested(tmp_path: Path, key: str) -> None:
    worlds.Notebook.seen.clear()
    with FakeOpenAI(judge_by_marker, models=["other"]) as server, pytest.raises(ModelError, match="judge-x"):
        memx.run(worlds.Notebook, Small(1), directory=tmp_path, **models(server))
    assert worlds.Notebook.seen == []


def test_a_cap_is_told_once_and_a_larger_one_on_resume_goes_on(tmp_path: Path, key: str) -> None:
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.once)

    with FakeOpenAI(judge_by_marker) as server:
        run = memx.run(worlds.Notebook, Small(2), directory=tmp_path, max_calls=5, listener=listen, **models(server))
        assert run.summary.unjudged > 0 and run.summary.llm["calls"] <= 5
        assert set(told) <= {"answer BudgetReached", "judge BudgetReached"} and told
        resumed = memx.run(
            worlds.Notebook, Small(2), directory=tmp_path, resume=run.run_id, max_calls=100, **models(server)
        )
        assert resumed.summary.unjudged == 0
        bodies = [str(body["messages"]) for body in server.requests]
        assert len(bodies) - len(set(bodies)) <= 1, "nothing but the preflight of two models is asked twice"
