"""``memx debug``: the terminal UI over the run store, or one record as plain text."""

from __future__ import annotations

import io
import os
import sys
from contextlib import closing
from pathlib import Path

import click


@click.command("debug")
@click.argument("question_id", required=False)
@click.option("--run", "run_id", metavar="RUN", help="Run id or the beginning of one; the newest by default.")
@click.option(
    "--dir", "directory", envvar="MEMX_DIR", default=".memx", show_default=True, type=click.Path(path_type=Path),
    help="Directory of the run store.",
)  # fmt: skip
@click.option("--plain", is_flag=True, help="Print one record instead of opening the UI.")
@click.option("--web", is_flag=True, help="Serve the UI to a browser of this machine, behind a token (extra web).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Of --web.")
def command(
    question_id: str | None, run_id: str | None, directory: Path, plain: bool, web: bool, port: int
) -> int | None:
    """Walk through the failures of a run by keyboard.

    With QUESTION_ID, open there: in the newest run that has it, or in RUN. With --plain, or when the output is no
    terminal, print that record, or the first FAIL of the run.
    """
    if web:
        return _serve(directory, run_id, question_id, port, plain=plain)
    # Textual draws on stderr, so all three must be the terminal; the server of --web draws by a driver of its own.
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if plain or not (terminal or "TEXTUAL_DRIVER" in os.environ):
        _print(directory, run_id, question_id)
        return None
    # Textual draws at most so often a second; at its usual 60 a key is answered up to 17 ms late, twice.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from memx.tui.app import debug

    return debug(directory, run_id=run_id, question_id=question_id)


def _serve(directory: Path, run_id: str | None, question_id: str | None, port: int, *, plain: bool) -> int:
    from memx.cli.main import say
    from memx.engine.store.reader import Store
    from memx.errors import UsageError

    if plain:
        raise UsageError("--web and --plain exclude each other")
    from memx.tui.web import serve

    with closing(Store(directory)) as store:
        # Said here and now, not in a browser.
        if question_id is not None:
            store.find_question(question_id, run_id)
        else:
            store.run(run_id)
    arguments = ["--dir", str(directory.absolute()), *(["--run", run_id] if run_id else [])]

    def tell(address: str) -> None:
        say(f"memx: open {address}")
        say("  It works on this machine alone, for whoever has the address. Ctrl-C ends it.")

    return serve([*arguments, *([question_id] if question_id else [])], port, tell)


def _print(directory: Path, run_id: str | None, question_id: str | None) -> None:
    from memx.cli.record import first_failure, record_text
    from memx.engine.store.reader import Store

    with closing(Store(directory)) as store:
        if question_id is None:
            run = store.run(run_id)
            question_id = first_failure(store, run)
        else:
            run, question_id = store.find_question(question_id, run_id)
        text = record_text(store, run, question_id)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that knows ASCII alone gets the rest written out instead of an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    click.echo(text, nl=False)
