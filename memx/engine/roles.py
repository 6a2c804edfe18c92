"""Judges and answerers from the words of a command line, behind one model client."""

from __future__ import annotations

import threading
from pathlib import Path

from memx.diagnose.model_rung import ModelRung
from memx.engine.answers import Answerer, build_answerer
from memx.engine.events import Listener, Notice
from memx.engine.judges.contract import Judge
from memx.engine.settings import RunSettings
from memx.engine.store.replies import StoredReplies
from memx.llm.models import Models, ModelSettings


def build_models(settings: RunSettings, directory: Path, stop: threading.Event, listener: Listener) -> Models:
    """The model client of a run: replies kept in the run store, waits told to the listener."""
    return Models(
        ModelSettings(
            base_url=settings.base_url or None,
            concurrency=settings.model_concurrency,
            max_calls=settings.max_calls,
            max_cost=settings.max_cost,
        ),
        cache=StoredReplies(directory),
        stop=stop,
        on_wait=lambda wait: listener(Notice(str(wait), passing=True)),
    )


def build_judge(settings: RunSettings, models: Models, dataset_name: str) -> Judge:
    """The judge that ``--judge-model`` names.

    Raises:
        MemxError: an option that cannot be used, a prompt file that cannot be read.
    """
    if settings.judge_model == "offline":
        from memx.engine.judges.offline import OfflineJudge

        return OfflineJudge(strict=settings.strict)
    from memx.engine.judges.model import ModelJudge

    return ModelJudge(
        models.llm(settings.judge_model),
        dataset_name=dataset_name,
        votes=settings.votes,
        confirm_fails=settings.confirm_fails,
        prompt_file=Path(settings.judge_prompt) if settings.judge_prompt else None,
    )


def build_model_rung(settings: RunSettings, models: Models) -> ModelRung | None:
    """The model that ``--diagnose-model`` names, asked only where no cheaper rung links a piece; checked here.

    Raises:
        ModelError: it cannot be asked.
    """
    if settings.diagnose_model in ("", "none"):
        return None
    llm = models.llm(settings.diagnose_model)
    llm.preflight()
    return ModelRung(llm)


def build_run_answerer(settings: RunSettings, models: Models, dataset_name: str) -> Answerer:
    """The answerer that ``--answer-model`` names."""
    return build_answerer(
        settings.answer_model, models.llm, dataset_name=dataset_name, context_budget=settings.context_budget
    )
