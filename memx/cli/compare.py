"""``memx compare`` and ``memx gate``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memx.cli.main import say
from memx.cli.options import directory_option, where_option
from memx.text.gate import safe

if TYPE_CHECKING:
    from memx.engine.store.pairs import PairRow
    from memx.engine.store.reader import RunRow


#: What ``--group`` takes, and the groups of the four-way table that it shows.
GROUPS = {
    "flips": ("B worse", "B better"),
    "worse": ("B worse",),
    "better": ("B better",),
    "both-fail": ("both fail",),
    "both-pass": ("both pass",),
    "all": ("B worse", "B better", "both fail", "both pass"),
}


@click.command(name="compare", short_help="Read two runs of one dataset side by side.")
@click.argument("a")
@click.argument("b")
@where_option
@click.option("--group", type=click.Choice(list(GROUPS)), default="flips", show_default=True, help="Which are listed.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Questions listed; 0 for all.")
@directory_option
def command(a: str, b: str, where: str, group: str, limit: int, directory: Path) -> None:
    """Pair the questions that runs A and B both judged: how many flipped, and the stage each side gives.

    FILTER is read on the questions as B has them.
    """
    from memx.cli.table import table
    from memx.engine.store.filters import parse
    from memx.engine.store.pairs import pair_rows
    from memx.engine.store.reader import Store

    with closing(Store(directory)) as store:
        first, second = store.run(a), store.run(b)
        rows = pair_rows(store, first, second, parse(where))
    click.echo(_figures(first, second, rows))
    wanted = [row for row in rows if row.group in GROUPS[group]]
    shown = wanted[: limit or None]
    if shown:
        cells = [
            [row.question_id, _side(row.stage_a, row.cause_a, row.outcome_a),
             _side(row.stage_b, row.cause_b, row.outcome_b), row.category, row.question]
            for row in sorted(shown, key=lambda row: GROUPS[group].index(row.group))
        ]  # fmt: skip
        click.echo("\n" + table([group.rstrip("s"), "A", "B", "category", "question"], cells))
    if len(shown) < len(wanted):
        click.echo(f"{len(wanted) - len(shown)} more; --limit 0 lists all")


def _figures(a: RunRow, b: RunRow, rows: Sequence[PairRow]) -> str:
    """The four-way table, the difference with its interval, and what the two runs do not share."""
    from memx.engine.api import Paired, mcnemar_exact
    from memx.engine.store.pairs import difference, shared

    ids = {name: tuple(row.question_id for row in rows if row.group == name) for name in GROUPS["all"]}
    both, worse, better, neither = (len(ids[name]) for name in ("both pass", "B worse", "B better", "both fail"))
    pair = Paired(
        a.run_id, b.run_id, both, neither, ids["B worse"], ids["B better"], mcnemar_exact(worse, better)
    )  # fmt: skip
    _, low, high = difference(worse, better, len(rows))
    same = ", ".join(f"{name} {'yes' if agrees else 'NO'}" for name, agrees in shared(a, b).items())
    lines = [
        str(pair),
        f"95 % interval of the difference {low:+.1f} to {high:+.1f} points",
        "",
        f"{'':<8}{'B pass':>8}{'B fail':>8}",
        f"{'A pass':<8}{both:>8}{worse:>8}",
        f"{'A fail':<8}{better:>8}{neither:>8}",
        f"same: {same}",
    ]
    return safe("\n".join(lines if rows else lines[:1]), newlines=True)


def _side(stage: str | None, cause: str | None, outcome: str) -> str:
    return f"{stage}: {cause}" if cause else outcome


@click.command(name="gate", short_help="Exit 1 when run B is worse than run A by more than is allowed.")
@click.argument("a")
@click.argument("b")
@click.option("--max-regressions", type=click.IntRange(0), metavar="N", help="Questions that only A passes: at most N.")
@click.option(
    "--p", "p_value", type=click.FloatRange(0, 1), metavar="P", help="Fail a loss less likely than P by chance."
)
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
