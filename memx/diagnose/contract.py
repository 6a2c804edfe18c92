"""What diagnosis is given: one case's history as the memory system kept it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

from memx.model import Case, Snapshot

#: Texts to unit vectors, shape (len(texts), dimension), float32.
Embed = Callable[[Sequence[str]], "np.ndarray[Any, Any]"]


class AsksModel(Protocol):
    """The last rung of the relevance ladder (:class:`memx.diagnose.model_rung.ModelRung`)."""

    def carrying(self, question: str, speaker: str, said: str, facts: Sequence[str]) -> set[int] | None:
        """The positions of the facts that carry a turn; None when no model answered."""


@dataclass(frozen=True, slots=True)
class History:
    """A case and what the store held before and after its ingest; shared by all questions of the case.

    Attributes:
        by_session: (session id, snapshot taken after that session) in ingest order; empty unless snapshots were
            taken per session.
    """

    case: Case
    before: Snapshot
    after: Snapshot
    by_session: tuple[tuple[str, Snapshot], ...] = ()
