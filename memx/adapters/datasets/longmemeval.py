"""LongMemEval: 500 questions, each with its own history of dated sessions (``longmemeval_{oracle,s,m}``).

The file is read question by question, so memory stays small whatever its size. Session and turn ids are given by
position (``S3``, ``S3:2``): the file's own session ids begin with ``answer_`` where they hold the evidence, and would
tell a memory system where to look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.contract import Dataset, DatasetInfo, Quirk
from memx.adapters.datasets.cache import known_sha256
from memx.adapters.datasets.dates import longmemeval_time
from memx.adapters.datasets.options import flag, one_of, refuse_unknown
from memx.adapters.datasets.reading import Findings, Record
from memx.adapters.datasets.streaming import stream_list
from memx.errors import InputError
from memx.model import Case, Question, Session, Turn

CATEGORIES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)
CATEGORY_SOURCE = "the file's own question_type; a question is an abstention when its id ends in _abs"


@dataclass(frozen=True, slots=True)
class Release:
    """One published file: its part, edition, size in bytes and SHA-256."""

    part: str
    edition: str
    size: int
    sha256: str


#: As published: the original of 2024 and the edition cleaned of sessions that overrode answers, of September 2025.
#: The oracle file is the same in both.
RELEASES = (
    Release(
        "oracle", "original and cleaned", 15_388_478, "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c"
    ),
    Release("s", "original", 278_025_796, "08d8dad4be43ee2049a22ff5674eb86725d0ce5ff434cde2627e5e8e7e117894"),
    Release("m", "original", 2_745_274_681, "fb5413e3b077c62927daab794836991a2fcfa61ceacab57dc679fb02daaff2d9"),
    Release("s", "cleaned", 277_383_467, "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442"),
    Release("m", "cleaned", 2_737_100_077, "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f"),
)
FILE_NAMES = {
    "oracle": ("longmemeval_oracle.json", "longmemeval_oracle"),
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s.json", "longmemeval_s"),
    "m": ("longmemeval_m_cleaned.json", "longmemeval_m.json", "longmemeval_m"),
    "s-original": ("longmemeval_s.json", "longmemeval_s"),
    "m-original": ("longmemeval_m.json", "longmemeval_m"),
}


class LongMemEval(Dataset):
    """The LongMemEval release, any of its parts.

    Options:
        part: which file of a directory is meant (``oracle``, ``s``, ``m``, ``s-original``, ``m-original``); without it
            the only one there.
        skip_bad: leave unusable records out and count them, instead of raising.
    """

    name: ClassVar[str] = "longmemeval"
    summary: ClassVar[str] = "500 questions, each with its own history of sessions (LongMemEval oracle, s, m)"
    needs_source: ClassVar[bool] = True
    parts: ClassVar[tuple[str, ...]] = tuple(FILE_NAMES)
    #: Read question by question: counting them means reading the file through.
    streamed: ClassVar[bool] = True

    def __init__(self, path: Path, skip_bad: bool) -> None:
        self._path = path
        self._skip_bad = skip_bad
        self._seen: list[Quirk] | None = None

    @classmethod
    def load(
        cls, source: Path | None = None, *, part: str = "", skip_bad: bool | str = False, **options: Any
    ) -> LongMemEval:
        """Open one file, or a directory that holds it. Only its beginning is read now.

        Raises:
            InputError: the file is missing or is no LongMemEval file.
            UnknownNameError: an option or part that does not exist.
        """
        refuse_unknown(cls.name, options, ("part", "skip_bad"))
        part = one_of("part of longmemeval", part, FILE_NAMES)
        if source is None:
            raise InputError("longmemeval needs its file", "Give it by --source PATH.")
        dataset = cls(_file_of(source, part), flag("skip_bad", skip_bad))
        # The first record shows now, and not after an ingest, whether this is the right kind of file.
        next(iter(dataset.cases()), None)
        return dataset

    @property
    def info(self) -> DatasetInfo:
        """Name, file, checksum, and which release the checksum tells it is."""
        sha256 = known_sha256(self._path)
        release = next((r for r in RELEASES if r.sha256 == sha256), None)
        return DatasetInfo(
            name=self.name,
            source=str(self._path),
            sha256=sha256,
            version=f"{release.part}, {release.edition}" if release else "not a known release",
            category_source=CATEGORY_SOURCE,
            notes={"times": "naive: the file gives no zone; a turn has its session's time"},
        )

    def cases(self) -> Iterator[Case]:
        """One case a question, read from the file as they are asked for."""
        findings = Findings(self._skip_bad)
        seen: set[str] = set()
        for element in stream_list(self._path, _count_keys):
            place = f"record {element.position + 1}"
            with findings.tolerate(place):
                row = Record.of(element.value, self._path, place)
                question_id = row.name("question_id")
                if question_id in seen:
                    raise row.bad("question_id", f"'{question_id}' stands twice")
                seen.add(question_id)
                case = _case(row.at(question_id), question_id, element.suspect, findings)
                # What was parsed is let go before the next record is: one record's memory is then used again and again.
                del row, element
                yield case
                del case
        if not seen:
            raise InputError("holds no question", "Give a file of the LongMemEval release.", path=self._path)
        self._seen = findings.quirks

    def question_index(self) -> Iterator[tuple[str, str]]:
        """Question ids and categories in the file's order, without building the histories."""
        for element in stream_list(self._path, _count_keys):
            if isinstance(element.value, dict):
                yield str(element.value.get("question_id")), str(element.value.get("question_type"))

    def quirks(self) -> list[Quirk]:
        """Every oddity of the file; reads it through once unless that was done."""
        if self._seen is None:
            for _ in self.cases():
                pass
        return list(self._seen or [])


def _count_keys(row: Any) -> int:
    return len(row) + sum(sum(map(len, session)) for session in row["haystack_sessions"])


def _file_of(source: Path, part: str) -> Path:
    if not source.is_dir():
        return source
    wanted = list(dict.fromkeys(name for key, names in FILE_NAMES.items() if part in ("", key) for name in names))
    # A file lies in the folder itself, or in one named by its part, as in the cache.
    folders = [source, *(source / key for key in FILE_NAMES if part in ("", key))]
    found = [folder / name for folder in folders for name in wanted if (folder / name).is_file()]
    if not found:
        raise InputError(f"holds none of {', '.join(wanted)}", "Give the file itself.", path=source)
    if len(found) > 1:
        names = ", ".join(path.relative_to(source).as_posix() for path in found)
        hint = "Give the one meant by --source, or name its part: longmemeval:s"
        raise InputError(f"holds several files: {names}", hint, path=source)
    return found[0]


def _case(row: Record, question_id: str, suspect: bool, findings: Findings) -> Case:
    histories = row.items("haystack_sessions")
    names, dates = row.texts("haystack_session_ids"), row.texts("haystack_dates")
    if not len(histories) == len(names) == len(dates):
        raise row.bad("haystack_sessions", f"has {len(histories)} sessions, {len(names)} ids and {len(dates)} dates")
    gold_names = set(row.texts("answer_session_ids"))
    times = [row.parsed_time(f"haystack_dates[{n}]", date, longmemeval_time) for n, date in enumerate(dates)]
    quick = None if suspect else _sound_turns(histories, times)
    turns, evidence = quick or _checked_turns(row, histories, times, findings)
    sessions: list[Session] = []
    gold_sessions: dict[str, str] = {}
    for number, (built, raw, name, at) in enumerate(zip(turns, histories, names, times, strict=True), 1):
        session_id = f"S{number}"
        if not raw:
            findings.add("empty_session", f"{question_id}:{session_id}", "dropped", f"{name!r:.60} holds no turn")
            continue
        sessions.append(Session(session_id, question_id, built, at))
        if name in gold_names:
            gold_sessions[session_id] = name
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        findings.add("repeated_session", question_id, "kept", f"the session id {repeated!r:.60} stands twice")
    ordered = sorted(sessions, key=_time_of)
    if ordered != sessions:
        findings.add("sessions_out_of_order", question_id, "repaired", "sessions are handed out by date")
    return Case(question_id, question_id, tuple(ordered), (_question(row, evidence, gold_sessions, findings),))


def _time_of(session: Session) -> Any:
    return session.at


#: The turns of each session, and the ids of those marked as holding the answer.
_Turns = tuple[list[tuple[Turn, ...]], list[str]]


def _checked_turns(row: Record, histories: list[Any], times: list[datetime], findings: Findings) -> _Turns:
    """Turn by turn, naming what is wrong."""
    built: list[tuple[Turn, ...]] = []
    evidence: list[str] = []
    for number, (turns, at) in enumerate(zip(histories, times, strict=True), 1):
        if not isinstance(turns, list):
            raise row.bad(f"haystack_sessions[{number - 1}]", "should be a list of turns")
        session: list[Turn] = []
        for position, value in enumerate(turns, 1):
            turn_id = f"S{number}:{position}"
            place = f"{row.place}:{turn_id}"
            with findings.tolerate(place):
                record = Record.of(value, row.path, place)
                role, content = record.name("role"), record.text("content")
                session.append(Turn(turn_id, role, role, content, at))
                if not content.strip():
                    findings.add("empty_turn", place, "kept", "the turn holds no text")
                if record.data.get("has_answer"):
                    evidence.append(turn_id)
        built.append(tuple(session))
    return built, evidence


#: The metadata of a turn that has none; one for all, since metadata is not to be changed.
_NOTHING: Mapping[str, Any] = {}
_SETTERS = tuple(Turn.__dict__[name].__set__ for name in ("turn_id", "speaker", "role", "content", "at", "metadata"))


def _sound_turns(histories: list[Any], times: list[datetime]) -> _Turns | None:
    """The same for a history with nothing wrong about it; None when there is, or might be.

    A file holds up to ten million turns, and the constructor of a frozen dataclass costs more than parsing the JSON.
    So the slots are filled field by field, all turns of a history at once.
    """
    try:
        rows = list(chain.from_iterable(histories))
        roles, contents = list(map(itemgetter("role"), rows)), list(map(itemgetter("content"), rows))
    except (KeyError, TypeError):
        return None
    if {*map(type, roles), *map(type, contents)} != {str} or not all(contents) or any(map(str.isspace, contents)):
        return None
    sizes = list(map(len, histories))
    numbers = list(map(str, range(1, max(sizes) + 1)))
    turn_ids: list[str] = []
    evidence: list[str] = []
    for number, (session, size) in enumerate(zip(histories, sizes, strict=True), 1):
        prefix = f"S{number}:"
        turn_ids += map(prefix.__add__, numbers[:size])
        if size and max(map(len, session)) > 2:
            evidence += [f"{prefix}{n}" for n, row in enumerate(session, 1) if row.get("has_answer")]
    turns: list[Turn] = list(map(object.__new__, repeat(Turn, len(rows))))
    at = chain.from_iterable(map(repeat, times, sizes))
    columns: tuple[Iterable[Any], ...] = (turn_ids, roles, roles, contents, at, repeat(_NOTHING))
    for fill, values in zip(_SETTERS, columns, strict=True):
        deque(map(fill, turns, values), maxlen=0)
    left = iter(turns)
    return [tuple(islice(left, size)) for size in sizes], evidence


def _question(row: Record, evidence: list[str], gold_sessions: Mapping[str, str], findings: Findings) -> Question:
    category = row.name("question_type")
    if category not in CATEGORIES:
        raise row.bad("question_type", f"'{category:.60}' is no type of LongMemEval ({', '.join(CATEGORIES)})")
    question_id = row.place
    answer = row.value("answer", str, int, float)
    if not isinstance(answer, str):
        findings.add("number_as_answer", question_id, "repaired", f"the number {answer} is read as text")
    abstention = question_id.endswith("_abs")
    missing = set(row.texts("answer_session_ids")) - set(gold_sessions.values())
    if missing:
        findings.add("dangling_evidence", question_id, "flagged", f"{min(missing)!r:.60} is no session of the history")
    with_turns = {turn_id.partition(":")[0] for turn_id in evidence}
    for session_id in gold_sessions:
        if session_id not in with_turns and not abstention:
            detail = f"no turn of {session_id} is marked as holding the answer"
            findings.add("evidence_session_without_turn", question_id, "flagged", detail)
    return Question(
        question_id,
        question_id,
        row.name("question"),
        str(answer),
        category,
        tuple(evidence),
        tuple(gold_sessions),
        row.time("question_date", longmemeval_time),
        abstention,
        {"answer_session_ids": dict(gold_sessions)},
    )
