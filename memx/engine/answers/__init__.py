"""From what was retrieved to the candidate answer: by a model, by picking a sentence, or as it is."""

from memx.engine.answers.build import build_answerer
from memx.engine.answers.context import Context, fit_context
from memx.engine.answers.contract import Answerer

__all__ = ["Answerer", "Context", "build_answerer", "fit_context"]
