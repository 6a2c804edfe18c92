"""A run, end to end: real adapters, real threads, the real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memx
from memx.engine.store.reader import Store
from memx.errors import AdapterError, UnknownNameError, UsageError
from memx.model import Cause, Outcome, Stage
from tests.engine import worlds
from tests.engine.worlds import Small


def outcomes(run: memx.Run) -> dict[str, Outcome]:
    return {trace.question.question_id: trace.verdict.outcome for trace in run.traces()}


def test_every_question_has_one_trace_and_the_sums_match(tmp_path: Path) -> None:
    run = memx.run(worlds.Forgetful, Small(), directory=tmp_path, top_k=1)
    summary = run.summary
    assert run.state == "finished"
    assert summary.questions == 9 == summary.passed + summary.failed + summary.unjudged + summary.errors
    assert summary.failed == 3
    assert {q for q, outcome in outcomes(run).items() if outcome is Outcome.FAIL} == {f"case-{n}:q1" for n in range(3)}
    failed = next(trace for trace in run.traces() if trace.verdict.outcome is Outcome.FAIL)
    assert failed.diagnosis is not None
    assert (failed.diagnosis.stage, failed.diagnosis.cause) == (Stage.RETRIEVAL, Cause.ABSENT)
    assert failed.diagnosis.evidence[0].stored == ("D1:1",)
    assert "3 FAIL" in str(run)


def test_last_run_json_is_what_the_design_says(tmp_path: Path) -> None:
    run = memx.run(worlds.Forgetful, Small(), directory=tmp_path, top_k=1)
    record = json.loads((tmp_path / "last_run.json").read_text())
    assert record["schema"] == "memx.run/1"
    assert record["run_id"] == run.run_id
    assert record["state"] == "finished"
    assert record["dataset"] == {"name": "small", "source": "", "sha256": "ab" * 32, "questions": 9}
    assert set(record["summary"]["stages"]) == {"extraction", "conflict", "mutation", "retrieval", "none"}
    assert record["summary"]["accuracy"]["n"] == 6
    assert record["summary"]["accuracy"]["low"] < 6 / 9 < record["summary"]["accuracy"]["high"]
    assert [q["question_id"] for q in record["questions"]] == [f"case-{c}:q{q}" for c in range(3) for q in range(3)]
    passed, failed = record["questions"][0], record["questions"][1]
    assert passed["diagnosis"] is None and failed["diagnosis"]["stage"] == "retrieval"
    assert passed["retrieved"] == [
        {"rank": 1, "fact_id": "D1:0", "content": passed["retrieved"][0]["content"], "score": 5.0, "signals": {}}
    ]
    assert passed["diff"] == {"added": 4, "removed": 0, "changed": 0, "unchanged": 0}
    assert passed["metrics"]["turn"]["recall_any"]["1"] == 1.0
    assert failed["metrics"]["turn"]["recall_any"]["50"] == 0.0
    assert record["manifest"]["settings"]["top_k"] == 1
    assert record["manifest"]["publishable"] in (True, False)


def test_sessions_arrive_in_order_in_a_namespace_of_their_own_and_without_gold(tmp_path: Path) -> None:
    worlds.Notebook.seen.clear()
    first = memx.run(worlds.Notebook, Small(2, sessions=4), directory=tmp_path)
    second = memx.run(worlds.Notebook, Small(2, sessions=4), directory=tmp_path)
    sessions = [session for kind, session in worlds.Notebook.seen if kind == "ingest"]
    by_entity: dict[str, list[str]] = {}
    for session in sessions:
        by_entity.setdefault(session.entity_id, []).append(session.session_id)
        assert session.turns[0].at is not None and session.turns[0].speaker in ("Ana", "Ben")
        assert "evidence" not in repr(session)
    assert all(order == ["D1", "D2", "D3", "D4"] for order in by_entity.values())
    assert len(by_entity) == 4
    assert sum(first.run_id in entity for entity in by_entity) == 2
    assert sum(second.run_id in entity for entity in by_entity) == 2
    assert {trace.case_id for trace in first.traces()} == {"case-0", "case-1"}
    asked = {depth for kind, (_, _, depth) in ((k, v) for k, v in worlds.Notebook.seen if k == "query")}
    assert asked == {50}


@pytest.mark.parametrize(
    ("adapter", "step", "words"),
    [
        (worlds.BreaksOnCase1, "ingest", "HTTP 401"),
        (worlds.HangsWhenReady, "ready", "did not return"),
    ],
)
def test_a_case_that_breaks_or_hangs_takes_no_other_along(
    tmp_path: Path, adapter: type[memx.MemoryAdapter], step: str, words: str
) -> None:
    run = memx.run(adapter, Small(), directory=tmp_path, ready_timeout=1)
    found = outcomes(run)
    assert {q for q, outcome in found.items() if outcome is Outcome.ERROR} == {f"case-1:q{n}" for n in range(3)}
    assert sum(outcome is Outcome.PASS for outcome in found.values()) == 6
    error = next(trace.error for trace in run.traces() if trace.error)
    assert error.step == step and words in error.message
    assert "sk-abcdefghijklmnop" not in (tmp_path / "last_run.json").read_text()
    assert Store(tmp_path).cases(run.run_id)[1].error == error


def test_one_failing_query_is_one_error(tmp_path: Path) -> None:
    run = memx.run(worlds.QueryFails, Small(1), directory=tmp_path)
    assert list(outcomes(run).values()) == [Outcome.PASS, Outcome.ERROR, Outcome.PASS]


def test_a_system_that_says_it_is_not_ready_and_one_that_returns_nonsense(tmp_path: Path) -> None:
    run = memx.run(worlds.NotReady, Small(1), directory=tmp_path)
    assert {(t.error.step, t.error.kind) for t in run.traces() if t.error} == {("ready", "AdapterTimeoutError")}
    run = memx.run(worlds.ReturnsNonsense, Small(1), directory=tmp_path)
    assert all("returns-nonsense.query() returned list" in t.verdict.why for t in run.traces())


def test_the_adapters_own_answer_is_the_candidate(tmp_path: Path) -> None:
    run = memx.run(worlds.Answers, Small(1), directory=tmp_path)
    traces = list(run.traces())
    assert [str(t.candidate.source) for t in traces if t.candidate] == ["adapter"] * 3
    assert [t.verdict.outcome for t in traces] == [Outcome.PASS, Outcome.FAIL, Outcome.FAIL]
    assert traces[1].diagnosis is not None and traces[1].diagnosis.cause is Cause.SYNTHESIS


def test_a_class_that_lacks_a_method_is_refused_before_anything_is_ingested(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lacks export_state\(\)"):
        memx.run("tests.engine.worlds:LacksExport", Small(), directory=tmp_path)
    assert not (tmp_path / "memx.db").exists()


def test_unknown_names_and_options_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean local"):
        memx.run("locl", Small(), directory=tmp_path)
    with pytest.raises(UnknownNameError, match="Did you mean demo"):
        memx.run("local", "dmo", directory=tmp_path)
    with pytest.raises((UsageError, AdapterError), match="no_such_option"):
        memx.run("local", Small(), directory=tmp_path, adapter_options={"no_such_option": "1"})


def test_limit_is_exact_and_a_seed_repeats_its_draw(tmp_path: Path) -> None:
    assert memx.run(worlds.Notebook, Small(), directory=tmp_path, limit=4).summary.questions == 4
    draws = [
        set(outcomes(memx.run(worlds.Notebook, Small(), directory=tmp_path, limit=4, random=True, seed=seed)))
        for seed in (1, 1, 3)
    ]
    assert draws[0] == draws[1] != draws[2]
    assert len(draws[0]) == 4


def test_snapshots_per_session_tell_when_a_fact_was_born(tmp_path: Path) -> None:
    run = memx.run(worlds.Notebook, Small(1, sessions=3), directory=tmp_path, snapshots="session")
    store = Store(tmp_path)
    (event,) = store.timeline(run.run_id, "case-0", "D3:0")
    assert (event.session_id, event.kind, event.old) == ("D3", "born", None)
    assert len(store.snapshot(run.run_id, "case-0", step=1).facts) == 3


def test_two_runs_of_one_dataset_can_be_paired(tmp_path: Path) -> None:
    a = memx.run(worlds.Forgetful, Small(), directory=tmp_path, top_k=1)
    b = memx.run(worlds.Notebook, Small(), directory=tmp_path, top_k=1)
    pair = memx.paired(a, b)
    assert (pair.both, pair.neither, pair.only_a) == (6, 0, ())
    assert set(pair.only_b) == {f"case-{n}:q1" for n in range(3)}
    assert pair.p == pytest.approx(0.25)
    assert "too few" in str(pair)


def test_what_the_context_budget_cuts_off_was_not_seen(tmp_path: Path) -> None:
    whole = memx.run(worlds.Notebook, Small(1), directory=tmp_path)
    assert whole.summary.failed == 0
    cut = memx.run(worlds.Backwards, Small(1), directory=tmp_path, context_budget=20)
    assert cut.summary.failed == 3
    causes = {t.diagnosis.cause for t in cut.traces() if t.diagnosis}
    assert causes == {Cause.OVER_BUDGET}
