"""``memx calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memx.cli.main import say
from memx.cli.options import directory_option, pairs

if TYPE_CHECKING:
    from memx.adapters.contract import Dataset
    from memx.diagnose.calibrate import CalibrationReport
    from memx.engine.store.calibrations import Calibration


@click.command(name="calibrate", short_help="Plant known faults and measure how often diagnosis is right.")
@click.option("--dataset", default="demo", show_default=True)
@click.option("--source", type=click.Path(path_type=Path), help="The dataset's file.")
@click.option("--dataset-option", "options", multiple=True, metavar="K=V")
@click.option(
    "--store",
    "stores",
    multiple=True,
    type=click.Choice(["verbatim", "extracted", "both"]),
    default=["verbatim"],
    help="What the perfect store keeps: verbatim turns (the default), extracted facts, or both.",
)
@click.option("--without-provenance", is_flag=True, help="The store does not tell which turn a fact came from.")
@click.option(
    "--all", "every", is_flag=True, help="Every store that the dataset can fill, with and without provenance."
)
@click.option("--judge", "judge_name", metavar="MODEL|offline", help="Audit this judge instead, by planted answers.")
@click.option("--base-url", default="", metavar="URL", help="Of an OpenAI-compatible endpoint, for --judge MODEL.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="With --judge: plant answers for N questions, drawn at random."
)
@click.option("--faults", type=click.IntRange(1), metavar="N", help="At most N faults per seed.")
@click.option("--seed", "seeds", type=int, multiple=True, default=[0, 1, 2], show_default=True)
@directory_option
def command(
    dataset: str,
    source: Path | None,
    options: tuple[str, ...],
    stores: tuple[str, ...],
    without_provenance: bool,
    every: bool,
    judge_name: str | None,
    base_url: str,
    limit: int | None,
    directory: Path,
    faults: int | None,
    seeds: tuple[int, ...],
) -> None:
    """Plant one known fault per question into a perfect store, and print how often diagnosis finds it."""
    from memx.adapters.datasets.opening import open_dataset
    from memx.cli.table import table
    from memx.diagnose.calibrate import calibrate
    from memx.diagnose.perfect import ExtractedDataset, StoreKind
    from memx.engine.store.calibrations import keep_calibration

    opened = open_dataset(dataset, source, **pairs(options, "--dataset-option"))
    if judge_name is not None:
        _audit(opened, judge_name, base_url, limit, seeds, directory)
        return
    wanted = [(store, not without_provenance) for store in stores]
    if every:
        kinds = list(StoreKind) if isinstance(opened, ExtractedDataset) else [StoreKind.VERBATIM]
        wanted = [(kind, told) for told in (True, False) for kind in kinds]
    rows = []
    for number, (store, told) in enumerate(wanted, 1):
        sure = "with" if told else "without"
        say(f"memx: planting faults, {number} of {len(wanted)}: {store} store {sure} provenance")
        found = calibrate(opened, store=store, provenance=told, seeds=seeds, faults=faults)
        click.echo(found.text() + "\n")
        keep_calibration(directory, _kept(found), seeds)
        figures = (found.stage_accuracy, found.macro_f1, found.cause_accuracy)
        rows.append([store, "yes" if told else "no", len(found.outcomes), *(f"{figure:.3f}" for figure in figures)])
    if len(rows) > 1:
        click.echo(table(["store", "provenance", "faults", "stage accuracy", "macro-F1", "cause accuracy"], rows))


def _kept(found: CalibrationReport) -> Calibration:
    from memx.engine.store.calibrations import Calibration

    causes = sum(one.planted is one.found.cause for one in found.outcomes)
    stages = round(found.stage_accuracy * len(found.outcomes))
    return Calibration(found.dataset, str(found.store), found.provenance, len(found.outcomes), stages, causes)


def _audit(
    dataset: Dataset, name: str, base_url: str, limit: int | None, seeds: tuple[int, ...], directory: Path
) -> None:
    import threading

    from memx.cli.interrupts import repeatable
    from memx.cli.progress import say_notice
    from memx.engine.judges.audit import audit_judge
    from memx.engine.roles import build_judge, build_models
    from memx.engine.settings import RunSettings
    from memx.engine.store.audits import keep_audit

    settings = RunSettings(judge_model=name, base_url=base_url)
    models = build_models(settings, directory, threading.Event(), say_notice)
    judge = build_judge(settings, models, dataset.info.name)
    with repeatable():
        judge.preflight()
        for seed in seeds:
            audit = audit_judge(judge, dataset, seed=seed, limit=limit, concurrency=settings.model_concurrency)
            keep_audit(directory, judge.name, judge.prompt_sha256, dataset.info.name, seed, audit.counts)
            click.echo(audit.text() + "\n")
