"""``memx show-fact``."""

from __future__ import annotations

from pathlib import Path

import click

from memx.cli.options import directory_option


@click.command(name="show-fact", short_help="Print the life of one stored fact, session by session.")
@click.argument("fact_id")
@click.option("--run", metavar="RUN", help="The run; the newest by default.")
@click.option("--case", metavar="CASE", help="The case, where several hold such a fact.")
@directory_option
def command(fact_id: str, run: str | None, case: str | None, directory: Path) -> None:
    """Print when FACT_ID was stored, rewritten, superseded or lost, and by which session.

    Between sessions only a run with --snapshots session can tell.
    """
    from memx.diagnose.timeline import EventKind
    from memx.engine.store.reader import Store
    from memx.errors import UnknownNameError, UsageError
    from memx.text.gate import safe

    store = Store(directory)
    found = store.run(run)
    cases = [row.case_id for row in store.cases(found.run_id) if case in (None, row.case_id)]
    if not cases:
        raise UnknownNameError("case", str(case), [row.case_id for row in store.cases(found.run_id)])
    lives = {name: store.timeline(found.run_id, name, fact_id) for name in cases}
    holding = [name for name, life in lives.items() if life]
    if not holding:
        known = {fact.fact_id for name in cases for fact in store.snapshot(found.run_id, name).facts}
        raise UnknownNameError("fact", fact_id, known)
    if len(holding) > 1:
        raise UsageError(f"{len(holding)} cases hold a fact '{fact_id}'", f"Name one: --case {holding[0]}")
    click.echo(f"{safe(fact_id)} in {holding[0]}, run {found.run_id}")
    for event in lives[holding[0]]:
        when = f"after session {event.session_id}" if event.session_id else event.label
        if event.new is None:
            click.echo(f"  {safe(when)}: LOST")
            continue
        by = f" by {safe(', '.join(event.by))}" if event.by else ""
        status = event.new.status if event.kind is EventKind.BORN else f"{event.kind}{by}, {event.new.status}"
        click.echo(f"  {safe(when)}: {'stored, ' if event.kind is EventKind.BORN else ''}{status}")
        if event.old is not None and event.kind is EventKind.REWRITTEN:
            click.echo(f"    - {safe(event.old.content)}")
        if event.kind in (EventKind.BORN, EventKind.REWRITTEN):
            click.echo(f"    + {safe(event.new.content)}")
    store.close()
