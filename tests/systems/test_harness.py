"""What a run makes of a memory system that is empty, late, half written or odd: named, counted, shown, no crash."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

import memx
from memx.cli.main import run_command
from memx.engine.events import Event, Notice
from memx.engine.store.reader import Store
from memx.model import Outcome, QueryResult, Session, Snapshot
from tests.engine.worlds import Notebook, Small


class Forgetting(Notebook):
    """Takes everything and stores nothing, without a word."""

    name = "forgetting"

    def ingest_session(self, session: Session) -> None:
        pass


class Unlisted(Notebook):
    """Finds what it cannot list."""

    name = "unlisted"

    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, ())


class Late(Notebook):
    """Says that it is ready, and shows its facts two looks later."""

    name = "late"
    looks = 0

    def export_state(self, entity_id: str) -> Snapshot:
        self.looks += bool(self.notes)
        return super().export_state(entity_id) if self.looks > 2 else Snapshot(entity_id, ())


class BreaksHalfWay(Notebook):
    """Stores one turn of the second session and fails."""

    name = "breaks-half-way"

    def ingest_session(self, session: Session) -> None:
        super().ingest_session(replace(session, turns=session.turns[:1]))
        if session.session_id == "D2":
            raise memx.AdapterError("the connection broke", "Try again.")


class NamesAnew(Notebook):
    """Lists facts under other ids than searches bring."""

    name = "names-anew"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = super().query(query, entity_id, top_k).facts
        return QueryResult(tuple(replace(fact, fact_id=f"hit-{fact.fact_id}") for fact in found))


class FromTheFuture(Notebook):
    """Its clock is wrong."""

    name = "from-the-future"

    def export_state(self, entity_id: str) -> Snapshot:
        facts = super().export_state(entity_id).facts
        wrong = (datetime(2091, 3, 4), datetime(1970, 1, 1), datetime(2024, 1, 2), None)
        return Snapshot(entity_id, tuple(replace(f, created_at=t) for f, t in zip(facts, wrong, strict=False)))


class Picky(Notebook):
    """Refuses small talk, and says so."""

    name = "picky"

    def ingest_session(self, session: Session) -> None:
        kept = tuple(turn for turn in session.turns if "Small talk" not in turn.content)
        for _ in range(len(session.turns) - len(kept)):
            self.note("a turn was refused by the content filter")
        super().ingest_session(replace(session, turns=kept))


class Lasting(Notebook):
    """Keeps its data beyond the process."""

    name = "lasting"
    keeps_data = True
    shelf: ClassVar[dict[str, list[tuple[str, str]]]] = {}
    stubborn: ClassVar[bool] = False

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.notes = self.shelf

    def reset(self, entity_id: str) -> None:
        if not self.stubborn:
            self.shelf.pop(entity_id, None)


class Unreachable(Notebook):
    """Searches over the network: nobody listens, a name is unknown, or its own code is at fault."""

    name = "unreachable"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        if "alpha" in query:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            socket.create_connection(("127.0.0.1", port))
        if "beta" in query:
            raise memx.AdapterError("search failed", "Is its address right?") from socket.gaierror("unknown name")
        raise KeyError("score")


def run(adapter: type[memx.MemoryAdapter], directory: Path, cases: int = 1, **settings: Any) -> tuple[Any, list[str]]:
    """The run, and the notices it gave before its first question and after."""
    told: list[str] = []

    def listen(event: Event) -> None:
        told.append(event.text if isinstance(event, Notice) else type(event).__name__)

    return memx.run(adapter, Small(cases), directory=directory, listener=listen, **settings), told


def test_a_store_that_stays_empty_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    Notebook.seen.clear()
    done, told = run(Forgetting, tmp_path, ready_timeout=0.05)
    assert done.summary.errors == 3 == done.summary.questions
    assert done.summary.broken == {"nothing stored": 3} and "broken    3 nothing stored" in str(done)
    error = next(done.traces()).error
    assert (error.step, error.kind) == ("store", "AdapterError")
    assert error.message == "nothing is stored: 2 sessions with 4 turns went in, and the store is empty"
    assert "memx adapters check" in error.hint and "CaseFailed" in told


def test_a_lost_connection_is_told_from_a_fault_of_the_system(tmp_path: Path) -> None:
    done, _ = run(Unreachable, tmp_path)
    assert done.summary.broken == {"infrastructure: no connection at query": 2, "memory system failed at query": 1}
    assert "2 infrastructure: no connection at query" in str(done)
    assert sorted(trace.error.infrastructure for trace in done.traces()) == ["", "no connection", "no connection"]


def test_a_store_that_cannot_be_listed_is_searched_all_the_same(tmp_path: Path) -> None:
    done, told = run(Unlisted, tmp_path, ready_timeout=0.05)
    assert done.summary.passed == 3
    finding = "case-0: export_state shows nothing, and searches find facts: what is stored cannot be seen"
    assert told.index(finding) < told.index("QuestionFinished")


def test_a_store_that_is_late_is_waited_for_and_told(tmp_path: Path) -> None:
    done, told = run(Late, tmp_path)
    assert done.summary.passed == 3
    assert any("not ready when it said so: the first facts appeared" in line for line in told)


def test_what_was_stored_before_a_failure_is_counted_and_kept(tmp_path: Path) -> None:
    done, _ = run(BreaksHalfWay, tmp_path)
    trace = next(done.traces())
    assert trace.verdict.outcome is Outcome.ERROR and trace.error.step == "ingest"
    assert trace.error.message == "the connection broke (1 of 2 sessions went in whole; 2 facts are stored)"
    store = Store(tmp_path)
    assert len(store.snapshot(done.run_id, "case-0", 1).facts) == 2
    store.close()


@pytest.mark.parametrize(
    ("adapter", "findings"),
    [
        (NamesAnew, ["searches brought 4 ids that export_state does not list, 4 of them with the text of a listed "
                     "fact: ids change between calls"]),
        (FromTheFuture, ["1 facts have a created_at in the future, up to 2091-03-04",
                         "1 facts have a created_at of 1970 or before, as a clock has that is not set"]),
        (Picky, ["a turn was refused by the content filter"]),
    ],
)  # fmt: skip
def test_an_oddity_is_counted_and_kept_with_the_case(
    adapter: type[memx.MemoryAdapter], findings: list[str], tmp_path: Path
) -> None:
    done, told = run(adapter, tmp_path)
    assert done.summary.errors == 0
    store = Store(tmp_path)
    assert list(store.cases(done.run_id)[0].findings) == findings
    store.close()
    assert [line for line in told if line.startswith("case-0: ")] == [f"case-0: {finding}" for finding in findings]
    summary = json.loads((tmp_path / "last_run.json").read_text())["summary"]
    assert [row["cases"] for row in summary["findings"]] == [1] * len(findings)
    assert "noticed of the memory system" in str(done)


def test_data_that_stays_is_listed_and_cleanup_deletes_it(tmp_path: Path) -> None:
    Lasting.shelf.clear()
    done, told = run(Lasting, tmp_path, cases=2)
    namespaces = [f"memx-{done.run_id}-case-{n}" for n in (0, 1)]
    assert sorted(Lasting.shelf) == namespaces
    assert any("2 namespaces" in line and "--cleanup" in line for line in told)
    assert json.loads((tmp_path / "last_run.json").read_text())["summary"]["left_behind"] == namespaces
    Lasting.shelf.clear()
    done, told = run(Lasting, tmp_path, cases=2, cleanup=True)
    assert Lasting.shelf == {} and done.summary.passed == 6
    assert json.loads((tmp_path / "last_run.json").read_text())["summary"]["left_behind"] == []
    assert not any("namespaces" in line for line in told)


def test_cleanup_that_deletes_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Lasting.shelf.clear()
    monkeypatch.setattr(Lasting, "stubborn", True)
    _, told = run(Lasting, tmp_path, cleanup=True)
    assert any("1 namespaces" in line for line in told)
    assert len(Lasting.shelf) == 1


def test_cleanup_on_resume_deletes_what_the_attempt_before_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lasting.shelf.clear()
    with monkeypatch.context() as broken:
        broken.setattr(Lasting, "stubborn", True)
        broken.setattr(Lasting, "query", lambda *_: None)
        done, _ = run(Lasting, tmp_path, cleanup=True)
    assert done.summary.errors == 3 and list(Lasting.shelf) == [f"memx-{done.run_id}-case-0"]
    resumed = memx.run(Lasting, Small(1), directory=tmp_path, resume=done.run_id)
    assert resumed.summary.passed == 3 and Lasting.shelf == {}
    assert resumed.summary.left_behind == ()


def test_cleanup_never_deletes_what_an_earlier_run_stored(tmp_path: Path) -> None:
    Lasting.shelf.clear()
    run(Lasting, tmp_path, entity_prefix="mine")
    run(Lasting, tmp_path, entity_prefix="mine", skip_ingest=True, cleanup=True)
    assert list(Lasting.shelf) == ["mine-case-0"]


def test_a_run_of_an_adapter_that_fails_its_conformance_check_is_stamped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def manifest(adapter: str, *options: str) -> Any:
        arguments = ["--limit", "1", "--quiet", "--adapter", f"tests.systems.test_conformance:{adapter}", *options]
        assert run_command(["run", "--dir", str(tmp_path), *arguments]) == 0
        return json.loads((tmp_path / "last_run.json").read_text())["manifest"]

    def check(adapter: str, code: int) -> None:
        name = f"tests.systems.test_conformance:{adapter}"
        assert run_command(["adapters", "check", name, "--dir", str(tmp_path)]) == code

    stamp = "the adapter fails its conformance check: k"
    assert manifest("IgnoresK")["adapter"]["conformance"] is None
    check("IgnoresK", 1)
    check("Sound", 0)
    stamped = manifest("IgnoresK")
    assert stamp in stamped["not_publishable_because"] and not stamped["publishable"]
    assert stamped["adapter"]["conformance"]["failed"] == {"k": "asked for 1, it brings 12"}
    assert "conformance check k: asked for 1, it brings 12" in capsys.readouterr().err
    # A result holds for the options that it was checked with, and for its own adapter.
    assert stamp not in manifest("IgnoresK", "--adapter-option", "other=1")["not_publishable_because"]
    sound = manifest("Sound")
    assert stamp not in sound["not_publishable_because"] and sound["adapter"]["conformance"]["failed"] == {}
