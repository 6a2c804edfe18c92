"""BEAM: conversations of 100K to 10M tokens, each with 20 probing questions on ten memory abilities.

A conversation is a folder with ``chat.json`` and ``probing_questions.json``; one conversation is read at a time. In the
10M tier the chat is made of ten plans, either in one ``chat.json`` or in folders ``plan-0`` to ``plan-9``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.contract import Dataset, DatasetInfo, Quirk
from memx.adapters.datasets.cache import files_sha256
from memx.adapters.datasets.dates import beam_date
from memx.adapters.datasets.options import flag, one_of, refuse_unknown
from memx.adapters.datasets.reading import Findings, Record, decode, kind_of, parse_json, read_bytes, read_json
from memx.errors import InputError
from memx.model import Case, Question, Session, Turn

TIERS = ("100K", "500K", "1M", "10M")
#: Where each ability keeps its gold text.
GOLD_FIELDS = {
    "abstention": "ideal_response",
    "contradiction_resolution": "ideal_answer",
    "event_ordering": "answer",
    "information_extraction": "answer",
    "instruction_following": "expected_compliance",
    "knowledge_update": "answer",
    "multi_session_reasoning": "answer",
    "preference_following": "expected_compliance",
    "summarization": "ideal_summary",
    "temporal_reasoning": "answer",
}
CATEGORY_SOURCE = "the ten keys of probing_questions.json, named as in the paper"
#: Left by the generator at the end of messages: ``->-> 1,1``, also ``->-> 2,N/A``.
_MARKER = re.compile(r"\s?(?:->->|->>)\s*(?:\d+\s*,\s*(?:\d+|N/A))?")
_PLAN = re.compile(r"plan-(\d+)")


class Beam(Dataset):
    """The BEAM release, one tier or any folder of its conversations.

    Options:
        part: the tier (``100K``, ``500K``, ``1M``, ``10M``) where the folder holds several.
        skip_bad: leave unusable records out and count them, instead of raising.
    """

    name: ClassVar[str] = "beam"
    summary: ClassVar[str] = "conversations of 100K to 10M tokens, 20 questions each on ten abilities (BEAM)"
    needs_source: ClassVar[bool] = True
    parts: ClassVar[tuple[str, ...]] = TIERS
    #: Read one conversation at a time: counting its questions means reading it through.
    streamed: ClassVar[bool] = True

    def __init__(self, path: Path, folders: list[Path], skip_bad: bool) -> None:
        self._path = path
        self._folders = folders
        self._skip_bad = skip_bad
        self._seen: list[Quirk] | None = None

    @classmethod
    def load(cls, source: Path | None = None, *, part: str = "", skip_bad: bool | str = False, **options: Any) -> Beam:
        """Open one conversation's folder, a tier's folder, or a folder of tiers.

        Raises:
            InputError: no conversation is found there.
            UnknownNameError: an option or tier that does not exist.
        """
        refuse_unknown(cls.name, options, ("part", "skip_bad"))
        tier = one_of("tier of beam", part, TIERS)
        if source is None:
            raise InputError("beam needs its folder", "Give it by --source PATH.")
        if not source.is_dir():
            read_bytes(source)
            raise InputError("is a file; BEAM is a folder of conversations", "Give that folder.", path=source)
        folders = _conversations(source, tier)
        if not folders:
            hint = "Each conversation is a folder with chat.json and probing_questions.json."
            raise InputError(f"holds no BEAM conversation{f' of tier {tier}' if tier else ''}", hint, path=source)
        return cls(source, folders, flag("skip_bad", skip_bad))

    @property
    def info(self) -> DatasetInfo:
        """Name, folder, and a checksum over the files of all conversations."""
        files = [path for folder in self._folders for path in (*_chat_files(folder), _questions_file(folder)) if path]
        tiers = sorted({folder.parent.name for folder in self._folders if folder.parent.name in TIERS}, key=TIERS.index)
        return DatasetInfo(
            name=self.name,
            source=str(self._path),
            sha256=files_sha256(self._path, files),
            version=", ".join(tiers),
            category_source=CATEGORY_SOURCE,
            notes={
                "times": "naive dates; a turn has the last time anchor before it",
                "session": "one batch of the chat",
            },
        )

    def cases(self) -> Iterator[Case]:
        """One case a conversation, in the order of their numbers."""
        findings = Findings(self._skip_bad)
        for folder in self._folders:
            case_id = f"{folder.parent.name}-{folder.name}" if folder.parent.name in TIERS else folder.name
            with findings.tolerate(case_id):
                yield _Conversation(folder, case_id, findings).case()
        self._seen = findings.quirks

    def quirks(self) -> list[Quirk]:
        """Every oddity of the files; reads them through once unless that was done."""
        if self._seen is None:
            for _ in self.cases():
                pass
        return list(self._seen or [])


class _Conversation:
    """One folder being read."""

    def __init__(self, folder: Path, case_id: str, findings: Findings) -> None:
        self.folder = folder
        self.case_id = case_id
        self.findings = findings
        self.anchor: datetime | None = None
        #: Turn ids by message id: more than one where the file repeats an id.
        self.by_message: dict[int, list[str]] = {}
        self.session_of: dict[str, str] = {}

    def case(self) -> Case:
        sessions = tuple(self._sessions())
        questions = tuple(self._questions())
        try:
            return Case(self.case_id, self.case_id, sessions, questions)
        except ValueError as error:  # a plan that stands twice
            raise InputError(str(error), "Fetch the conversation again.", path=self.folder) from None

    # ----------------------------------------------------------------------------------------------------- sessions

    def _sessions(self) -> Iterator[Session]:
        files = _chat_files(self.folder)
        if not files:
            raise InputError("holds no chat.json", "Fetch the conversation again.", path=self.folder)
        for prefix, batches, offset in self._plans(files):
            for position, value in enumerate(batches, 1):
                place = f"{self.case_id}: {prefix}batch {position}"
                with self.findings.tolerate(place):
                    # The hub's copy of the release holds a batch as a plain list of messages.
                    batch = Record.of({"turns": value} if isinstance(value, list) else value, files[0], place)
                    session_id = f"{prefix}B{position}"
                    turns, at = self._batch(batch, offset)
                    if turns:
                        self.session_of.update((turn.turn_id, session_id) for turn in turns)
                        yield Session(session_id, self.case_id, turns, at)
                    else:
                        self.findings.add("empty_session", place, "dropped", "the batch holds no message")

    def _plans(self, files: list[Path]) -> Iterator[tuple[str, list[Any], int]]:
        """Each plan's prefix, batches and the number added to its message ids; one without a prefix below 10M."""
        if len(files) > 1 or _PLAN.fullmatch(files[0].parent.name):
            offset = 0
            for path in files:
                batches = _list_of(read_json(path), path, "batches")
                # The release numbers the messages of all plans through; in the plans' own files each begins at 0.
                yield f"P{int(_PLAN.findall(path.parent.name)[0]) + 1}:", batches, offset
                offset = max((message for message in self.by_message), default=-1) + 1
            return
        content = _list_of(read_json(files[0]), files[0], "batches")
        if content and isinstance(content[0], dict) and any(_PLAN.fullmatch(key) for key in content[0]):
            for plan in content:
                for key, batches in plan.items() if isinstance(plan, dict) else ():
                    if batches is not None:
                        yield f"P{key.removeprefix('plan-')}:", _list_of(batches, files[0], f"{key}: batches"), 0
            return
        yield "", content, 0

    def _batch(self, batch: Record, offset: int) -> tuple[tuple[Turn, ...], datetime | None]:
        built: list[Turn] = []
        anchor = batch.value("time_anchor", str, type(None), default=None)
        self._set_anchor(batch, anchor)
        messages = [
            message for turn in batch.items("turns") for message in (turn if isinstance(turn, list) else [turn])
        ]
        for position, value in enumerate(messages):
            place = f"{batch.place}: message {position + 1}"
            with self.findings.tolerate(place):
                message = Record.of(value, batch.path, place)
                number = message.value("id", int) + offset
                role, content = message.name("role"), message.text("content")
                self._set_anchor(message, message.value("time_anchor", str, type(None), default=None))
                cleaned = _without_marker(content)
                built.append(Turn(self._turn_id(number), role, role, cleaned, self.anchor))
                turn_place = f"{self.case_id}:{built[-1].turn_id}"
                if cleaned != content:
                    self.findings.add("probe_marker", turn_place, "repaired", "the generator's marker is cut off")
                if not cleaned.strip():
                    self.findings.add("empty_turn", turn_place, "kept", "holds no text")
        return tuple(built), built[0].at if built else None

    def _set_anchor(self, record: Record, anchor: str | None) -> None:
        if anchor:
            with self.findings.tolerate(f"{record.place}: time_anchor"):
                self.anchor = record.parsed_time("time_anchor", anchor, beam_date)

    def _turn_id(self, number: int) -> str:
        same = self.by_message.setdefault(number, [])
        turn_id = f"{number}#{len(same) + 1}" if same else str(number)
        if same:
            self.findings.add(
                "repeated_message_id", f"{self.case_id}:{turn_id}", "repaired", f"id {number} is not the first"
            )
        same.append(turn_id)
        return turn_id

    # ---------------------------------------------------------------------------------------------------- questions

    def _questions(self) -> Iterator[Question]:
        path = _questions_file(self.folder)
        if path is None:
            raise InputError("holds no probing_questions.json", "Fetch the conversation again.", path=self.folder)
        abilities = Record.of(_read_questions(path), path, self.case_id)
        for ability in abilities.data:
            with self.findings.tolerate(f"{self.case_id}:{ability}"):
                if ability not in GOLD_FIELDS:
                    raise abilities.bad(ability, f"is no ability of BEAM ({', '.join(GOLD_FIELDS)})")
                for index, value in enumerate(abilities.items(ability)):
                    question_id = f"{self.case_id}:{ability}:{index}"
                    with self.findings.tolerate(question_id):
                        yield self._question(Record.of(value, path, question_id), ability)

    def _question(self, row: Record, ability: str) -> Question:
        metadata: dict[str, Any] = {"rubric": row.texts("rubric", default=[])}
        if not metadata["rubric"]:
            self.findings.add("no_rubric", row.place, "flagged", "there is nothing to grade the answer by")
        source = row.data.get("source_chat_ids")
        if isinstance(source, dict) and "updated_info" in source:
            evidence = self._turn_ids(row, source["updated_info"])
            stale = self._turn_ids(row, source.get("original_info"))
            if set(stale) & set(evidence):
                self.findings.add("update_in_one_turn", row.place, "kept", "one turn holds the old and the new value")
            metadata["stale_evidence"] = [turn_id for turn_id in stale if turn_id not in evidence]
        elif isinstance(source, dict):
            roles = {role: self._turn_ids(row, ids) for role, ids in source.items()}
            evidence = list(dict.fromkeys(turn_id for ids in roles.values() for turn_id in ids))
            metadata["evidence_roles"] = roles
        else:
            evidence = self._turn_ids(row, source)
        if ability != "abstention" and not evidence:
            self.findings.add("no_evidence", row.place, "flagged", "the file names no message")
        for name in (
            "difficulty",
            "total_mentions",
            "ordering_tested",
            "instruction_being_tested",
            "preference_being_tested",
        ):
            if name in row.data:
                metadata[name] = row.data[name]
        return Question(
            row.place,
            self.case_id,
            row.name("question"),
            self._gold(row, ability, metadata["rubric"]),
            ability,
            tuple(evidence),
            tuple(dict.fromkeys(self.session_of[turn_id] for turn_id in evidence)),
            None,
            ability == "abstention",
            metadata,
        )

    def _gold(self, row: Record, ability: str, rubric: list[str]) -> str:
        """The gold text; from another ability's field, or made of the rubric, where its own is missing."""
        own = GOLD_FIELDS[ability]
        name = next((name for name in (own, *GOLD_FIELDS.values()) if name in row.data), own)
        if name not in row.data and rubric:
            self.findings.add("gold_from_rubric", row.place, "repaired", f"there is no {own}; the rubric is the gold")
            return "; ".join(rubric)
        if name != own:
            self.findings.add("gold_in_other_field", row.place, "repaired", f"there is no {own}; {name} is the gold")
        return str(row.value(name, str, int, float))

    def _turn_ids(self, row: Record, source: Any) -> list[str]:
        """The turn ids of a message id, or of a list or mapping of them however nested, each once and in order."""
        found: list[str] = []
        for number in _flat(source):
            if isinstance(number, str) and number.isdecimal():
                self.findings.add(
                    "text_as_message_id", row.place, "repaired", f"the text {number:.20} is read as a number"
                )
                number = int(number)
            if not isinstance(number, int) or isinstance(number, bool):
                self.findings.add("unreadable_evidence", row.place, "flagged", f"{number!r:.60} is no message number")
                continue
            ids = self.by_message.get(number, [])
            if not ids:
                self.findings.add("dangling_evidence", row.place, "flagged", f"{number}: no such message")
            elif len(ids) > 1:
                detail = f"{number} names {len(ids)} messages; the first is taken"
                self.findings.add("ambiguous_evidence", row.place, "flagged", detail)
            found.extend(ids[:1])
        return list(dict.fromkeys(found))


def _without_marker(content: str) -> str:
    if "->->" not in content and "->>" not in content:
        return content
    return _MARKER.sub("", content)


def _flat(source: Any) -> Iterator[Any]:
    """What a list or mapping holds, however nested; nothing for null."""
    if isinstance(source, dict):
        source = list(source.values())
    if isinstance(source, list):
        for item in source:
            yield from _flat(item)
    elif source is not None:
        yield source


def _list_of(value: Any, path: Path, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"should be a list of {what}, is {kind_of(value)}", "Fetch it again.", path=path)
    return value


def _read_questions(path: Path) -> Any:
    """The questions by ability. The hub's copy of the release holds them as the text of a Python literal."""
    text = decode(read_bytes(path), path).strip()
    if text.startswith(("{'", "{\"'")):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise InputError("is neither JSON nor a Python literal", "Fetch it again.", path=path) from None
    return parse_json(text, path)


def _conversations(source: Path, tier: str) -> list[Path]:
    if _questions_file(source):
        return [source]
    tiers = [tier] if tier else TIERS
    roots = [source / name for name in tiers if (source / name).is_dir()]
    if not roots and (not tier or source.name == tier):
        roots = [source]
    found = [folder for root in roots for folder in sorted(root.iterdir(), key=_by_number) if folder.is_dir()]
    return [folder for folder in found if _questions_file(folder) or _chat_files(folder)]


def _by_number(path: Path) -> tuple[int, str]:
    return (int(path.name), "") if path.name.isdecimal() else (1 << 62, path.name)


def _questions_file(folder: Path) -> Path | None:
    places = (folder / "probing_questions.json", folder / "probing_questions" / "probing_questions.json")
    return next((path for path in places if path.is_file()), None)


def _chat_files(folder: Path) -> list[Path]:
    """The chat's file, or one of each plan. The release's own code prefers a truncated chat (spelt so)."""
    for name in ("chat_trunecated.json", "chat.json"):
        if (folder / name).is_file():
            return [folder / name]
    plans = [path for path in folder.glob("plan-*/chat.json") if _PLAN.fullmatch(path.parent.name)]
    return sorted(plans, key=lambda path: int(path.parent.name.removeprefix("plan-")))
