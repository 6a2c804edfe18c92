"""LoCoMo: ten long conversations between two people and 1,986 questions about them (``locomo10.json``).

Every question of the file is loaded, in the file's order; what is odd about it is repaired or flagged by a stated
policy and listed by :meth:`Locomo.quirks`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from memx.adapters.contract import Dataset, DatasetInfo, Quirk, file_sha256
from memx.adapters.datasets.dates import locomo_time
from memx.adapters.datasets.locomo_gold import gold_quirks
from memx.adapters.datasets.options import flag, refuse_unknown
from memx.adapters.datasets.reading import Findings, Record, kind_of, read_json
from memx.errors import InputError, UsageError
from memx.model import Case, Question, Session, Turn

FILE_NAME = "locomo10.json"
RELEASE_SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
NOT_MENTIONED = "Not mentioned in the conversation"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
CATEGORY_SOURCE = (
    "1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial: the file holds numbers only. The names "
    "follow from the counts (282/321/96/841/446) set against the paper's table and from the release's evaluation code, "
    "which treats 1 as lists, 2 as dates, 3 as first-of-alternatives and 5 as refusals."
)
Captions = Literal["on", "off", "labelled"]

_TURN_ID = re.compile(r"D\d+:\d+")
_LOOSE_TURN_ID = re.compile(r"D:?0*(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_SESSION_TIME = re.compile(r"session_(\d+)_date_time")


@dataclass(frozen=True, slots=True)
class Observation:
    """A sentence that the release's authors had a model extract from one session, with the turns it rests on."""

    text: str
    speaker: str
    session_id: str
    turn_ids: tuple[str, ...]


class Locomo(Dataset):
    """The LoCoMo release.

    Options:
        captions: what becomes of a shared image's caption: ``labelled`` appends ``[image: CAPTION]`` to the turn's
            text, ``on`` appends the bare caption, ``off`` leaves it out. The raw caption stays in the metadata.
        skip_bad: leave unusable records out and count them, instead of raising.
    """

    name: ClassVar[str] = "locomo"
    summary: ClassVar[str] = "10 long two-person conversations, 1,986 questions (LoCoMo)"
    needs_source: ClassVar[bool] = True

    def __init__(self, path: Path, captions: Captions, skip_bad: bool) -> None:
        self._path = path
        self._captions = captions
        self._findings = Findings(skip_bad)
        self._samples: dict[str, Record] = {}
        self._cases = self._read()

    @classmethod
    def load(
        cls, source: Path | None = None, *, captions: str = "labelled", skip_bad: bool | str = False, **options: Any
    ) -> Locomo:
        """Open ``locomo10.json``, or the directory that holds it.

        Raises:
            InputError: the file is missing, broken or of the wrong shape.
            UsageError: an option that does not exist.
        """
        refuse_unknown(cls.name, options, ("captions", "skip_bad"))
        if captions not in get_args(Captions):
            raise UsageError(f"captions is on, off or labelled, not '{captions}'")
        if source is None:
            raise InputError(f"locomo needs its file {FILE_NAME}", "Give it by --source PATH.")
        if source.is_dir():
            inner = source / "data" / FILE_NAME
            source = inner if inner.is_file() else source / FILE_NAME
        return cls(source, captions, flag("skip_bad", skip_bad))  # type: ignore[arg-type]

    @property
    def info(self) -> DatasetInfo:
        """Name, file, checksum, whether it is the release, and how captions and times are read."""
        sha256 = file_sha256(self._path)
        return DatasetInfo(
            name=self.name,
            source=str(self._path),
            sha256=sha256,
            version="release" if sha256 == RELEASE_SHA256 else "not the release",
            category_source=CATEGORY_SOURCE,
            notes={
                "captions": self._captions,
                "times": "naive: the file gives no zone; a turn has its session's time",
                "not_loaded": "event_summary, session_summary",
            },
        )

    def cases(self) -> Iterator[Case]:
        """The ten conversations."""
        return iter(self._cases)

    def quirks(self) -> list[Quirk]:
        """Every oddity of the file, in the file's order; those of gold answers against the conversation come last."""
        return [*self._findings.quirks, *gold_quirks(self._cases)]

    def observations(self, case_id: str) -> tuple[Observation, ...]:
        """The extracted sentences of one conversation in session order; those that cite no turn are left out."""
        found = []
        for key, by_speaker in self._samples[case_id].data.get("observation", {}).items():
            session_id = "D" + key.removeprefix("session_").removesuffix("_observation")
            for speaker, rows in by_speaker.items():
                for text, cited in rows:
                    ids = tuple(_TURN_ID.findall(" ".join(cited) if isinstance(cited, list) else cited))
                    if ids:
                        found.append(Observation(text, speaker, session_id, ids))
        return tuple(found)

    def _read(self) -> tuple[Case, ...]:
        content = read_json(self._path)
        if not isinstance(content, list):
            raise InputError(
                f"should be a list of conversations, is {kind_of(content)}",
                f"Give the {FILE_NAME} of the LoCoMo release.",
                path=self._path,
            )
        cases: list[Case] = []
        for position, value in enumerate(content):
            place = f"conversation {position + 1}"
            with self._findings.tolerate(place):
                sample = Record.of(value, self._path, place)
                case_id = sample.name("sample_id")
                if case_id in self._samples:
                    raise sample.bad("sample_id", f"'{case_id}' stands twice")
                cases.append(self._case(sample.at(case_id), case_id))
                self._samples[case_id] = sample
        if not cases:
            raise InputError("holds no conversation", f"Give the {FILE_NAME} of the LoCoMo release.", path=self._path)
        return tuple(cases)

    def _case(self, sample: Record, case_id: str) -> Case:
        sessions = tuple(self._sessions(sample.record("conversation").at(case_id), case_id))
        session_of = {turn.turn_id: session.session_id for session in sessions for turn in session.turns}
        questions: list[Question] = []
        asked: dict[str, str] = {}
        for index, value in enumerate(sample.items("qa")):
            question_id = f"{case_id}:q{index}"
            with self._findings.tolerate(question_id):
                question = self._question(Record.of(value, self._path, question_id), case_id, index, session_of)
                self._note_repeat(question, asked)
                questions.append(question)
        return Case(case_id, case_id, sessions, tuple(questions))

    # ------------------------------------------------------------------------------------------------- sessions

    def _sessions(self, talk: Record, case_id: str) -> Iterator[Session]:
        roles = {talk.name("speaker_a"): "user", talk.name("speaker_b"): "assistant"}
        numbers = sorted(int(found[1]) for key in talk.data if (found := _SESSION.fullmatch(key)))
        self._note_lone_dates(talk, set(numbers))
        seen: set[str] = set()
        for number in numbers:
            session_id = f"D{number}"
            with self._findings.tolerate(f"{case_id}:{session_id}"):
                rows = talk.items(f"session_{number}")
                if not rows:
                    self._findings.add("empty_session", f"{case_id}:{session_id}", "dropped", "holds no turn")
                    continue
                at = self._session_time(talk, number, f"{case_id}:{session_id}")
                turns = []
                for position, value in enumerate(rows):
                    place = f"{case_id}: session_{number}[{position}]"
                    with self._findings.tolerate(place):
                        turn = self._turn(Record.of(value, self._path, place), case_id, roles, at)
                        if turn.turn_id in seen:
                            raise Record.of(value, self._path, place).bad("dia_id", f"'{turn.turn_id}' stands twice")
                        seen.add(turn.turn_id)
                        turns.append(turn)
                yield Session(session_id, case_id, tuple(turns), at)

    def _note_lone_dates(self, talk: Record, numbers: set[int]) -> None:
        for key, value in talk.data.items():
            found = _SESSION_TIME.fullmatch(key)
            if found and int(found[1]) not in numbers:
                detail = f"{value!r:.40} belongs to no session; there is nothing to load"
                self._findings.add("date_without_session", f"{talk.place}:{key}", "flagged", detail)

    def _session_time(self, talk: Record, number: int, place: str) -> datetime | None:
        field = f"session_{number}_date_time"
        if field not in talk.data:
            self._findings.add("session_without_date", place, "flagged", "loaded without a time")
            return None
        with self._findings.tolerate(f"{talk.place}:{field}"):
            return talk.time(field, locomo_time)
        return None

    def _turn(self, row: Record, case_id: str, roles: dict[str, str], at: datetime | None) -> Turn:
        turn_id, speaker, content = row.name("dia_id"), row.name("speaker"), row.text("text")
        place = f"{case_id}:{turn_id}"
        if speaker not in roles:
            self._findings.add("unknown_speaker", place, "kept", f"{speaker!r:.40} is neither of the two speakers")
        metadata: dict[str, Any] = {}
        caption = row.text("blip_caption", default="")
        if caption:
            metadata["caption"] = caption
            if self._captions == "labelled":
                content = f"{content} [image: {caption}]".lstrip()
            elif self._captions == "on":
                content = f"{content} {caption}".lstrip()
            done = "left out of the text" if self._captions == "off" else f"put into the text ({self._captions})"
            self._findings.add("caption", place, "kept", f"a model's caption of a shared image, {done}")
        if not content.strip():
            self._findings.add("empty_turn", place, "kept", "the turn holds no text")
        for field, kept_as in (("img_url", "image_urls"), ("query", "image_query")):
            if field in row.data:
                metadata[kept_as] = row.value(field, list, str)
        return Turn(turn_id, speaker, roles.get(speaker, speaker), content, at, metadata)

    # ------------------------------------------------------------------------------------------------ questions

    def _question(self, row: Record, case_id: str, index: int, session_of: dict[str, str]) -> Question:
        question_id = row.place
        text = row.name("question")
        number = row.value("category", int)
        if number not in CATEGORIES:
            known = ", ".join(f"{n} {name}" for n, name in CATEGORIES.items())
            raise row.bad("category", f"{number} is no category of LoCoMo ({known})")
        metadata: dict[str, Any] = {"category_id": number, "index": index}
        gold, abstention = self._gold(row, number, metadata)
        evidence = self._evidence(row, session_of, metadata)
        sessions = tuple(dict.fromkeys(session_of[turn_id] for turn_id in evidence))
        return Question(
            question_id, case_id, text, gold, CATEGORIES[number], evidence, sessions, None, abstention, metadata
        )

    def _gold(self, row: Record, category: int, metadata: dict[str, Any]) -> tuple[str, bool]:
        """The gold answer and whether it is a refusal. What ``adversarial_answer`` holds is a trap, never gold."""
        answer = row.value("answer", str, int, float, default=None)
        trap = row.value("adversarial_answer", str, int, float, default=None)
        if trap is not None:
            metadata["trap"] = str(trap)
        if answer is None:
            if category != 5:
                raise row.bad("answer", "is missing")
            self._findings.add(
                "adversarial_without_answer",
                row.place,
                "repaired",
                f"gold is '{NOT_MENTIONED}'; the trap is kept apart",
            )
            return NOT_MENTIONED, True
        if not isinstance(answer, str):
            self._findings.add("number_as_answer", row.place, "repaired", f"the number {answer} is read as text")
        if category == 5:
            metadata["disputed"] = "adversarial, yet answerable: the file gives an answer"
            self._findings.add(
                "answerable_adversarial", row.place, "flagged", f"its answer {answer!r:.40} is gold, not a refusal"
            )
        return str(answer), False

    def _evidence(self, row: Record, turn_ids: Container[str], metadata: dict[str, Any]) -> tuple[str, ...]:
        raw = row.texts("evidence")
        found: list[str] = []
        for entry in raw:
            if _TURN_ID.fullmatch(entry):
                ids = [entry]
            else:
                ids = [f"D{session}:{turn}" for session, turn in _LOOSE_TURN_ID.findall(entry)]
                if not ids:
                    metadata.setdefault("unreadable_evidence", []).append(entry)
                    self._findings.add("unreadable_evidence", row.place, "flagged", f"{entry!r:.60} names no turn")
                    continue
            # A padded number has the plain form's shape; it counts as malformed when only the plain one is a turn.
            plain = [re.sub(r"(?<=[D:])0+(?=\d)", "", turn_id) for turn_id in ids]
            ids = [turn_id if turn_id in turn_ids else other for turn_id, other in zip(ids, plain, strict=True)]
            if ids != [entry]:
                self._findings.add("malformed_evidence", row.place, "repaired", f"{entry!r:.80} is {', '.join(ids)}")
            found.extend(ids)
        unique = list(dict.fromkeys(found))
        if len(unique) != len(found):
            repeated = next(turn_id for turn_id in unique if found.count(turn_id) > 1)
            self._findings.add("duplicated_evidence", row.place, "repaired", f"{repeated} is given twice, counted once")
        dangling = [turn_id for turn_id in unique if turn_id not in turn_ids]
        if dangling:
            metadata["dangling_evidence"] = dangling
            self._findings.add("dangling_evidence", row.place, "flagged", f"{', '.join(dangling)}: no such turn")
        if not raw:
            self._findings.add("no_evidence", row.place, "flagged", "the file names no evidence turn")
        evidence = tuple(turn_id for turn_id in unique if turn_id in turn_ids)
        if list(evidence) != raw:
            metadata["raw_evidence"] = list(raw)
        return evidence

    def _note_repeat(self, question: Question, asked: dict[str, str]) -> None:
        key = " ".join(question.text.lower().split())
        first = asked.setdefault(key, question.question_id)
        if first != question.question_id:
            self._findings.add("repeated_question", question.question_id, "kept", f"asks the same as {first}")
