"""``memx export``."""

from __future__ import annotations

from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option


@click.command(name="export", short_help="Write a run as JSON or CSV.")
@click.argument("run", required=False)
@click.option("--format", "format_", type=click.Choice(["json", "csv"]), default="json", show_default=True)
@click.option("--where", default="", metavar="FILTER", help="Only the questions that the filter keeps.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of stdout; written atomically.")
@directory_option
def command(run: str | None, format_: str, where: str, output: Path | None, directory: Path) -> None:
    """Write RUN (the newest by default) to stdout or a file."""
    from memx.engine.export import FORMATS
    from memx.engine.last_run import write_atomically
    from memx.engine.store.filters import parse
    from memx.engine.store.reader import Store

    store = Store(directory)
    chunks = FORMATS[format_](store, store.run(run).run_id, parse(where) if where else None)
    if output is not None:
        write_atomically(output.absolute(), chunks)
        say(f"memx: wrote {output}")
    else:
        for chunk in chunks:
            click.echo(chunk, nl=False)
    store.close()
