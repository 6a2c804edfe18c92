"""``memx explain``."""

from __future__ import annotations

from pathlib import Path

import click

from memx.cli.options import directory_option


@click.command(name="explain", short_help="Print failure mechanisms, near misses and which signal loses.")
@click.argument("run", required=False)
@click.option("--where", default="", metavar="FILTER", help="Only the questions that the filter keeps.")
@click.option("--limit", type=click.IntRange(0), default=10, show_default=True, help="Near misses listed.")
@directory_option
def command(run: str | None, where: str, limit: int, directory: Path) -> None:
    """Group the failures of RUN (the newest by default) by mechanism, and explain its near misses."""
    from memx.cli.table import table
    from memx.diagnose.clusters import clusters
    from memx.diagnose.explain import explain
    from memx.engine.store.filters import parse
    from memx.engine.store.marks import Marks
    from memx.engine.store.reader import Store

    store = Store(directory)
    found = store.run(run)
    traces = list(store.traces(found.run_id, parse(where)))
    triaged = Marks(store).triaged(found)
    store.close()
    groups = clusters(traces)
    explained = explain(traces)
    click.echo(f"run {found.run_id}: {explained.failed} diagnosed FAILs, {explained.retrieval} of them retrieval\n")
    rows = [
        [
            c.mechanism,
            len(c.question_ids),
            f"{c.share * 100:.0f} %",
            f"+{c.worth:.1f}",
            len(triaged.intersection(c.question_ids)),
            c.example,
            c.hypothesis,
        ]
        for c in groups
    ]
    if rows:
        click.echo(table(["mechanism", "FAILs", "share", "worth", "triaged", "example", "what it means"], rows))
        click.echo("worth: points of accuracy, were all of them mended\n")
    if not explained.near:
        click.echo("no near misses")
        return
    kept = ", ".join(f"k = {k}: {n}" for k, n in explained.kept_by_k.items())
    click.echo(f"{len(explained.near)} near misses, {explained.ranked} of a known rank; a larger k would keep {kept}\n")
    rows = [
        [s.name, s.pairs, f"{s.mean_gap:+.4g}", f"{s.median_gap:+.4g}", f"{s.loses}/{s.pairs}"]
        for s in explained.signals
    ]
    click.echo(table(["signal", "pairs", "mean advantage", "median", "loses"], rows))
    rows = [
        [question_id, miss.expected_rank, miss.expected_fact_id, miss.winner_fact_id, "; ".join(miss.would_keep)]
        for question_id, miss in sorted(explained.near, key=lambda one: one[1].expected_rank or 10**9)[:limit]
    ]
    click.echo("\n" + table(["question", "rank", "expected", "taken by", "would be kept if"], rows))
