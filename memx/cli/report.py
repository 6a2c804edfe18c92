"""``memx report``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from memx.cli.options import directory_option


@click.command(name="report", short_help="Print retrieval metrics, ranks and timings of runs.")
@click.argument("runs", nargs=-1)
@click.option("--compare", is_flag=True, help="One line a run: session recall, NDCG, turn recall, MRR.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@directory_option
def command(runs: tuple[str, ...], compare: bool, as_json: bool, directory: Path) -> None:
    """Print what the stored traces of RUNS (the newest by default) say of retrieval; nothing is run again."""
    from memx.cli.table import table
    from memx.engine.report import compare_rows, report, report_text
    from memx.engine.store.reader import Store

    store = Store(directory)
    reports = [report(store, store.run(name).run_id) for name in runs or (None,)]
    store.close()
    if as_json:
        for one in reports:
            click.echo(json.dumps(asdict(one)))
    elif compare:
        header = ["run", "session R@1", "R@3", "R@5", "R@10", "NDCG@10", "turn R@10", "turn MRR"]
        click.echo(table(header, compare_rows(reports)))
    else:
        click.echo("\n\n".join(report_text(one) for one in reports))
