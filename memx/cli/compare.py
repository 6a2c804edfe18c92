"""``memx compare`` and ``memx gate``."""

from __future__ import annotations

from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option


@click.command(name="compare", short_help="Read two runs of one dataset side by side.")
@click.argument("a")
@click.argument("b")
@click.option("--limit", type=int, default=20, show_default=True, help="Flips listed; 0 for all.")
@directory_option
def command(a: str, b: str, limit: int, directory: Path) -> None:
    """Pair the questions that runs A and B both judged: how many flipped, and the stage each side gives."""
    from memx.cli.table import table
    from memx.engine.api import Run, paired
    from memx.engine.store.reader import Store

    pair = paired(Run.load(a, directory), Run.load(b, directory))
    click.echo(str(pair))
    store = Store(directory)
    rows = []
    for question_id in [*pair.only_a, *pair.only_b][: limit or None]:
        sides = [store.trace(run_id, question_id) for run_id in (pair.a, pair.b)]
        shown = [
            f"{side.diagnosis.stage}: {side.diagnosis.cause}" if side.diagnosis else str(side.verdict.outcome)
            for side in sides
        ]
        rows.append([question_id, *shown, sides[0].question.text])
    store.close()
    if rows:
        click.echo("\n" + table(["flipped", "A", "B", "question"], rows))
        left = len(pair.only_a) + len(pair.only_b) - len(rows)
        if left:
            click.echo(f"{left} more; --limit 0 lists all")


@click.command(name="gate", short_help="Exit 1 when run B is worse than run A by more than is allowed.")
@click.argument("a")
@click.argument("b")
@click.option("--max-regressions", type=int, metavar="N", help="Questions that only A passes: at most N.")
@click.option("--p", "p_value", type=float, metavar="P", help="Fail a loss less likely than P by chance.")
@directory_option
def gate(a: str, b: str, max_regressions: int | None, p_value: float | None, directory: Path) -> int:
    """Compare run B with run A for CI: exit 0 when B holds, 1 when it does not.

    With --max-regressions alone, more regressions fail; with --p alone, a loss that chance explains with a probability
    (exact McNemar) below P fails; with both, both must be so.
    """
    from memx.engine.api import Run, paired
    from memx.errors import UsageError

    if max_regressions is None and p_value is None:
        raise UsageError("memx gate needs a limit", "Give --max-regressions N, --p P, or both.")
    pair = paired(Run.load(a, directory), Run.load(b, directory))
    click.echo(str(pair))
    many = max_regressions is not None and len(pair.only_a) > max_regressions
    unlikely = p_value is not None and len(pair.only_a) > len(pair.only_b) and pair.p < p_value
    failed = (many or max_regressions is None) and (unlikely or p_value is None)
    say(f"memx: gate {'missed' if failed else 'held'}: {len(pair.only_a)} regressions, p = {pair.p:.3g}")
    return 1 if failed else 0
