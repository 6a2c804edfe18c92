"""``memx runs watch`` and ``memx runs kill``: runs that another process makes."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memx.cli.main import say
from memx.cli.options import directory_option

if TYPE_CHECKING:
    from memx.engine.store.reader import RunRow, Store

#: Seconds between two looks at the store.
_LOOK_S = 0.5


@click.command()
@click.argument("run", required=False)
@click.option("--quiet", is_flag=True, help="No progress, the summary alone.")
@directory_option
def watch(run: str | None, directory: Path, quiet: bool) -> int:
    """Follow RUN (the newest by default) until it ends, then print its summary.

    Ctrl-C ends the watching, never the run.
    """
    from memx.cli.progress import RunProgress
    from memx.engine.events import RunStarted
    from memx.engine.store.reader import Store

    with closing(Store(directory)) as store:
        found = store.run(run)
        try:
            with RunProgress(quiet=quiet) as progress:
                if found.state == "running":
                    progress(RunStarted(found.run_id, found.question_total, found.done))
                while found.state == "running":
                    progress.seen(found.done, *_state_of(store, found))
                    time.sleep(_LOOK_S)
                    found = store.run(found.run_id)
        except KeyboardInterrupt:
            say(f"memx: the watching ends, run {found.run_id} goes on")
            say(f"  memx runs kill {found.run_id} ends it")
            return 130
        return _ended(store, found)


def _state_of(store: Store, run: RunRow) -> tuple[Counter[str], dict[str, int]]:
    """Verdicts so far, and the cases that are being ingested with their sessions."""
    ingesting = {case.case_id: case.sessions for case in store.cases(run.run_id) if case.state == "ingesting"}
    return Counter(store.facets(run.run_id, "outcome")), ingesting


def _ended(store: Store, run: RunRow) -> int:
    from memx.engine.summary import summarize
    from memx.engine.summary_text import summary_text

    summary = summarize(store, run.run_id, run.summary.get("llm"), run.summary.get("judge"))
    click.echo(summary_text(run, summary))
    return 0 if run.state == "finished" and not store.has_errors(run.run_id) else 3


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--patience", type=float, metavar="SECONDS", help="How long each may take to end by itself.")
@directory_option
def kill(runs: tuple[str, ...], directory: Path, patience: float | None) -> None:
    """End RUNS that another process makes, as Ctrl-C would; one that does not end is killed.

    What was finished is kept, and each can be resumed.
    """
    from memx.engine.background import PATIENCE_S, kill_run
    from memx.engine.store.reader import Store

    with closing(Store(directory)) as store:
        ids = [store.run(name).run_id for name in runs]
    for run_id in ids:
        clean = kill_run(directory, run_id, PATIENCE_S if patience is None else patience)
        with closing(Store(directory)) as store:
            done = store.run(run_id).done
        how = "ended" if clean else "did not end by itself and was killed"
        say(f"memx: run {run_id} {how}; {done} finished questions are saved")
        say(f"  Go on with: memx run --resume {run_id}")
