"""The bundled dataset ``demo``: invented conversations, one JSON file per case in ``demo_data``.

The file format is described in ``docs/demo.md``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from memx.adapters.contract import Dataset, DatasetInfo
from memx.errors import InputError, UsageError
from memx.model import Case, Question, Session, Turn

#: Raised whenever a shipped case changes, so that runs on different data are told apart.
DATA_VERSION = "1"
CATEGORIES = (
    "single-hop",
    "multi-hop",
    "temporal",
    "knowledge-update",
    "contradiction",
    "preference",
    "list",
    "abstention",
)
#: The files give a time per session only; each turn is said this long after the one before.
TURN_GAP = timedelta(minutes=1)


class Demo(Dataset):
    """Conversations and questions that ship with memx, for a first run without any download."""

    name = "demo"
    summary = "Invented conversations over months of life and work, shipped with memx"

    def __init__(self, shipped: list[tuple[str, bytes]]) -> None:
        """Take the files as ``(file name, content)`` in the order of the cases."""
        self._shipped = shipped

    @classmethod
    def load(cls, source: Path | None = None, **options: Any) -> Demo:
        """Read the shipped files.

        Raises:
            UsageError: a source or an option was given; there are none.
            InputError: the installation lacks the files.
        """
        if source is not None:
            # Whoever names a file and forgets the dataset shall not get the figures of another one.
            raise UsageError(
                f"dataset 'demo' is part of memx and does not read {source}",
                "Name the dataset of the file too: --dataset jsonl",
            )
        if options:
            given = ", ".join(sorted(options))
            raise UsageError(f"dataset 'demo' has no option {given}", "It takes none: leave it out.")
        folder = files("memx.adapters.datasets").joinpath("demo_data")
        found = [item for item in folder.iterdir() if item.name.endswith(".json")] if folder.is_dir() else []
        if not found:
            raise InputError("the data of 'demo' is missing", "Install memx again.", path=folder)
        return cls([(item.name, item.read_bytes()) for item in sorted(found, key=lambda item: item.name)])

    @property
    def info(self) -> DatasetInfo:
        """Name, data version and the SHA-256 over the bytes of all files in order."""
        digest = hashlib.sha256(b"".join(content for _, content in self._shipped)).hexdigest()
        return DatasetInfo(
            name=self.name,
            sha256=digest,
            version=DATA_VERSION,
            category_source="memx's own: written with each question",
        )

    def cases(self) -> Iterator[Case]:
        """The cases in the order of their file names."""
        for file_name, content in self._shipped:
            try:
                yield _case(json.loads(content))
            except (ValueError, KeyError, TypeError) as error:
                what = f"broken case: {type(error).__name__}: {error}"
                raise InputError(what, "Install memx again.", path=f"demo_data/{file_name}") from error


def _case(data: dict[str, Any]) -> Case:
    case_id: str = data["case_id"]
    roles = {speaker["name"]: speaker["role"] for speaker in data["speakers"]}
    sessions = tuple(_session(session, case_id, roles) for session in data["sessions"])
    session_of = {turn.turn_id: session.session_id for session in sessions for turn in session.turns}
    asked_at = datetime.fromisoformat(data["asked_at"])
    questions = tuple(_question(question, case_id, session_of, asked_at) for question in data["questions"])
    return Case(case_id, case_id, sessions, questions)


def _session(data: dict[str, Any], case_id: str, roles: dict[str, str]) -> Session:
    at = datetime.fromisoformat(data["date"])
    turns = tuple(
        Turn(turn["id"], turn["speaker"], roles[turn["speaker"]], turn["text"], at=at + number * TURN_GAP)
        for number, turn in enumerate(data["turns"])
    )
    return Session(data["session_id"], case_id, turns, at=at)


def _question(data: dict[str, Any], case_id: str, session_of: dict[str, str], asked_at: datetime) -> Question:
    evidence: list[str] = data["evidence"]
    metadata = dict(data.get("metadata", {}))
    if "stale_evidence" in metadata:
        metadata["stale_evidence"] = tuple(metadata["stale_evidence"])
    return Question(
        question_id=data["question_id"],
        entity_id=case_id,
        text=data["text"],
        gold=data["gold"],
        category=data["category"],
        evidence=tuple(evidence),
        evidence_sessions=tuple(dict.fromkeys(session_of[turn_id] for turn_id in evidence)),
        asked_at=asked_at,
        abstention=data.get("abstention", False),
        metadata=metadata,
    )
