"""Answers by a language model, from dated and named context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memx.engine.answers.context import fit_context, shown_date
from memx.engine.answers.contract import Answerer
from memx.engine.prompts import Prompts
from memx.llm.client import LLM
from memx.model import Candidate, CandidateSource, Question, Retrieved

#: Datasets with instructions of their own, and how long their answers get, in tokens.
_ANSWER_TOKENS = {"general": 512, "locomo": 256, "longmemeval": 768, "beam": 1536}
_NOTHING = "(nothing was found in memory)"


class ModelAnswerer(Answerer):
    """Asks a model, telling it to answer from the context alone and to refuse when the context holds no answer.

    Args:
        dataset_name: picks the instructions; a dataset without its own takes the general ones.
        context_budget: tokens of retrieved text the model may see; None for all of it.
    """

    def __init__(self, llm: LLM, dataset_name: str = "", context_budget: int | None = None) -> None:
        self.name = llm.model
        self._llm = llm
        self._budget = context_budget
        self._prompts = Prompts("memx.engine.answers")
        self._kind = dataset_name if dataset_name in _ANSWER_TOKENS else "general"
        self.prompt_sha256 = self._prompts.sha256([self._kind, "question"])

    def answer(
        self, question: Question, retrieved: Sequence[Retrieved], dates: Mapping[str, datetime] | None = None
    ) -> Candidate:
        """The model's answer; ``context_tokens`` counts the retrieved text that it saw."""
        context = fit_context(retrieved, self._budget, dates)
        fields: dict[str, Any] = {
            "context": context.text or _NOTHING,
            "question": question.text,
            "asked_at": f"Asked on {shown_date(question.asked_at)}." if question.asked_at else "",
        }
        completion = self._llm.complete(
            [
                {"role": "system", "content": self._prompts.fill(self._kind, {})},
                {"role": "user", "content": self._prompts.fill("question", fields)},
            ],
            purpose="answer",
            max_tokens=_ANSWER_TOKENS[self._kind],
        )
        return Candidate(completion.text.strip(), CandidateSource.MODEL, context.tokens)

    def preflight(self) -> None:
        """Try key and model once."""
        self._llm.preflight()
