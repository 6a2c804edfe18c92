"""The conformance kit: sound systems pass, and each fault is found by the check that is there for it."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memx.adapters.conformance import Report, check_adapter, check_names
from memx.adapters.contract import MemoryAdapter
from memx.adapters.registry import adapter_class
from memx.cli.main import run_command
from memx.errors import AdapterError, UnknownNameError
from memx.model import Fact, QueryResult, Retrieved, Session, Snapshot

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "memory_service.py"


class Sound(MemoryAdapter):
    """Does everything right, as simply as can be."""

    name = "sound"

    def __init__(self, **options: Any) -> None:
        self.facts: dict[str, list[Fact]] = {}

    def ingest_session(self, session: Session) -> None:
        for turn in session.turns:
            text = f"{turn.speaker}: {turn.content}"
            fact = Fact(
                f"{session.entity_id}/{turn.turn_id}", text, source_turn_ids=(turn.turn_id,), created_at=turn.at
            )
            self.facts.setdefault(session.entity_id, []).append(fact)

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        asked = set(query.split())
        ranked = sorted(self.facts.get(entity_id, ()), key=lambda fact: -len(asked & set(fact.content.split())))
        return QueryResult(tuple(Retrieved(fact.fact_id, fact.content) for fact in ranked[:top_k]))

    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, tuple(self.facts.get(entity_id, ())))

    def reset(self, entity_id: str) -> None:
        self.facts.pop(entity_id, None)


class ScoresInWords(Sound):
    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = super().query(query, entity_id, top_k).facts
        return QueryResult(tuple(replace(fact, score="high") for fact in found))  # type: ignore[arg-type]


class ShowsNothing(Sound):
    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, ())


class FindsNothing(Sound):
    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return QueryResult(())


class Leaks(Sound):
    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        everybody = Sound()
        everybody.facts = {entity_id: [fact for facts in self.facts.values() for fact in facts]}
        return everybody.query(query, entity_id, top_k)


class TimesRunBackwards(Sound):
    def export_state(self, entity_id: str) -> Snapshot:
        facts = self.facts.get(entity_id, ())
        return Snapshot(entity_id, tuple(replace(f, created_at=facts[-1 - n].created_at) for n, f in enumerate(facts)))


class Changed(Sound):
    """Each fact is changed as it is stored."""

    def changed(self, fact: Fact) -> Fact:
        raise NotImplementedError

    def ingest_session(self, session: Session) -> None:
        before = len(self.facts.get(session.entity_id, ()))
        super().ingest_session(session)
        facts = self.facts[session.entity_id]
        facts[before:] = [self.changed(fact) for fact in facts[before:]]


class LosesDates(Changed):
    def changed(self, fact: Fact) -> Fact:
        return replace(fact, created_at=None)


class StampsTheWrongDate(Changed):
    def changed(self, fact: Fact) -> Fact:
        return replace(fact, created_at=datetime(2026, 1, 1))


class LosesNames(Changed):
    def changed(self, fact: Fact) -> Fact:
        return replace(fact, content="user: " + fact.content.partition(": ")[2])


class NamesWrongTurns(Changed):
    def changed(self, fact: Fact) -> Fact:
        return replace(fact, source_turn_ids=("s1:1",))


class KnowsAsciiOnly(Changed):
    def changed(self, fact: Fact) -> Fact:
        return replace(fact, content=fact.content.encode("ascii", "replace").decode())


class CutsLongText(Changed):
    def changed(self, fact: Fact) -> Fact:
        return replace(fact, content=fact.content[:1000])


class IgnoresK(Sound):
    def ingest_session(self, session: Session) -> None:
        print("said on standard output")
        super().ingest_session(session)

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return super().query(query, entity_id, 1000)


class FindsUnderOtherIds(Sound):
    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = super().query(query, entity_id, top_k).facts
        return QueryResult(tuple(replace(fact, fact_id=f"chunk-{fact.fact_id}") for fact in found))


class NamesAnewEachTime(Sound):
    numbers: ClassVar[Any] = itertools.count()

    def export_state(self, entity_id: str) -> Snapshot:
        facts = self.facts.get(entity_id, ())
        return Snapshot(entity_id, tuple(replace(fact, fact_id=f"row-{next(self.numbers)}") for fact in facts))


class StumblesOverStrangers(Sound):
    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, tuple(self.facts[entity_id]))


class StumblesOverEmptyTurns(Sound):
    def ingest_session(self, session: Session) -> None:
        if any(not turn.content for turn in session.turns):
            raise ValueError("content must not be empty")
        super().ingest_session(session)


class ShowsTheFirstPage(Sound):
    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, super().export_state(entity_id).facts[:100])


class ForgetsEverybody(Sound):
    def reset(self, entity_id: str) -> None:
        self.facts.clear()


class ForgetsNobody(Sound):
    def reset(self, entity_id: str) -> None:
        pass


class ClaimsToKeep(Sound):
    keeps_data = True


class SharesOneShelf(Sound):
    """Instances share a shelf, and each believes that the whole of it is its own."""

    shelf: ClassVar[dict[str, list[Fact]]] = {}

    def __init__(self, **options: Any) -> None:
        self.facts = self.shelf
        self.mine: set[str] = set()

    def ingest_session(self, session: Session) -> None:
        self.mine.add(session.entity_id)
        super().ingest_session(session)

    def export_state(self, entity_id: str) -> Snapshot:
        others = [f for e in list(self.shelf) if e not in self.mine for f in self.shelf[e]]
        return Snapshot(entity_id, (*self.facts.get(entity_id, ()), *others))


class Hangs(Sound):
    gate: ClassVar[threading.Event] = threading.Event()

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        if top_k == 3:
            self.gate.wait()
        return super().query(query, entity_id, top_k)


class CannotStart(Sound):
    def __init__(self, **options: Any) -> None:
        raise RuntimeError("no licence")


class BreaksAtTheStart(Sound):
    def describe(self) -> dict[str, Any]:
        raise RuntimeError("no server")


def outcomes(report: Report) -> dict[str, str]:
    return {result.name: str(result.outcome) for result in report.results}


@pytest.mark.parametrize("name", ["local", "word-overlap", "no-context", "full-context", "oracle", "random-k"])
def test_every_system_in_the_process_passes(name: str) -> None:
    report = check_adapter(adapter_class(name))
    assert report.failed == (), [(r.name, r.why) for r in report.results]
    assert not report.left


def test_the_example_service_passes_over_http_and_as_a_command() -> None:
    def command() -> MemoryAdapter:
        return adapter_class("command")(command=f"{sys.executable} {EXAMPLE} --stdio")

    assert check_adapter(command).failed == ()
    with subprocess.Popen([sys.executable, EXAMPLE, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        report = check_adapter(lambda: adapter_class("http")(url=url))
        process.terminate()
    assert report.failed == () and outcomes(report)["k"] == "pass" and report.facts["name"] == "word-notebook"


def test_sound_system_passes_every_check_that_applies() -> None:
    report = check_adapter(Sound)
    assert {name for name, outcome in outcomes(report).items() if outcome != "pass"} == {"second-instance"}
    assert tuple(outcomes(report)) == check_names()


@pytest.mark.parametrize(
    ("adapter", "fails", "says"),
    [
        (FindsNothing, {"ready", "k"}, "bring nothing back"),
        (Leaks, {"isolation", "ids", "unknown-entity", "reset"}, "finds a fact of another"),
        (TimesRunBackwards, {"order", "dates"}, "its created_at is later"),
        (LosesDates, {"dates"}, "12 of 12 facts tell nowhere when they were said: turn s1:1 of 2023-05-08"),
        (StampsTheWrongDate, {"dates"}, "created_at 2026-01-01"),
        (LosesNames, {"names"}, "12 of 12 facts lost their speaker"),
        (NamesWrongTurns, {"sources"}, "11 of 12 facts name another turn"),
        (KnowsAsciiOnly, {"unicode"}, r"became .*\?"),
        (CutsLongText, {"long-text"}, "the longest fact has 1,000"),
        (IgnoresK, {"k"}, "asked for 1, it brings 12"),
        (ScoresInWords, {"ready", "isolation", "k", "ids", "determinism", "unicode", "two-at-once"},
         "a score that is no number"),
        (FindsUnderOtherIds, {"ids"}, "are listed with the same text under another id"),
        (NamesAnewEachTime, {"ids", "determinism"}, "ids change between two listings"),
        (StumblesOverStrangers, {"unknown-entity", "reset"}, "it raised KeyError"),
        (StumblesOverEmptyTurns, {"empty-turn"}, "content must not be empty"),
        (ShowsTheFirstPage, {"paging"}, "100 facts show 100 of 250 turns"),
        (ForgetsEverybody, {"reset"}, "another entity was emptied too"),
        (ForgetsNobody, {"reset"}, "4 facts are left"),
        (ClaimsToKeep, {"second-instance"}, "12 of 12 facts are not listed by a second instance"),
        (SharesOneShelf, {"two-at-once", "reset"}, "one instance sees the other's fact"),
    ],
)  # fmt: skip
def test_each_fault_fails_its_check_and_no_other(adapter: type[MemoryAdapter], fails: set[str], says: str) -> None:
    report = check_adapter(adapter)
    broken = {result.name: result.why for result in report.results if result.name in report.failed}
    assert set(broken) == fails, broken
    assert any(re.search(says, why) for why in broken.values()), broken


@pytest.mark.parametrize(("adapter", "first"), [(BreaksAtTheStart, "start"), (ShowsNothing, "stored")])
def test_what_all_checks_need_ends_them(adapter: type[MemoryAdapter], first: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("memx.adapters.conformance.store_checks._LATE_S", 0.0)
    report = check_adapter(adapter)
    assert report.failed == (first,)
    assert f"not tried, since '{first}' failed" in {result.why for result in report.results}


def test_a_call_that_hangs_ends_the_kit_and_one_that_cannot_start_is_one_error() -> None:
    report = check_adapter(Hangs, timeout_s=0.1, skip=["two-at-once"])
    assert "k" in report.failed and "isolation" not in report.failed
    said = {result.name: result.why for result in report.results}
    assert said["k"] == "it does not return within 1 s" and said["ids"] == "not tried, since 'k' failed"
    assert report.left
    Hangs.gate.set()
    with pytest.raises(AdapterError, match="cannot start: RuntimeError: no licence"):
        check_adapter(CannotStart)


def test_a_check_can_be_left_out_and_an_unknown_one_is_named() -> None:
    report = check_adapter(ShowsTheFirstPage, skip=["paging"])
    assert report.failed == () and outcomes(report)["paging"] == "n/a"
    with pytest.raises(UnknownNameError, match="Did you mean paging"):
        check_adapter(Sound, skip=["pagin"])


# ---------------------------------------------------------------------------------------------- the command and pytest


def test_check_prints_a_table_exits_1_on_a_fail_and_speaks_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["adapters", "check", "tests.systems.test_conformance:Sound"]) == 0
    assert "18 pass  1 n/a" in capsys.readouterr().out
    broken = "tests.systems.test_conformance:IgnoresK"
    assert run_command(["adapters", "check", broken]) == 1
    table = capsys.readouterr().out
    assert "k                FAIL" in table and "asked for 1, it brings 12" in table
    assert max(map(len, table.splitlines())) <= 80
    assert run_command(["adapters", "check", broken, "--json", "--skip", "paging"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "memx.conformance/1" and told["failed"] == ["k"] and not told["passed"]


def test_new_writes_an_adapter_whose_tests_and_checks_pass_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["adapters", "new", "quiet-shelf", "--to", str(tmp_path)]) == 0
    assert "memx adapters check quiet_shelf:QuietShelfMemory" in capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "MEMX_DIR": str(tmp_path / "m")},
    )  # fmt: skip
    assert done.returncode == 0 and "19 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert run_command(["adapters", "new", "quiet-shelf", "--to", str(tmp_path)]) == 2
    assert run_command(["adapters", "new", "Not A Name", "--to", str(tmp_path)]) == 2
    assert run_command(["adapters", "new", "local", "--to", str(tmp_path)]) == 2


def test_the_fixture_fails_with_every_failed_check(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from tests.systems.test_conformance import IgnoresK, Sound\n"
        "def test_sound(check_adapter): check_adapter(Sound)\n"
        "def test_broken(check_adapter): check_adapter(IgnoresK, skip=['paging'])\n"
    )
    plugin = [] if _plugin_is_installed() else ["-p", "memx.adapters.conformance.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, str(tmp_path / "test_it.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=EXAMPLE.parents[1])
    assert "1 failed, 1 passed" in done.stdout and "k: A search brings back at most" in done.stdout, done.stdout


def _plugin_is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(point.value == "memx.adapters.conformance.pytest_plugin" for point in entry_points(group="pytest11"))


def test_show_tells_options_environment_and_what_cannot_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["adapters", "show", "http"]) == 0
    text = capsys.readouterr().out
    for words in ("MEMX_HTTP_URL", "(secret)", "A snapshot shows", "It cannot show", "keeps_data"):
        assert words in text
    assert run_command(["adapters", "show", "http", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    wanted = {"option": "token", "default": "(secret)", "environment": "MEMX_HTTP_TOKEN"}
    assert wanted.items() <= told["options"][1].items()
