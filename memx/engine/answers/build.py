"""From the word a user types after ``--answer-model`` to an answerer."""

from __future__ import annotations

from collections.abc import Callable

from memx.engine.answers.contract import Answerer
from memx.llm.client import LLM


def build_answerer(
    name: str | None,
    llm_factory: Callable[[str], LLM],
    *,
    dataset_name: str = "",
    context_budget: int | None = None,
) -> Answerer:
    """The answerer for ``none`` (or nothing), ``extractive``, or a model's name.

    Args:
        llm_factory: gives the client for a model's name (``Models.llm``); called for a model only.
    """
    if name is None or name in ("", "none"):
        from memx.engine.answers.retrieved import RetrievedText

        return RetrievedText(context_budget)
    if name == "extractive":
        from memx.engine.answers.extractive import ExtractiveAnswerer

        return ExtractiveAnswerer(context_budget)
    from memx.engine.answers.model import ModelAnswerer

    return ModelAnswerer(llm_factory(name), dataset_name, context_budget)
