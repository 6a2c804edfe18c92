"""Which prompt judges a question: by dataset, category and kind of candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from memx.model import CandidateSource, Question


class Rubric(StrEnum):
    """The prompts for judging, by the name of their file."""

    GENERAL = "general"
    LOCOMO = "locomo"
    ADVERSARIAL = "adversarial"
    ABSTENTION = "abstention"
    TEMPORAL = "temporal"
    UPDATE = "update"
    PREFERENCE = "preference"
    RETRIEVED = "retrieved"
    NUGGETS = "nuggets"
    ORDERING = "ordering"


#: LongMemEval's types that have a rule of their own; the others are judged by the general one.
_LONGMEMEVAL: Mapping[str, Rubric] = {
    "temporal-reasoning": Rubric.TEMPORAL,
    "knowledge-update": Rubric.UPDATE,
    "single-session-preference": Rubric.PREFERENCE,
}


def rubric_for(dataset_name: str, question: Question, source: CandidateSource) -> Rubric:
    """The prompt that judges a question of a dataset.

    LongMemEval marks abstention by the id's suffix ``_abs``, whatever the type; BEAM's event ordering is told by its
    category, and every question with a list of nuggets is graded by them.
    """
    kinds = {_plain(question.category), _plain(str(question.metadata.get("question_type") or ""))}
    if source is CandidateSource.RETRIEVED:
        return Rubric.RETRIEVED
    if nuggets_of(question):
        return Rubric.ORDERING if "event-ordering" in kinds else Rubric.NUGGETS
    if question.abstention or question.question_id.endswith("_abs"):
        return Rubric.ADVERSARIAL if dataset_name == "locomo" else Rubric.ABSTENTION
    if dataset_name == "longmemeval":
        return next((rubric for kind, rubric in _LONGMEMEVAL.items() if kind in kinds), Rubric.GENERAL)
    return Rubric.LOCOMO if dataset_name == "locomo" else Rubric.GENERAL


def is_abstention(question: Question) -> bool:
    """Whether the right answer is a refusal."""
    return question.abstention or question.question_id.endswith("_abs")


def nuggets_of(question: Question) -> tuple[str, ...]:
    """The rubric's nuggets (``metadata["rubric"]``); empty where the dataset gives none."""
    rubric = question.metadata.get("rubric")
    if isinstance(rubric, str) or not isinstance(rubric, Sequence):
        return ()
    return tuple(str(nugget) for nugget in rubric if str(nugget).strip())


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")
