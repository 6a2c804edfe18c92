"""``memx show``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option


@click.command(name="show", short_help="Print the question table of a run.")
@click.argument("run", required=False)
@click.option("--where", default="", metavar="FILTER", help='As in memx debug: stage:retrieval rank<20 text~"dinner".')
@click.option(
    "--sort", default="verdict", show_default=True, help="position, verdict, stage, rank, category, confidence."
)
@click.option("--limit", type=int, default=50, show_default=True, help="Rows; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@directory_option
def command(run: str | None, where: str, sort: str, limit: int, as_json: bool, directory: Path) -> None:
    """Print the questions of RUN (the newest by default) that FILTER keeps."""
    from memx.cli.table import table
    from memx.engine.store.filters import parse
    from memx.engine.store.reader import SORTS, Store
    from memx.errors import UnknownNameError

    if sort not in SORTS:
        raise UnknownNameError("sort order", sort, SORTS)
    store = Store(directory)
    found = store.run(run)
    condition = parse(where)
    rows = store.questions(found.run_id, condition, sort=sort, limit=limit or 2**31)
    if as_json:
        for row in rows:
            click.echo(json.dumps(asdict(row)))
    elif rows:
        header = ["question id", "verdict", "stage", "cause", "rank", "category", "question"]
        cells = [[r.question_id, r.outcome, r.stage, r.cause, r.rank, r.category, r.question] for r in rows]
        click.echo(table(header, cells))
    matching, total = store.count(found.run_id, condition), store.count(found.run_id)
    say(f"memx: run {found.run_id}: {len(rows)} of {matching} matching shown, {total} in all")
    store.close()
