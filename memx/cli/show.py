"""``memx show``."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option, where_option


@click.command(name="show", short_help="Print the question table of a run.")
@click.argument("run", required=False)
@where_option
@click.option(
    "--sort", default="verdict", show_default=True, help="position, verdict, stage, rank, category, confidence."
)
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="Rows; 0 for all.")
@click.option("--filters", is_flag=True, help="Print the filters that memx debug keeps, instead of questions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@directory_option
def command(run: str | None, where: str, sort: str, limit: int, filters: bool, as_json: bool, directory: Path) -> None:
    """Print the questions of RUN (the newest by default) that FILTER keeps."""
    from memx.cli.table import table
    from memx.engine.store.filters import parse
    from memx.engine.store.marks import Marks, Triage
    from memx.engine.store.reader import SORTS, Store
    from memx.errors import UnknownNameError
    from memx.text.gate import safe

    if sort not in SORTS:
        raise UnknownNameError("sort order", sort, SORTS)
    with closing(Store(directory)) as store:
        marks = Marks(store)
        if filters:
            for name, text in marks.saved_filters().items():
                click.echo(json.dumps({"name": name, "filter": text}) if as_json else safe(f"{name}: {text}"))
            return
        found = store.run(run)
        condition = parse(where)
        triage = marks.current(found)
        rows = [
            (row, triage.get(row.question_id, Triage()))
            for row in store.questions(found.run_id, condition, sort=sort, limit=limit or 2**31)
        ]
        if as_json:
            for row, stands in rows:
                click.echo(json.dumps(asdict(row) | {"mark": stands.mark, "note": stands.note}))
        elif rows:
            header = ["question id", "mark", "verdict", "stage", "cause", "rank", "category", "question"]
            cells = [
                [r.question_id, stands.shown(r.outcome == "FAIL"), r.outcome, r.stage, r.cause, r.rank, r.category,
                 r.question]
                for r, stands in rows
            ]  # fmt: skip
            click.echo(table(header, cells))
        matching, total = store.count(found.run_id, condition), store.count(found.run_id)
        say(f"memx: run {found.run_id}: {len(rows)} of {matching} matching shown, {total} in all")
