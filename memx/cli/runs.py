"""``memx runs``: the stored runs, and those under way."""

from __future__ import annotations

import json
from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option
from memx.cli.watching import kill, watch


@click.group(name="runs", short_help="List, show, watch, end and remove runs.")
def command() -> None:
    """The runs stored in a directory."""


command.add_command(watch)
command.add_command(kill)


@command.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@directory_option
def list_(directory: Path, as_json: bool) -> None:
    """List the runs, newest first."""
    from memx.cli.table import table
    from memx.engine.last_run import run_head
    from memx.engine.store.reader import Store

    store = Store(directory)
    rows = []
    for run in store.runs():
        if as_json:
            click.echo(json.dumps(run_head(run)))
            continue
        summary = run.summary
        value = (summary.get("accuracy") or {}).get("value")
        done = f"{run.done}/{run.question_total}" if run.question_total is not None else str(run.done)
        score = "" if value is None else f"{value * 100:.1f} %"
        failed = summary.get("failed", "")
        began = f"{run.started_at:%Y-%m-%d %H:%M}"
        adapter = f"{run.adapter} (control)" if "control" in run.manifest else run.adapter
        rows.append([run.run_id, began, run.dataset, adapter, run.judge, run.state, done, score, failed])
    if rows:
        header = ["run", "began", "dataset", "adapter", "judge", "state", "asked", "score", "FAIL"]
        click.echo(table(header, rows))
    store.close()


@command.command()
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="The run's record as JSON, its questions left out.")
@directory_option
def show(run: str | None, directory: Path, as_json: bool) -> None:
    """Show the Diagnostic Summary of RUN (the newest by default) and how its cases went."""
    from memx.cli.table import table
    from memx.engine.last_run import run_head
    from memx.engine.store.reader import Store
    from memx.engine.summary import summarize
    from memx.engine.summary_text import summary_text
    from memx.text.gate import safe

    store = Store(directory)
    found = store.run(run)
    if as_json:
        click.echo(json.dumps(run_head(found), indent=2))
        return
    summary = summarize(store, found.run_id, found.summary.get("llm"), found.summary.get("judge"))
    click.echo(summary_text(found, summary))
    settings = "  ".join(f"{name} {value}" for name, value in found.settings.items() if value)
    click.echo("\n" + safe(f"settings  {settings}"))
    rows = []
    for case in store.cases(found.run_id):
        trouble = f"{case.error.step}: {case.error.message}" if case.error else "; ".join(case.findings)
        seconds = sum(case.timings_ms.values()) / 1000
        rows.append([case.case_id, case.state, case.sessions, case.turns, case.facts, f"{seconds:.1f}", trouble])
    click.echo("")
    click.echo(table(["case", "state", "sessions", "turns", "facts", "ingest s", "trouble"], rows))
    store.close()


@command.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@directory_option
def rm(runs: tuple[str, ...], directory: Path, yes: bool) -> None:
    """Remove RUNS and all they left in the store."""
    from memx.engine.store.reader import Store
    from memx.engine.store.writer import delete_run

    store = Store(directory)
    found = [store.run(name) for name in runs]
    store.close()
    for run in found:
        if not yes:
            click.confirm(
                f"Remove {run.run_id} ({run.dataset} x {run.adapter}, {run.done} questions)?", abort=True, err=True
            )
        delete_run(directory, run.run_id)
        say(f"memx: removed {run.run_id}")
