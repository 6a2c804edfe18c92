"""What every answerer offers: from a question and what was retrieved to a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime

from memx.model import Candidate, Question, Retrieved


class Answerer(ABC):
    """From the retrieved facts to the candidate. Safe to call from several threads.

    Attributes:
        name: shown with the run: ``none``, ``extractive`` or the model's name.
        prompt_sha256: of the prompts in use; empty where there are none.
    """

    name: str
    prompt_sha256: str = ""

    @abstractmethod
    def answer(
        self, question: Question, retrieved: Sequence[Retrieved], dates: Mapping[str, datetime] | None = None
    ) -> Candidate:
        """The candidate answer.

        Args:
            retrieved: the top k, best first; may be empty, which is asked all the same.
            dates: when each fact was said or stored, by fact id, as far as known.

        Raises:
            ModelError: the model behind it failed for good.
        """

    def preflight(self) -> None:  # noqa: B027
        """Fail now, before anything is ingested, when no answer could be had."""
