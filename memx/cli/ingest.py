"""``memx ingest``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memx.cli.main import say
from memx.cli.options import directory_option

if TYPE_CHECKING:
    from memx.adapters.sources.contract import Source

SOURCES = ("obsidian", "github")


@click.command(name="ingest", short_help="Take notes or a repository into the built-in memory.")
@click.argument("source", type=click.Choice(SOURCES))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Read and count, keep nothing.")
@click.option("--json", "as_json", is_flag=True, help="The counts as JSON.")
@directory_option
def command(source: str, path: Path, dry_run: bool, as_json: bool, directory: Path) -> None:
    """Take PATH into the built-in memory, which memx ask reads.

    obsidian: the folder of a vault. github: a local clone, or exported issues as JSON; nothing is fetched. Ingesting
    the same PATH again takes over what changed.
    """
    from memx.engine.knowledge import Knowledge
    from memx.text.gate import safe

    opened = _opened(source, path)
    stats = opened.stats()
    for finding in opened.findings[:10]:
        say(f"memx: {finding}")
    if len(opened.findings) > 10:
        say(f"memx: and {len(opened.findings) - 10} more of the kind")
    if as_json:
        click.echo(json.dumps(stats))
    else:
        for name, value in stats.items():
            click.echo(safe(f"{name:<14}{value}"))
    if dry_run:
        return
    knowledge = Knowledge(directory)
    done = knowledge.put(source, str(opened.root), opened.iter_records())
    say(f"memx: {done.added} records added, {done.changed} changed, {done.removed} removed, {done.unchanged} as before")
    knowledge.indexed(progress=IndexingProgress())
    say('memx: next: memx ask "a question"')


def _opened(source: str, path: Path) -> Source:
    from memx.adapters.sources.github import GitHubSource
    from memx.adapters.sources.obsidian import ObsidianVault

    kinds: dict[str, type[Source]] = {"obsidian": ObsidianVault, "github": GitHubSource}
    return kinds[source](path)


class IndexingProgress:
    """One line with the time left that moves in a terminal; elsewhere one at the end."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if not sys.stderr.isatty():
            if done == total:
                say(f"memx: indexed {total} records")
            return
        left = (time.monotonic() - self._started) / done * (total - done) if done else 0.0
        minutes, seconds = divmod(round(left), 60)
        words = f"memx: indexing {done}/{total}{f'  {minutes}:{seconds:02} left' if 0 < done < total else ''}"
        click.echo(f"\r{words:<50}", nl=done == total, err=True)
