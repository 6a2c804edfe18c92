"""From the word a user types after ``--answer-model`` to an answerer."""

from __future__ import annotations

from memx.engine.answers.contract import Answerer
from memx.llm.models import Models


def build_answerer(
    name: str | None,
    models: Models,
    *,
    dataset_name: str = "",
    context_budget: int | None = None,
) -> Answerer:
    """The answerer for ``none`` (or nothing), ``extractive``, or a model's name.

    Args:
        models: gives the client for a model's name; asked for a model only.
    """
    if name is None or name in ("", "none"):
        from memx.engine.answers.retrieved import RetrievedText

        return RetrievedText(context_budget)
    if name == "extractive":
        from memx.engine.answers.extractive import ExtractiveAnswerer

        return ExtractiveAnswerer(context_budget)
    from memx.engine.answers.model import ModelAnswerer

    return ModelAnswerer(models.llm(name), dataset_name, context_budget)
