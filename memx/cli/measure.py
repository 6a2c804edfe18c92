"""``memx measure``."""

from __future__ import annotations

from pathlib import Path

import click

from memx.cli.options import directory_option


@click.command(name="measure", short_help="Apply a measure to the stored traces of a run.")
@click.argument("run", required=False)
@click.option("--measure", "name", required=True, metavar="NAME|module:Class")
@directory_option
def command(run: str | None, name: str, directory: Path) -> None:
    """Apply a measure to RUN (the newest by default): every value with its decider; nothing is run again."""
    from memx.cli.table import table
    from memx.engine.api import Run, measure

    values = measure(Run.load(run, directory), name)
    rows = [
        [value.question_id or "whole run", value.measure, "not stated" if value.value is None else f"{value.value:g}",
         value.decider, value.why]
        for value in values
    ]  # fmt: skip
    click.echo(table(["question", "measure", "value", "decider", "why"], rows))
