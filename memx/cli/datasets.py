"""``memx datasets list | check | pull | new``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from memx.cli.options import dataset_options


@click.group(name="datasets", short_help="List datasets, check a file.")
def command() -> None:
    """The benchmarks that memx can run."""


@command.command(name="list")
def list_() -> None:
    """List the datasets that are built in or installed."""
    from memx.adapters.registry import dataset_class, names
    from memx.cli.adapters import first_sentence
    from memx.cli.table import table
    from memx.errors import MemxError

    rows = []
    for name in sorted(names("dataset")):
        try:
            found = dataset_class(name)
            summary, needs = found.summary or first_sentence(found.__doc__), "--source" if found.needs_source else ""
        except MemxError as error:
            summary, needs = f"cannot be used: {error}", ""
        rows.append([name, needs, summary])
    click.echo(table(["name", "needs", "what it is"], rows))


@command.command()
@click.argument("name")
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option("--source", "source_option", type=click.Path(path_type=Path), help="The file, as for memx run.")
@click.option("--dataset-option", "options", multiple=True, metavar="K=V")
@click.option("--captions", type=click.Choice(["on", "off", "labelled"]), help="What becomes of image captions.")
@click.option("--skip-bad", is_flag=True, help="Leave unusable records out and count them, instead of stopping.")
@click.option("--all", "show_all", is_flag=True, help="Every place, not the first of each kind.")
def check(
    name: str,
    source: Path | None,
    source_option: Path | None,
    options: tuple[str, ...],
    captions: str | None,
    skip_bad: bool,
    show_all: bool,
) -> None:
    """Read the dataset NAME from SOURCE whole; list every quirk and what is done about it.

    A file of your own may stand alone: memx datasets check my.jsonl
    """
    from memx.adapters.datasets.errata import errata_for
    from memx.adapters.datasets.opening import open_dataset
    from memx.cli.table import table

    file = source or source_option
    if file is None and name.endswith((".jsonl", ".ndjson")):
        name, file = "jsonl", Path(name)
    dataset = open_dataset(name, file, **dataset_options(options, captions, skip_bad))
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
    errata = errata_for(info.name, info.version)
    if errata:
        disputed = sum(1 for question_id in errata if errata.disputes_gold(question_id))
        click.echo(f"errata     {len(errata)} questions, {disputed} of them with a disputed gold answer")
        click.echo(f"           from {errata.source}")
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


@command.command()
@click.argument("name")
@click.option("--list", "only_list", is_flag=True, help="Say what would be fetched and from where; fetch nothing.")
@click.option("--mirror", default="", metavar="URL", help="Stands in for the servers' addresses; also MEMX_MIRROR.")
def pull(name: str, only_list: bool, mirror: str) -> None:
    """Fetch the dataset NAME (locomo, longmemeval:s, beam:1m, ...) from its official place into the cache.

    A cut is gone on from; what arrives is checked before it is used. Proxies are taken from HTTPS_PROXY.
    """
    from memx.adapters.datasets.pulling import Link, describe
    from memx.adapters.datasets.pulling import pull as fetch
    from memx.cli.progress import DownloadProgress
    from memx.cli.table import table

    if only_list:
        click.echo(
            table(["file", "from"], [[remote.path, Link(mirror).address(remote.url)] for remote in describe(name)])
        )
        return
    with DownloadProgress() as progress:
        pulled = fetch(name, progress=progress, link=Link(mirror))
    for found in pulled:
        how = "fetched" if found.fetched else "there already"
        pinned = "as pinned" if found.pinned else "not pinned"
        click.echo(f"{found.path}  {how}, sha256 {found.sha256[:12]} {pinned}")


@command.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("cases.jsonl"))
def new(path: Path) -> None:
    """Write a commented example of the jsonl format to PATH, to start your own dataset from."""
    from memx.adapters.datasets.jsonl import write_template
    from memx.cli.main import say

    write_template(path)
    say(f"memx: wrote {path}")
    say(f"  Check it with: memx datasets check {path}   Run it with: memx run --dataset jsonl --source {path}")
