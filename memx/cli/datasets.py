"""``memx datasets list | check``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from memx.cli.options import pairs


@click.group(name="datasets", short_help="List datasets, check a file.")
def command() -> None:
    """The benchmarks that memx can run."""


@command.command(name="list")
def list_() -> None:
    """List the datasets that are built in or installed."""
    from memx.adapters.registry import dataset_class, names
    from memx.cli.adapters import first_line
    from memx.cli.table import table
    from memx.errors import MemxError

    rows = []
    for name in sorted(names("dataset")):
        try:
            found = dataset_class(name)
            summary, needs = found.summary or first_line(found.__doc__), "--source" if found.needs_source else ""
        except MemxError as error:
            summary, needs = f"cannot be used: {error}", ""
        rows.append([name, needs, summary])
    click.echo(table(["name", "needs", "what it is"], rows))


@command.command()
@click.argument("name")
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option("--source", "source_option", type=click.Path(path_type=Path), help="The file, as for memx run.")
@click.option("--dataset-option", "options", multiple=True, metavar="K=V")
@click.option("--all", "show_all", is_flag=True, help="Every place, not the first of each kind.")
def check(name: str, source: Path | None, source_option: Path | None, options: tuple[str, ...], show_all: bool) -> None:
    """Read the dataset NAME from SOURCE whole; list every quirk and what is done about it."""
    from memx.adapters.datasets.opening import open_dataset
    from memx.cli.table import table

    dataset = open_dataset(name, source or source_option, **pairs(options, "--dataset-option"))
    categories: Counter[str] = Counter()
    cases = sessions = turns = questions = evidence = 0
    for case in dataset.cases():
        cases += 1
        sessions += len(case.sessions)
        turns += sum(len(session.turns) for session in case.sessions)
        questions += len(case.questions)
        evidence += sum(1 for question in case.questions if question.evidence)
        categories.update(question.category for question in case.questions)
    info = dataset.info
    click.echo(f"{info.name}  {info.version}  {info.source}".rstrip())
    if info.sha256:
        click.echo(f"sha256     {info.sha256}")
    click.echo(f"cases      {cases}, with {sessions} sessions and {turns} turns")
    click.echo(f"questions  {questions}, of which {evidence} have evidence turns")
    for category, count in sorted(categories.items()):
        click.echo(f"  {category:<24}{count:>6}")
    if info.category_source:
        click.echo(f"categories {info.category_source}")
    quirks = dataset.quirks()
    counts = Counter((quirk.kind, quirk.policy) for quirk in quirks)
    click.echo(f"\n{len(quirks)} quirks, none of them silent")
    if not quirks:
        return
    first: dict[tuple[str, str], bool] = {}
    rows = []
    for quirk in quirks:
        key = (quirk.kind, quirk.policy)
        if show_all or key not in first:
            rows.append([quirk.kind, quirk.policy, counts[key], quirk.place, quirk.detail])
            first[key] = True
    click.echo(table(["quirk", "policy", "count", "place", "detail"], rows))
    if not show_all and len(quirks) > len(rows):
        click.echo("\nThe first of each kind is shown; --all lists every place.")
