"""What the tests of hosted systems share: a small case with a knowledge update, faults, a whole ``memx run``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from memx.adapters.conformance import check_adapter
from memx.adapters.contract import MemoryAdapter
from memx.cli.main import run_command
from memx.engine.store.reader import Store
from memx.errors import AdapterError, AdapterTimeoutError, MemxError
from memx.model import Fact, Session, Snapshot, Turn
from tests.systems.doubles.server import KEY, Double

MARCH, JUNE = datetime(2024, 3, 4, 18, 30), datetime(2024, 6, 21, 9, 0, tzinfo=UTC)
OLD, PET, NEW = "march:1", "march:2", "june:1"
#: Faults of :class:`Double` and the words by which the error must name each.
NAMED = {
    "401": r"refused \(401\)",
    "429": r"rate limit \(429\)",
    "500": r"failed inside \(500\)",
    "html": "a web page",
    "garbled": "cut off or no JSON",
}


def need_sdk(package: str) -> str:
    """The installed version of a system's package; skips the test module, by name, where it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed", allow_module_level=True)


def sessions(entity: str = "case-1") -> list[Session]:
    """Two sessions: a home told in March and told anew in June, a pet, an assistant, unicode, one naive time."""
    march = (
        Turn(OLD, "Lena", "user", "I live in Graz."),
        Turn(PET, "Lena", "user", "I have a dog called Łucja – 犬."),
        Turn("march:3", "Tom", "assistant", "I like the mountains."),
    )
    june = (Turn(NEW, "Lena", "user", "I moved to Linz."), Turn("june:2", "Tom", "assistant", "I work at Siemens."))
    return [Session("march", entity, march, MARCH), Session("june", entity, june, JUNE)]


def many(turns: int, entity: str = "case-1") -> Session:
    """A session of so many turns, each with a fact of its own."""
    said = tuple(Turn(f"t{i}", "Lena", "user", f"I bought {i} apples in Town{i}.") for i in range(turns))
    return Session("many", entity, said, MARCH)


def filled(adapter: MemoryAdapter, entity: str = "case-1", ready_s: float = 10) -> Snapshot:
    """The snapshot after both sessions."""
    for session in sessions(entity):
        adapter.ingest_session(session)
    adapter.wait_until_ready(entity, ready_s)
    return adapter.export_state(entity)


def by_turn(snapshot: Snapshot) -> dict[str, Fact]:
    """The facts by the first turn that each came from."""
    return {fact.source_turn_ids[0]: fact for fact in snapshot.facts if fact.source_turn_ids}


def without_pauses(adapter: Any) -> list[float]:
    """Makes the adapter's retries wait for nothing; the pauses it would have made, in seconds, as they come."""
    pauses: list[float] = []
    adapter.calls._sleep = pauses.append
    return pauses


def check_faults(
    make: Callable[[], MemoryAdapter], double: Double, *, ingest: str, listing: str, search: str, skip: int = 0
) -> None:
    """Every fault is one clear error that names step and cause, when writing (after ``skip`` good writes), listing and
    searching; a fault that passes is survived where the call only reads. The paths are patterns.
    """
    adapter = make()
    without_pauses(adapter)
    for kind, words in NAMED.items():
        march = sessions(f"ingest-{kind}")[0]
        double.fail(kind, path=ingest, times=9, skip=skip)
        told = _told(partial(adapter.ingest_session, march), words)
        assert f"stored so far: {skip} of 3 turns of session march" in told, told
        double.clear()
    adapter.ingest_session(sessions("reading")[0])
    adapter.wait_until_ready("reading", 10)
    reads: list[tuple[str, Callable[[], Any]]] = [
        (listing, partial(adapter.export_state, "reading")),
        (search, partial(ask, adapter, "reading")),
    ]
    for (path, act), (kind, words) in product(reads, NAMED.items()):
        if kind != "401":
            double.fail(kind, path=path)
            assert act().facts
        double.fail(kind, path=path, times=9)
        _told(act, words)
        double.clear()
    adapter.close()


def _told(act: Callable[[], Any], words: str) -> str:
    """The words of the error that a call ends with; it names the cause, gives a way out and holds no key."""
    with pytest.raises(AdapterError, match=words) as caught:
        act()
    assert caught.value.hint and KEY not in str(caught.value)
    return str(caught.value)


def check_start(make: Callable[[], MemoryAdapter], double: Double) -> None:
    """A wrong key, an address of something else and a server that is away are told before anything is stored."""
    for kind in ("401", "html"):
        adapter: Any = make()
        without_pauses(adapter)
        double.fail(kind, times=9)
        _told(adapter.describe, NAMED[kind])
        double.clear()
        adapter.close()


def check_hang(make: Callable[..., MemoryAdapter], double: Double, *, ingest: str, attempts: int) -> None:
    """A write without an answer is a time-out that says what is stored; it is made again only where that is safe."""
    adapter = make(timeout_s=0.2)
    without_pauses(adapter)
    double.clear()
    double.fail("hang", method="POST", path=ingest, times=9)
    told = r"no answer in time.*stored so far: 0 of 3 turns of session march"
    with pytest.raises(AdapterTimeoutError, match=told):
        adapter.ingest_session(sessions("hang")[0])
    assert len(double.seen("POST", ingest)) == attempts
    double.clear()
    adapter.close()


def ask(adapter: MemoryAdapter, entity: str = "case-1", top_k: int = 10, text: str = "Where does Lena live?") -> Any:
    """The result of a query."""
    return adapter.query(text, entity, top_k)


def check_conformance(make: Callable[[], MemoryAdapter]) -> None:
    """Nothing that the conformance kit demands is failed."""
    report = check_adapter(make)
    assert report.failed == (), [(result.name, result.why) for result in report.results if result.name in report.failed]


def check_options(adapter: type[MemoryAdapter], *, key: str, needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is absent, an SDK of another version, and an SDK that is absent are each one clear error."""
    if key:
        monkeypatch.delenv(key, raising=False)
        with pytest.raises(MemxError, match=f"(?i)set {key}"):
            adapter()
        monkeypatch.setenv(key, KEY)
    adapter()
    with pytest.raises(MemxError, match="no_such"):
        adapter(no_such=1)
    monkeypatch.setattr("memx.adapters.packages.version", lambda _: "99.0")
    with pytest.raises(MemxError, match=rf"is written for {needed}.*pip install 'memx\[{adapter.name}\]'"):
        adapter()

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("memx.adapters.packages.version", absent)
    with pytest.raises(
        MemxError, match=rf"needs the package {needed.split()[0]}.*pip install 'memx\[{adapter.name}\]'"
    ):
        adapter()


@dataclass(frozen=True)
class Ran:
    """What a whole run left: its record for scripts, and the last snapshot of its one case."""

    code: int
    record: Mapping[str, Any]
    snapshot: Snapshot

    def question(self, question_id: str) -> Any:
        """One question of ``last_run.json``."""
        return next(q for q in self.record["questions"] if q["question_id"] == question_id)


def whole_run(folder: Path, adapter: str, *arguments: str, **options: Any) -> Ran:
    """``memx run`` over the small case with an adapter, through the command line."""
    history = [
        {
            "session_id": session.session_id,
            "at": session.at.isoformat() if session.at else None,
            "turns": [{n: getattr(t, n) for n in ("turn_id", "speaker", "role", "content")} for t in session.turns],
        }
        for session in sessions()
    ]
    home = {
        "question_id": "home",
        "text": "Where does Lena live?",
        "gold": "Linz",
        "category": "knowledge-update",
        "evidence": [NEW],
        "metadata": {"stale_evidence": [OLD]},
    }
    work = {"question_id": "work", "text": "Where does Tom work?", "gold": "Siemens", "evidence": ["june:2"]}
    data = folder / "case.jsonl"
    data.write_text(json.dumps({"case_id": "move", "sessions": history, "questions": [home, work]}))
    given = [part for name, value in options.items() for part in ("--adapter-option", f"{name}={value}")]
    source = ["--dataset", "jsonl", "--source", str(data), "--dir", str(folder / ".memx"), "--quiet"]
    code = run_command(["run", "--adapter", adapter, *source, *given, *arguments])
    record = json.loads((folder / ".memx" / "last_run.json").read_text())
    store = Store(folder / ".memx")
    try:
        snapshot = store.snapshot(record["run_id"], "move")
    finally:
        store.close()
    return Ran(code, record, snapshot)
