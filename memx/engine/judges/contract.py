"""What every judge offers: from one answered question to a verdict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from memx.model import Candidate, Decider, Question, Retrieved, Turn, Verdict


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One answered question.

    Attributes:
        evidence: the turns that the question's evidence ids name.
        retrieved: the top k, best first: what the candidate could see.
        sources: turn ids that each stored fact came from, by fact id, as far as the memory system tells.
    """

    question: Question
    candidate: Candidate
    evidence: tuple[Turn, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Judge(ABC):
    """From a candidate answer to PASS, FAIL or UNJUDGED. Safe to call from several threads.

    Attributes:
        name: shown with every verdict: ``offline``, or the model's name.
        decider: who decides, for the record.
        prompt_sha256: of the prompts in use; empty for a rule.
    """

    name: str
    decider: Decider
    prompt_sha256: str = ""

    @abstractmethod
    def judge(self, item: JudgeItem) -> Verdict:
        """The verdict on one answered question.

        Raises:
            ModelError: the model behind the judge failed for good; the question is then UNJUDGED.
        """

    def preflight(self) -> None:  # noqa: B027
        """Fail now, before anything is ingested, when no verdict could be had (no key, no such model)."""
