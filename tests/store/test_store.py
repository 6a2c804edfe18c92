"""The run store on real SQLite files: what is written is read back, and bad files are refused in words."""

from __future__ import annotations

import sqlite3
import threading
from datetime import datetime
from pathlib import Path

import pytest

from memx.engine.store.reader import Store, Where
from memx.engine.store.schema import MIGRATIONS
from memx.engine.store.writer import RunWriter, delete_run
from memx.errors import MemxError, StoreError, UnknownNameError
from memx.model import (
    Candidate,
    Case,
    DiagnosedFact,
    Diagnosis,
    DiffCounts,
    EvidencePiece,
    Fact,
    NearMiss,
    Question,
    RankMetrics,
    RetrievalMetrics,
    Retrieved,
    Session,
    SignalGap,
    Snapshot,
    StepFailure,
    Trace,
    Turn,
    Verdict,
)

TURNS = (
    Turn("D1:1", "Ana", "user", "I moved to Porto [bold]yesterday[/bold] \x1b[31m", datetime(2024, 3, 1, 9, 30)),
    Turn("D1:2", "Ben", "assistant", "Nice! שלום 👩‍👧", None, {"caption": "a bridge"}),
)
QUESTION = Question(
    "c1:q0", "c1", "Where does Ana live?", "Porto", "single-hop", ("D1:1",), ("D1",), metadata={"trap": "x"}
)
CASE = Case("c1", "c1", (Session("D1", "c1", TURNS, TURNS[0].at), Session("D2", "c1", ())), (QUESTION,))
OLD = Fact("f1", "Ana lives in Lisbon", created_at=datetime(2024, 1, 1))
NEW = Fact("f1", "Ana lives in Porto", source_turn_ids=("D1:1",), metadata={"n": 1})
OTHER = Fact("f2", "Ana likes tea", status="superseded", supersedes=("f9",))


def begun(directory: Path, run_id: str = "r1") -> RunWriter:
    writer = RunWriter(directory, run_id)
    writer.begin(dataset="demo", adapter="local", judge="offline", settings={"top_k": 2}, manifest={"seed": 7})
    return writer


def failed_trace(attempt: int = 1) -> Trace:
    diagnosis = Diagnosis(
        "retrieval", "ranked_below_k", 0.9, "fact f1 at rank 3", "provenance",
        evidence=(EvidencePiece("D1:1", "moved", ("f1",), "active", 3, False, None, "provenance"),),
        facts=(DiagnosedFact("f1", "Ana lives in Porto", "active", "expected"),),
        near_misses=(NearMiss("f1", "f2", 3, 2, (SignalGap("bm25", 1.0, 2.0),), ("k >= 3",)),),
        notes=("a note",),
    )  # fmt: skip
    level = RankMetrics({1: 0.0, 3: 1.0}, {1: 0.0, 3: 1.0}, {1: 0.0, 3: 0.5}, 1 / 3)
    return Trace(
        question=QUESTION, case_id="c1", entity_id="run-c1", top_k=2, verdict=Verdict("FAIL", "rule", "no Porto", 0.0),
        retrieved=(
            Retrieved("f2", "Ana likes tea", 0.5, {"bm25": 2.0}),
            Retrieved("x", "not in any snapshot", None, {}, {"source_turn_ids": ["D1:2"]}),
            Retrieved("f1", "Ana lives in Porto", 0.25, {"bm25": 1.0, "dense": 0.125}, {"n": 1, "ranks": {"bm25": 2}}),
        ),
        candidate=Candidate("Ana likes tea", "retrieved", 4), diagnosis=diagnosis,
        metrics=RetrievalMetrics(level, level), diff=DiffCounts(1, 0, 1, 0), timings_ms={"query": 1.5},
        declared={"considered": 2}, attempt=attempt,
    )  # fmt: skip


def write_case(writer: RunWriter) -> int:
    attempt = writer.begin_case(CASE, 0, "run-c1")
    before, after = Snapshot("run-c1", (OLD,)), Snapshot("run-c1", (NEW, OTHER))
    writer.write_snapshot("c1", attempt, 0, before, None)
    writer.write_snapshot("c1", attempt, 1, after, before, "D1")
    writer.end_case("c1", "ready", facts=2, diff=DiffCounts(1, 0, 1, 0), timings={"ingest": 3.0})
    return attempt


def test_a_trace_and_its_case_come_back_as_they_were(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    attempt = write_case(writer)
    trace = failed_trace(attempt)
    writer.write_trace(trace, 0)
    writer.end("finished", {"questions": 1})
    writer.close()

    store = Store(tmp_path)
    assert store.trace("r1", "c1:q0") == trace
    assert list(store.traces("r1")) == [trace]
    assert store.sessions("r1", "c1") == list(CASE.sessions)
    assert store.snapshot("r1", "c1").facts == (NEW, OTHER)
    assert store.snapshot("r1", "c1", step=0).facts == (OLD,)
    diff = store.diff("r1", "c1")
    assert (diff.added, diff.removed, diff.changed, diff.unchanged) == ((OTHER,), (), ((OLD, NEW),), 0)
    assert [(e.old, e.new) for e in store.timeline("r1", "c1", "f1")] == [(None, OLD), (OLD, NEW)]
    row = store.run()
    assert (row.run_id, row.state, row.done, row.summary) == ("r1", "finished", 1, {"questions": 1})
    assert store.questions("r1")[0].rank == 3
    assert store.facets("r1", "cause") == {"ranked_below_k": 1}
    assert store.count("r1", Where("stage = ?", ("extraction",))) == 0


def test_a_removed_fact_is_gone_from_the_later_snapshot_only(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    attempt = writer.begin_case(CASE, 0, "run-c1")
    first, second = Snapshot("e", (OLD, OTHER)), Snapshot("e", (OTHER,))
    writer.write_snapshot("c1", attempt, 0, first, None)
    writer.write_snapshot("c1", attempt, 1, second, first)
    writer.close()
    store = Store(tmp_path)
    assert store.snapshot("r1", "c1", step=0).facts == (OLD, OTHER)
    assert store.snapshot("r1", "c1").facts == (OTHER,)


def test_a_resumed_case_is_a_new_attempt_and_keeps_the_old_snapshots(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    write_case(writer)
    writer.write_trace(failed_trace(1), 0)
    assert writer.begin_case(CASE, 0, "run-c1-2") == 2
    writer.close()
    store = Store(tmp_path)
    assert store.trace("r1", "c1:q0").retrieved[2].content == "Ana lives in Porto"
    assert store.snapshot("r1", "c1", attempt=1).facts == (NEW, OTHER)
    assert store.snapshot("r1", "c1").facts == ()


def test_an_error_trace_is_asked_again_on_resume(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    failure = StepFailure("ingest", "boom", "RuntimeError", "look at the log")
    trace = Trace(QUESTION, "c1", "run-c1", 2, Verdict("ERROR", "memx", "ingest failed"), error=failure)
    writer.write_trace(trace, 0)
    store = Store(tmp_path)
    assert store.done_questions("r1") == set()
    assert store.trace("r1", "c1:q0").error == failure
    writer.write_trace(failed_trace(), 0)
    assert store.done_questions("r1") == {"c1:q0"}
    writer.close()


def test_two_writers_and_a_reader_share_one_file(tmp_path: Path) -> None:
    writers = [begun(tmp_path, f"r{n}") for n in range(2)]
    reader = Store(tmp_path)

    def work(writer: RunWriter) -> None:
        for n in range(50):
            question = Question(f"q{n}", "c1", "?", "a", "x")
            writer.write_trace(Trace(question, "c1", "e", 1, Verdict("PASS", "rule", "")), n)

    threads = [threading.Thread(target=work, args=(w,)) for w in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reader.count(f"r{n}") for n in range(2)] == [50, 50]
    for writer in writers:
        writer.close()


def test_deleting_a_run_leaves_the_others(tmp_path: Path) -> None:
    for run_id in ("r1", "r2"):
        writer = begun(tmp_path, run_id)
        write_case(writer)
        writer.write_trace(failed_trace(), 0)
        writer.end("finished", {})
        writer.close()
    delete_run(tmp_path, "r1")
    store = Store(tmp_path)
    assert [row.run_id for row in store.runs()] == ["r2"]
    assert store.trace("r2", "c1:q0") == failed_trace()
    assert store.sessions("r2", "c1")


def test_text_that_utf8_cannot_hold_does_not_stop_a_run(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    question = Question("q", "c1", "what \ud800?", "\udfff", "x")
    writer.write_trace(Trace(question, "c1", "e", 1, Verdict("PASS", "rule", "\ud800")), 0)
    writer.close()
    assert Store(tmp_path).trace("r1", "q").question.text == "what \\ud800?"


def _text_file(path: Path) -> None:
    path.write_text("hello " * 1000)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (x)")


def _newer(path: Path) -> None:
    begun(path.parent).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")


def _truncated(path: Path) -> None:
    writer = begun(path.parent)
    write_case(writer)
    writer.close()
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(_text_file, "damaged"), (_foreign, "another program"), (_newer, "newer memx"), (_truncated, "damaged")],
)
def test_a_file_that_is_no_usable_store_is_refused_and_left_alone(tmp_path: Path, spoil, words: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "memx.db"
    spoil(path)
    content = path.read_bytes()
    with pytest.raises(StoreError, match=words):
        begun(tmp_path)
    with pytest.raises(StoreError, match=words):
        Store(tmp_path).runs()
    assert path.read_bytes() == content


def test_no_store_and_unknown_names_are_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="memx run"):
        Store(tmp_path)
    begun(tmp_path, "20260101-aaa").close()
    store = Store(tmp_path)
    assert store.run("2026").run_id == "20260101-aaa"
    with pytest.raises(UnknownNameError, match="20260101-aaa"):
        store.run("20260101-aab")
    with pytest.raises(MemxError, match="no question named"):
        store.find_question("c1:q9")


def test_a_full_disk_is_said_and_loses_no_finished_question(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    used = writer._db.execute("PRAGMA page_count").fetchone()[0]
    writer._db.execute(f"PRAGMA max_page_count = {used + 20}")
    written = 0
    with pytest.raises(StoreError, match="disk is full"):
        for number in range(1000):
            question = Question(f"q{number}", "c1", "x" * 3000, "a", "x")
            writer.write_trace(Trace(question, "c1", "e", 1, Verdict("PASS", "rule", "")), number)
            written += 1
    assert 0 < written < 1000
    assert Store(tmp_path).count("r1") == written
    writer.close()
