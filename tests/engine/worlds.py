"""Small datasets and memory systems, good and broken, that the engine's tests run for real."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import memx
from memx.adapters.contract import Dataset, DatasetInfo, MemoryAdapter
from memx.model import Case, Fact, QueryResult, Question, Retrieved, Session, Snapshot, Turn

CITIES = ["Porto", "Lyon", "Graz", "Cork", "Bergen", "Gdansk"]
TRIPS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]


def small_case(number: int, questions: int = 3, sessions: int = 2) -> Case:
    """A case whose question n is answered by turn n, which alone names its city."""
    case_id = f"case-{number}"
    start = datetime(2024, 1, 1 + number, 9)
    turns = [
        Turn(f"D1:{n}", "Ana", "user", f"On trip {TRIPS[n]} of case {number} I went to {CITIES[n]}.", start)
        for n in range(questions)
    ]
    made = [Session("D1", case_id, tuple(turns), start)]
    for extra in range(2, sessions + 1):
        said = Turn(f"D{extra}:0", "Ben", "assistant", f"Small talk number {extra}.", start + timedelta(days=extra))
        made.append(Session(f"D{extra}", case_id, (said,), said.at))
    asked = []
    for n in range(questions):
        text = f"Where did trip {TRIPS[n]} of case {number} go?"
        asked.append(Question(f"{case_id}:q{n}", case_id, text, CITIES[n], "single-hop", (f"D1:{n}",), ("D1",)))
    return Case(case_id, case_id, tuple(made), tuple(asked))


class Small(Dataset):
    """A few small cases."""

    name = "small"

    def __init__(self, cases: int = 3, questions: int = 3, sessions: int = 2) -> None:
        self._cases = [small_case(n, questions, sessions) for n in range(cases)]

    @classmethod
    def load(cls, source: Path | None = None, cases: Any = 3, questions: Any = 3, **options: Any) -> Small:
        return cls(int(cases), int(questions))

    @property
    def info(self) -> DatasetInfo:
        return DatasetInfo("small", sha256="ab" * 32)

    def cases(self) -> Iterator[Case]:
        yield from self._cases


class Notebook(MemoryAdapter):
    """Stores turns word for word and ranks them by shared words."""

    name = "notebook"
    seen: ClassVar[list[tuple[str, Any]]] = []

    def __init__(self, **options: Any) -> None:
        self.notes: dict[str, list[tuple[str, str]]] = {}
        self.made_in = threading.get_ident()

    def ingest_session(self, session: Session) -> None:
        self.seen.append(("ingest", session))
        assert threading.get_ident() == self.made_in
        self.notes.setdefault(session.entity_id, []).extend((t.turn_id, t.content) for t in session.turns)

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        self.seen.append(("query", (query, entity_id, top_k)))
        words = set(query.lower().strip("?").split())
        scored = [
            (len(words & set(text.lower().strip(".").split())), i, text) for i, text in self.notes.get(entity_id, [])
        ]
        scored.sort(key=lambda item: -item[0])
        return QueryResult(tuple(Retrieved(i, text, score) for score, i, text in scored[:top_k]))

    def export_state(self, entity_id: str) -> Snapshot:
        return Snapshot(entity_id, tuple(Fact(i, t, source_turn_ids=(i,)) for i, t in self.notes.get(entity_id, [])))


class Forgetful(Notebook):
    """Finds nothing that is about trip beta."""

    name = "forgetful"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = super().query(query, entity_id, 50).facts
        return QueryResult(tuple(f for f in found if "trip beta" not in f.content)[:top_k])


class BreaksOnCase1(Notebook):
    """Raises a plain exception while it stores the second case."""

    name = "breaks-on-case-1"

    def ingest_session(self, session: Session) -> None:
        if "case-1" in session.entity_id:
            raise RuntimeError("HTTP 401 with key sk-abcdefghijklmnop")
        super().ingest_session(session)


class HangsWhenReady(Notebook):
    """Never becomes ready on the second case, whatever time-out it is given."""

    name = "hangs-when-ready"

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        if "case-1" in entity_id:
            threading.Event().wait()


class NotReady(Notebook):
    """Says itself that it is not ready."""

    name = "not-ready"

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        raise memx.AdapterTimeoutError("the index is still building", "Give it more time.")


class QueryFails(Notebook):
    """Fails on one question only."""

    name = "query-fails"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        if "trip beta" in query:
            raise ValueError("cannot parse the query")
        return super().query(query, entity_id, top_k)


class Clumsy(Notebook):
    """Prints, notes what is no text, and fails with an error that cannot say what it is."""

    name = "clumsy"

    def describe(self) -> dict[Any, Any]:
        return {1: "one", "api_key": "sk-abcdefghijklmnop"}

    def ingest_session(self, session: Session) -> None:
        print("said on standard output")
        super().ingest_session(session)
        self.note(None)  # type: ignore[arg-type]
        for number in range(60):
            self.note(f"oddity {number}")
        if session.entity_id.endswith("case-1"):
            raise Speechless


class Speechless(Exception):
    """An error whose own words fail."""

    def __str__(self) -> str:
        raise ValueError("no words")


class HangsWhenAsked(Notebook):
    """Never returns from a search."""

    name = "hangs-when-asked"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        threading.Event().wait()
        raise AssertionError


class DescribesNothing(Notebook):
    """Has nothing to tell of itself."""

    name = "describes-nothing"

    def describe(self) -> Any:
        return None


class ReturnsNonsense(Notebook):
    """Returns a list where a QueryResult belongs."""

    name = "returns-nonsense"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return ["Porto"]  # type: ignore[return-value]


class Answers(Notebook):
    """Answers by itself: right on trip alpha, wrong on the others."""

    name = "answers"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        found = super().query(query, entity_id, top_k)
        return QueryResult(found.facts, answer="Porto" if "trip alpha" in query else "Nairobi")


class LacksExport:
    """No subclass, and without ``export_state``."""

    def ingest_session(self, session: Session) -> None: ...

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult: ...


class Gated(Notebook):
    """Stops for good at question ``MEMX_TEST_GATE`` after saying so through a named pipe."""

    name = "gated"
    asked: ClassVar[int] = 0

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        type(self).asked += 1
        gate = os.environ.get("MEMX_TEST_GATE", "")
        if gate and type(self).asked == int(gate):
            Path(os.environ["MEMX_TEST_PIPE"]).write_text("reached")
            threading.Event().wait()
        return super().query(query, entity_id, top_k)


class Interrupts(Notebook):
    """Presses Ctrl-C at its second question."""

    name = "interrupts"
    asked: ClassVar[int] = 0
    made: ClassVar[int] = 0
    closed: ClassVar[int] = 0

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        type(self).made += 1

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        type(self).asked += 1
        if type(self).asked == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return super().query(query, entity_id, top_k)

    def close(self) -> None:
        type(self).closed += 1


class Backwards(Notebook):
    """Finds everything that it stored, best last."""

    name = "backwards"

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return QueryResult(super().query(query, entity_id, top_k).facts[::-1])
