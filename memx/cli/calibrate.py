"""``memx calibrate``."""

from __future__ import annotations

from pathlib import Path

import click

from memx.cli.options import pairs


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
@click.option("--faults", type=int, metavar="N", help="At most N faults per seed.")
@click.option("--seed", "seeds", type=int, multiple=True, default=[0, 1, 2], show_default=True)
def command(
    dataset: str,
    source: Path | None,
    options: tuple[str, ...],
    stores: tuple[str, ...],
    without_provenance: bool,
    faults: int | None,
    seeds: tuple[int, ...],
) -> None:
    """Plant one known fault per question into a perfect store, and print how often diagnosis finds it."""
    from memx.adapters.datasets.opening import open_dataset
    from memx.diagnose.calibrate import calibrate

    opened = open_dataset(dataset, source, **pairs(options, "--dataset-option"))
    for store in stores:
        report = calibrate(opened, store=store, provenance=not without_provenance, seeds=seeds, faults=faults)
        click.echo(report.text() + "\n")
