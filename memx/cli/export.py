"""``memx export``."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option, where_option

#: The keys of ``memx.engine.export.FORMATS``, written out so that the help imports no store.
FORMATS = ("json", "result", "md", "html", "csv", "junit")


@click.command(name="export", short_help="Write a run to a file to read, hand on or feed to a program.")
@click.argument("run", required=False)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="json", show_default=True)
@where_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of stdout; written atomically.")
@directory_option
def command(run: str | None, format_: str, where: str, output: Path | None, directory: Path) -> None:
    """Write RUN (the newest by default) to stdout or a file.

    json, result, csv and junit hold every question; md and html, which people read, those that failed or broke. With
    --where all hold what the filter keeps. Beside a result file its manifest is written.
    """
    from memx.engine import export
    from memx.engine.last_run import write_atomically
    from memx.engine.store.filters import parse
    from memx.engine.store.reader import Store
    from memx.text.gate import safe

    with closing(Store(directory)) as store:
        run_id = store.run(run).run_id
        chunks = export.FORMATS[format_](store, run_id, parse(where) if where.strip() else None)
        if output is None:
            shown = sys.stdout.isatty()
            for chunk in chunks:
                # A terminal gets texts that it cannot act on; color keeps click from cutting them out elsewhere.
                click.echo(safe(chunk, newlines=True) if shown else chunk, nl=False, color=True)
            return
        write_atomically(output.absolute(), chunks)
        say(f"memx: wrote {output}")
        if format_ == "result":
            manifest = output.with_name(f"{output.name}.manifest.json")
            write_atomically(manifest.absolute(), iter([export.result_manifest(store, run_id)]))
            say(f"memx: wrote {manifest}")
