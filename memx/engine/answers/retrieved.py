"""The retrieved text itself as the candidate: what is judged when no answer model is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memx.engine.answers.context import fit_context
from memx.engine.answers.contract import Answerer
from memx.model import Candidate, CandidateSource, Question, Retrieved


class RetrievedText(Answerer):
    """Joins the retrieved facts, best first, within the budget. Such a candidate cannot refuse to answer."""

    name = "none"

    def __init__(self, context_budget: int | None = None) -> None:
        self._budget = context_budget

    def answer(
        self, question: Question, retrieved: Sequence[Retrieved], dates: Mapping[str, datetime] | None = None
    ) -> Candidate:
        """The facts' own text, one per line, without dates: what the memory system gave back, and nothing else."""
        context = fit_context(retrieved, self._budget)
        return Candidate(context.text, CandidateSource.RETRIEVED, context.tokens)
