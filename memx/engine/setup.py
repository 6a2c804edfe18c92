"""From settings to a runner: names become classes, a stored run's settings are read back, models are built once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from memx.adapters.contract import Dataset, MemoryAdapter
from memx.adapters.registry import adapter_class
from memx.engine.estimate import diagnose_estimate
from memx.engine.events import Listener
from memx.engine.executors.build import shown
from memx.engine.judges.contract import Judge
from memx.engine.redaction import HIDDEN
from memx.engine.runner import Ended, Parts, Runner, new_run_id
from memx.engine.settings import RunSettings
from memx.engine.store.reader import RunRow, Store
from memx.engine.store.writer import RunWriter
from memx.errors import InputError, UsageError


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can start. ``close`` releases what it holds when it is not started after all."""

    runner: Runner
    run_id: str
    settings: RunSettings
    parts: Parts

    def run(self) -> Ended:
        """Run to the end."""
        return self.runner.run()

    def opening_lines(self) -> list[str]:
        """What a user should know before it starts: judge, dataset, adapter, draw."""
        settings, parts = self.settings, self.parts
        answers = "" if settings.answer_model == "none" else f", answers by {settings.answer_model}"
        count = "" if parts.total is None else f", {parts.total} questions"
        lines = [
            f"memx: judge {parts.judge.name}{answers}",
            f"memx: run {self.run_id}: {parts.dataset.info.name} x {parts.adapter.name or settings.adapter}{count}",
        ]
        if words := shown(settings.executor):
            lines.append(f"memx: {words}")
        if settings.diagnose_model not in ("", "none") and parts.total:
            most = diagnose_estimate(settings.diagnose_model, parts.total).words()
            lines.append(f"memx: diagnosis by {settings.diagnose_model}, should every question fail: {most}")
        if settings.random or settings.sample:
            lines.append(f"memx: questions drawn at random, seed {settings.seed}")
        if parts.slice_reasons:
            lines.append(f"memx: not a measurement: {'; '.join(parts.slice_reasons)}")
        return lines


def prepare(
    settings: RunSettings,
    directory: Path,
    *,
    listener: Listener = lambda event: None,
    resume: str | None = None,
    stop: threading.Event | None = None,
    dataset: Dataset | None = None,
    adapter: type[MemoryAdapter] | None = None,
    judge: Judge | None = None,
    run_id: str | None = None,
    control: Mapping[str, str] | None = None,
) -> Prepared:
    """Everything a run needs, checked before anything is ingested.

    Args:
        resume: a stored run to go on with; its settings hold, ``settings`` only adds what the store must not keep.
        dataset, adapter, judge: given as objects instead of by name.
        run_id: of a new run; made here by default.
        control: arm and key, where the run is a control of others.

    Raises:
        MemxError: a name, option or file that cannot be used; nothing has been written then.
    """
    run_id = run_id or new_run_id()
    if resume is not None:
        stored, settings = _stored(directory, resume, settings)
        run_id = stored.run_id
    stop = stop or threading.Event()
    chosen = adapter or adapter_class(settings.adapter)
    if settings.skip_ingest and not (settings.entity_prefix or chosen.shares_entity_ids):
        raise UsageError(
            "--skip-ingest asks what an earlier run stored, and a new run has a namespace of its own",
            "Give --entity-prefix as the run that ingested did.",
        )
    selected, total, reasons = _dataset(settings, dataset)
    if resume is not None:
        _refuse_changed_dataset(selected, stored)
    parts = _parts(settings, selected, chosen, judge, total, reasons, directory, stop, listener)
    parts = replace(parts, control=control)
    writer = RunWriter(directory, run_id)
    runner = Runner(settings, parts, directory, writer=writer, listener=listener, resume=resume is not None, stop=stop)
    return Prepared(runner, run_id, settings, parts)


def _parts(
    settings: RunSettings,
    dataset: Dataset,
    adapter: type[MemoryAdapter],
    judge: Judge | None,
    total: int | None,
    reasons: tuple[str, ...],
    directory: Path,
    stop: threading.Event,
    listener: Listener,
) -> Parts:
    from memx.adapters.datasets.errata import errata_for
    from memx.engine.roles import build_judge, build_model_rung, build_models, build_run_answerer

    info = dataset.info
    models = build_models(settings, directory, stop, listener)
    return Parts(
        dataset=dataset,
        adapter=adapter,
        judge=judge or build_judge(settings, models, info.name),
        answerer=build_run_answerer(settings, models, info.name),
        total=total,
        slice_reasons=reasons,
        errata=errata_for(info.name, info.version),
        model_rung=build_model_rung(settings, models),
        models=models,
    )


def _dataset(settings: RunSettings, given: Dataset | None) -> tuple[Dataset, int | None, tuple[str, ...]]:
    from memx.adapters.datasets.opening import open_dataset
    from memx.adapters.datasets.selection import Selection, select

    source = Path(settings.source) if settings.source else None
    dataset = given or open_dataset(settings.dataset, source, **settings.dataset_options)
    selection = Selection(
        limit=settings.limit,
        random=settings.random,
        seed=settings.seed,
        sample=settings.sample,
        categories=settings.categories,
        question_ids=settings.question_ids,
    )
    selected = select(dataset, selection)
    return selected, selected.question_count(), selected.reasons


def _stored(directory: Path, resume: str, given: RunSettings) -> tuple[RunRow, RunSettings]:
    """The run to go on with and its settings.

    Hidden option values are taken from ``given``, and so are caps and another address of the endpoint, which decide
    nothing of the result.
    """
    store = Store(directory)
    try:
        run = store.run(resume)
    finally:
        store.close()
    if rejudged := run.manifest.get("rejudged_from"):
        raise UsageError(
            f"run {run.run_id} holds new verdicts on run {rejudged}; nothing was ingested for it",
            f"Judge again: memx rejudge {rejudged} --judge-model M; replies that a model gave are kept.",
        )
    settings = RunSettings.from_dict(run.settings)
    options = dict(settings.adapter_options)
    for name, value in options.items():
        if value == HIDDEN:
            if name not in given.adapter_options:
                hint = f"Give it again: --adapter-option {name}=..."
                raise UsageError(f"run {run.run_id} used --adapter-option {name}, which the store does not keep", hint)
            options[name] = given.adapter_options[name]
    base_url = given.base_url or settings.base_url
    if base_url == HIDDEN:
        raise UsageError(f"run {run.run_id} used a --base-url with a password or key", "Give it again: --base-url ...")
    calls = settings.max_calls if given.max_calls is None else given.max_calls
    cost = settings.max_cost if given.max_cost is None else given.max_cost
    return run, replace(settings, adapter_options=options, base_url=base_url, max_calls=calls, max_cost=cost)


def _refuse_changed_dataset(dataset: Dataset, run: RunRow) -> None:
    before = run.dataset_sha256
    now = dataset.info.sha256
    if before and now and before != now:
        raise InputError(
            f"the dataset is not the one that run {run.run_id} began with (sha256 {now[:12]}, was {before[:12]})",
            "Put the old file back, or start a new run.",
            path=dataset.info.source,
        )
