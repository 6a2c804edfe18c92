"""People's own data: JSON Lines, one case a line. ``case.schema.json`` beside this file is the format's schema.

Only ``case_id``, a turn's ``content`` and a question's ``text`` and ``gold`` are needed; whatever else is missing has a
default that is told by its position. Lines that are empty or begin with ``#`` are skipped. :func:`write_cases` writes
the same format, and what it wrote reads back equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.contract import Dataset, DatasetInfo, Quirk
from memx.adapters.datasets.cache import known_sha256
from memx.adapters.datasets.dates import iso_time
from memx.adapters.datasets.leaks import leaking_keys
from memx.adapters.datasets.options import flag, refuse_unknown
from memx.adapters.datasets.reading import SKIP_HINT, Findings, Record, decode, open_error, parse_json, refuse_no_file
from memx.errors import InputError, UnknownNameError, UsageError
from memx.model import Case, Question, Session, Turn

NOT_MENTIONED = "Not mentioned in the conversation"
_FIELDS = {
    "case": ("case_id", "entity_id", "sessions", "questions"),
    "session": ("session_id", "entity_id", "at", "turns", "metadata"),
    "turn": ("turn_id", "speaker", "role", "content", "at", "metadata"),
    "question": (
        "question_id", "entity_id", "text", "gold", "category", "evidence", "evidence_sessions", "asked_at",
        "abstention", "metadata",
    ),
}  # fmt: skip


class Jsonl(Dataset):
    """Cases from a JSON Lines file of one's own.

    Options:
        skip_bad: leave unusable lines, turns and questions out and count them, instead of raising.
    """

    name: ClassVar[str] = "jsonl"
    summary: ClassVar[str] = "your own conversations and questions, one case a line (memx datasets new)"
    needs_source: ClassVar[bool] = True

    def __init__(self, path: Path, skip_bad: bool) -> None:
        self._path = path
        self._skip_bad = skip_bad
        self._quirks: list[Quirk] = []

    @classmethod
    def load(cls, source: Path | None = None, *, skip_bad: bool | str = False, **options: Any) -> Jsonl:
        """Open a file. It is read through once, so that a bad line shows before anything is ingested.

        Raises:
            InputError: the file is missing, or a line is broken; names line and field.
            UnknownNameError: an option that does not exist.
        """
        refuse_unknown(cls.name, options, ("skip_bad",))
        if source is None:
            raise InputError("jsonl needs a file", "Give it by --source FILE; memx datasets new writes an example.")
        dataset = cls(source, flag("skip_bad", skip_bad))
        if not any([True for _ in dataset.cases()]):
            raise InputError(
                "holds no case", "Write one case a line; memx datasets new writes an example.", path=source
            )
        return dataset

    @property
    def info(self) -> DatasetInfo:
        """Name, file and checksum."""
        return DatasetInfo(
            name=self.name,
            source=str(self._path),
            sha256=known_sha256(self._path),
            category_source="the file's own",
            notes={"times": "as the file has them: aware with an offset, naive without"},
        )

    def cases(self) -> Iterator[Case]:
        """The cases in the file's order, a line at a time."""
        findings = Findings(self._skip_bad)
        case_ids: set[str] = set()
        question_ids: set[str] = set()
        for number, text in _lines(self._path):
            place = f"line {number}"
            with findings.tolerate(place):
                record = Record.of(parse_json(text, self._path, place=place), self._path, place)
                _refuse_repeat(record, "case_id", record.name("case_id"), case_ids)
                yield _Reader(record, findings, question_ids).case()
        self._quirks = findings.quirks

    def quirks(self) -> list[Quirk]:
        """What was left out or is odd, by line."""
        return list(self._quirks)


def write_cases(path: Path, cases: Iterable[Case]) -> int:
    """Write cases in this format; returns how many.

    Raises:
        InputError: metadata that JSON cannot hold, or the file cannot be written.
    """
    count = 0
    try:
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            for case in cases:
                stream.write(dump_case(case) + "\n")
                count += 1
    except OSError as error:
        raise open_error(path, error) from None
    return count


def dump_case(case: Case) -> str:
    """One case as a line, without its line break; fields that have their default value are left out.

    Raises:
        InputError: metadata or text that JSON cannot hold.
    """
    row = {
        "case_id": case.case_id,
        **_unless(case.case_id, entity_id=case.entity_id),
        "sessions": [_dump_session(session, case) for session in case.sessions],
        "questions": [_dump_question(question, case) for question in case.questions],
    }
    try:
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
        line.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InputError(f"case {case.case_id} holds what JSON cannot: {error}") from None
    return line


def new_template() -> str:
    """A commented example of the format, which loads as it stands."""
    return (resources.files(__package__ or "") / "template.jsonl").read_text(encoding="utf-8")


def write_template(path: Path) -> None:
    """Write :func:`new_template` to a file that does not exist yet.

    Raises:
        UsageError: the file exists already.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(new_template())
    except FileExistsError:
        raise UsageError(f"{path} exists already", "Give another name.") from None
    except OSError as error:
        raise open_error(path, error) from None


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of one line."""
    text = (resources.files(__package__ or "") / "case.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


# -------------------------------------------------------------------------------------------------------------- reading


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold something, with their numbers from 1."""
    try:
        refuse_no_file(path)
        with path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                try:
                    text = decode(raw, path).strip() if raw.strip() else ""
                except InputError as error:
                    if number == 1:
                        raise
                    raise InputError(
                        "holds bytes that are not UTF-8", error.hint, path=path, place=f"line {number}"
                    ) from None
                if text and not text.startswith(("#", "//")):
                    if number == 1 and text in ("{", "["):
                        hint = "Put each case on one line of its own."
                        raise InputError("is JSON over several lines, not JSON Lines", hint, path=path, place="line 1")
                    yield number, text
    except OSError as error:
        raise open_error(path, error) from None


class _Reader:
    """One line being read."""

    def __init__(self, record: Record, findings: Findings, question_ids: set[str]) -> None:
        self.record = record
        self.findings = findings
        self.question_ids = question_ids
        self.case_id = ""
        self.entity_id = ""

    def case(self) -> Case:
        _refuse_fields(self.record, "case")
        self.case_id = self.record.name("case_id")
        self.entity_id = self.record.name("entity_id") if "entity_id" in self.record.data else self.case_id
        session_of: dict[str, str] = {}
        sessions: list[Session] = []
        seen: set[str] = set()
        for position, value in enumerate(self.record.items("sessions")):
            row = self._part(f"sessions[{position}]")
            with self.findings.tolerate(row):
                sessions.append(self._session(Record.of(value, self.record.path, row), position, seen, session_of))
        questions: list[Question] = []
        for position, value in enumerate(self.record.items("questions", default=[])):
            row = self._part(f"questions[{position}]")
            with self.findings.tolerate(row):
                question = self._question(Record.of(value, self.record.path, row), position, session_of)
                _refuse_repeat(self.record.at(row), "question_id", question.question_id, self.question_ids)
                questions.append(question)
        return Case(self.case_id, self.entity_id, tuple(sessions), tuple(questions))

    def _part(self, name: str) -> str:
        return f"{self.record.place}: {name}"

    def _session(self, row: Record, position: int, seen: set[str], session_of: dict[str, str]) -> Session:
        _refuse_fields(row, "session")
        session_id = row.name("session_id") if "session_id" in row.data else f"S{position + 1}"
        _refuse_repeat(row, "session_id", session_id, seen)
        at = _time(row, "at", None)
        turns = []
        for number, value in enumerate(row.items("turns")):
            place = f"{row.place}.turns[{number}]"
            with self.findings.tolerate(place):
                turn = _turn(Record.of(value, row.path, place), f"{session_id}:{number + 1}", at)
                if turn.turn_id in session_of:
                    raise row.at(place).bad("turn_id", f"'{turn.turn_id}' stands twice in the case")
                session_of[turn.turn_id] = session_id
                turns.append(turn)
        if not turns:
            self.findings.add("empty_session", row.place, "kept", "the session holds no turn")
        return Session(session_id, self._entity(row), tuple(turns), at, _metadata(row, reaches_adapter=True))

    def _question(self, row: Record, position: int, session_of: Mapping[str, str]) -> Question:
        _refuse_fields(row, "question")
        abstention = row.value("abstention", bool, default=False)
        gold = row.value("gold", str, int, float, default=NOT_MENTIONED if abstention else ...)
        if not isinstance(gold, str):
            self.findings.add("number_as_answer", row.place, "repaired", f"the number {gold} is read as text")
        evidence = row.texts("evidence", default=[])
        for number, turn_id in enumerate(evidence):
            if turn_id not in session_of:
                raise row.bad(f"evidence[{number}]", f"'{turn_id:.60}' is no turn of the case")
        derived = list(dict.fromkeys(session_of[turn_id] for turn_id in evidence))
        sessions = row.texts("evidence_sessions", default=derived)
        known = set(session_of.values())
        for number, session_id in enumerate(sessions):
            if session_id not in known:
                raise row.bad(
                    f"evidence_sessions[{number}]", f"'{session_id:.60}' is no session of the case with a turn"
                )
        return Question(
            row.name("question_id") if "question_id" in row.data else f"{self.case_id}:q{position}",
            self._entity(row),
            row.name("text"),
            str(gold),
            row.text("category", default="custom"),
            tuple(evidence),
            tuple(sessions),
            _time(row, "asked_at", None),
            abstention,
            _metadata(row, reaches_adapter=False),
        )

    def _entity(self, row: Record) -> str:
        return row.name("entity_id") if "entity_id" in row.data else self.entity_id


def _turn(row: Record, turn_id: str, at: datetime | None) -> Turn:
    _refuse_fields(row, "turn")
    role = row.text("role", default="user")
    return Turn(
        row.name("turn_id") if "turn_id" in row.data else turn_id,
        row.text("speaker", default=role),
        role,
        row.text("content"),
        _time(row, "at", at),
        _metadata(row, reaches_adapter=True),
    )


def _time(row: Record, name: str, default: datetime | None) -> datetime | None:
    """A time; ``default`` where the field is missing, None where it is null."""
    text = row.value(name, str, type(None), default=...) if name in row.data else default
    return row.parsed_time(name, text, iso_time) if isinstance(text, str) else text


def _metadata(row: Record, *, reaches_adapter: bool) -> dict[str, Any]:
    found: dict[str, Any] = row.value("metadata", dict, default={})
    leaking = leaking_keys(found) if reaches_adapter else ()
    if leaking:
        hint = "The memory system would see it; put it into the question."
        raise row.bad(f"metadata.{leaking[0]}", "tells what the right answer is or where it stands", hint)
    return found


def _refuse_fields(row: Record, kind: str) -> None:
    for name in row.data:
        if name not in _FIELDS[kind]:
            error = UnknownNameError(f"field of a {kind}", name, _FIELDS[kind])
            raise InputError(error.message, f"{error.hint} {SKIP_HINT}", path=row.path, place=row.place)


def _refuse_repeat(row: Record, name: str, value: str, seen: set[str]) -> None:
    if value in seen:
        raise row.bad(name, f"'{value:.60}' stands twice")
    seen.add(value)


# -------------------------------------------------------------------------------------------------------------- writing


def _dump_session(session: Session, case: Case) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        **_unless(case.entity_id, entity_id=session.entity_id),
        **_unless(None, at=_iso(session.at)),
        "turns": [_dump_turn(turn, session.at) for turn in session.turns],
        **_unless({}, metadata=dict(session.metadata)),
    }


def _dump_turn(turn: Turn, default: datetime | None) -> dict[str, Any]:
    same = turn.at is default or (turn.at == default and _iso(turn.at) == _iso(default))
    return {
        "turn_id": turn.turn_id,
        "speaker": turn.speaker,
        "role": turn.role,
        "content": turn.content,
        **({} if same else {"at": _iso(turn.at)}),
        **_unless({}, metadata=dict(turn.metadata)),
    }


def _dump_question(question: Question, case: Case) -> dict[str, Any]:
    return {
        "question_id": question.question_id,
        **_unless(case.entity_id, entity_id=question.entity_id),
        "text": question.text,
        "gold": question.gold,
        "category": question.category,
        "evidence": list(question.evidence),
        "evidence_sessions": list(question.evidence_sessions),
        **_unless(None, asked_at=_iso(question.asked_at)),
        **_unless(False, abstention=question.abstention),
        **_unless({}, metadata=dict(question.metadata)),
    }


def _unless(default: Any, **values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value != default}


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
