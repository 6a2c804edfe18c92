"""Known mistakes of public datasets: small files of facts beside this one, read as an overlay by question id.

The dataset itself is never changed. A run shows its score as the dataset has it, and beside it the score with the
overlay: corrected gold where it is known, disputed questions left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

#: The one kind that leaves the gold answer standing.
WRONG_CITATION = "wrong_citation"


@dataclass(frozen=True, slots=True)
class Errata(Mapping[str, Mapping[str, Any]]):
    """What is known to be wrong about a dataset's questions, by question id.

    Each entry holds ``kind`` and, where known, ``corrected_evidence`` (turn ids) and ``corrected_gold`` (a short text).

    Attributes:
        source: where the facts were taken from.
        kinds: what each kind means.
    """

    source: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __getitem__(self, question_id: str) -> Mapping[str, Any]:
        return self.entries[question_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def disputes_gold(self, question_id: str) -> bool:
        """True when the gold answer itself is in doubt, not only the turns that are cited for it."""
        entry = self.entries.get(question_id)
        return entry is not None and entry["kind"] != WRONG_CITATION


def errata_for(dataset_name: str, version: str = "") -> Errata:
    """The overlay of a dataset; empty when there is none.

    Args:
        version: ``DatasetInfo.version``; entries that its edition mended are left out.
    """
    file = resources.files(__name__) / f"{dataset_name}.json"
    if not dataset_name.isidentifier() or not file.is_file():
        return Errata()
    content = json.loads(file.read_text(encoding="utf-8"))
    entries = {
        entry["question_id"]: {key: value for key, value in entry.items() if key != "question_id"}
        for entry in content["entries"]
        if entry.get("edition", "") != "original" or "cleaned" not in version or "original" in version
    }
    return Errata(content["source"], content["kinds"], entries)
