"""``memx mark``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memx.cli.main import say
from memx.cli.options import directory_option, where_option

if TYPE_CHECKING:
    from memx.engine.store.marks import Change, Marks
    from memx.engine.store.reader import RunRow, Store

#: The values of ``memx.engine.store.marks.Mark``, written out so that the help imports no store.
MARKS = ("open", "seen", "fix", "wont", "nobug")


@click.command(name="mark", short_help="Mark or annotate failed questions, as in memx debug.")
@click.argument("run", required=False)
@where_option
@click.option("--question", "questions", multiple=True, metavar="ID", help="A question; may be repeated.")
@click.option("--as", "mark", type=click.Choice(MARKS), help="What is decided about them.")
@click.option("--note", metavar="TEXT", help="A note in Markdown in place of the one that stands; '' removes it.")
@click.option("--undo", is_flag=True, help="Take back the last batch of marks and notes instead.")
@click.option("--dry-run", is_flag=True, help="Print what would change and write nothing.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Changes listed; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="Every change as one JSON object a line.")
@directory_option
def command(
    run: str | None,
    where: str,
    questions: tuple[str, ...],
    mark: str | None,
    note: str | None,
    undo: bool,
    dry_run: bool,
    limit: int,
    as_json: bool,
    directory: Path,
) -> None:
    """Mark the questions of RUN (the newest by default) that FILTER keeps, or those named by --question.

    A mark belongs to a question of a dataset as one memory system answers it, so it outlives the run.
    """
    from memx.engine.store.marks import Mark, Marks
    from memx.engine.store.reader import Store
    from memx.errors import UsageError

    if undo and (where or questions or mark or note is not None):
        raise UsageError("--undo takes back the last batch whole", "Give it alone, or with --dry-run.")
    if not undo and mark is None and note is None:
        raise UsageError("memx mark needs something to put", f"Give --as {'|'.join(MARKS)}, --note TEXT, or --undo.")
    if not undo and not where.strip() and not questions:
        raise UsageError("memx mark needs to know which questions", "Give --where verdict:fail, or --question ID.")
    with closing(Store(directory)) as store:
        found = store.run(run)
        marks = Marks(store)
        if undo:
            changes = marks.undoing(found)
            if not dry_run:
                marks.undo(found)
            _print(changes, limit, as_json)
            touched = _questions(changes)
            done = f"{'would be ' if dry_run else ''}taken back for {touched}" if touched else "nothing to take back"
            say(f"memx: run {found.run_id}: {done}; {_progress(marks, found)}")
            return
        ids = _chosen(store, found, where, questions)
        changes = marks.changes(found, ids, Mark(mark) if mark else None, note)
        if not dry_run:
            marks.apply(found, changes)
        _print(changes, limit, as_json)
        would = "would be " if dry_run else ""
        touched = _questions(changes)
        say(
            f"memx: run {found.run_id}: {touched} of {len(ids)} questions {would}changed, "
            f"{len(ids) - touched} stood so already; {_progress(marks, found)}"
        )


def _chosen(store: Store, run: RunRow, where: str, questions: Sequence[str]) -> list[str]:
    """Ids of the questions that the filter keeps, narrowed to those that are named.

    Raises:
        UsageError: the filter cannot be read, or a named question is not in the run.
    """
    from memx.engine.store.filters import parse

    for question_id in questions:
        store.find_question(question_id, run.run_id)
    named = set(questions)
    return [i for i in store.matching(run.run_id, parse(where)) if not named or i in named]


def _questions(changes: Sequence[Change]) -> int:
    return len({change.question_id for change in changes})


def _progress(marks: Marks, run: RunRow) -> str:
    """How far the triage of the run's FAILs is."""
    counts = marks.progress(run)
    total = sum(counts.values())
    decided = {str(mark): n for mark, n in counts.items() if mark != "open" and n}
    words = ", ".join(f"{n} {mark}" for mark, n in decided.items())
    return f"{sum(decided.values())} of {total} FAILs triaged{f' ({words})' if words else ''}"


def _print(changes: Sequence[Change], limit: int, as_json: bool) -> None:
    from memx.cli.table import table

    if as_json:
        for change in changes:
            click.echo(json.dumps(asdict(change)))
        return
    shown = changes[: limit or None]
    if shown:
        rows = [[c.question_id, c.kind, c.old or "(none)", c.new or "(none)"] for c in shown]
        click.echo(table(["question id", "what", "was", "is"], rows))
    if len(shown) < len(changes):
        click.echo(f"{len(changes) - len(shown)} more; --limit 0 lists all")
