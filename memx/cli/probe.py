"""``memx probe``."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memx.cli.main import say
from memx.cli.options import directory_option

if TYPE_CHECKING:
    from memx.engine.settings import RunSettings


@click.command(name="probe", short_help="Ask failed questions again with one thing changed.")
@click.argument("run", required=False)
@click.option("--question", metavar="Q", help="One failed question; all of the run by default.")
@click.option("--answer-model", metavar="MODEL|extractive|none", help="Instead of the run's own.")
@click.option("--judge-model", metavar="MODEL|offline", help="Instead of the run's own.")
@click.option("--other-judge", metavar="MODEL|offline", help="A second judge for the probe that changes the judge.")
@click.option("--base-url", default="", metavar="URL", help="Of an OpenAI-compatible endpoint.")
@click.option("--max-calls", type=int, metavar="N", help="Stop asking models after N calls.")
@click.option(
    "--concurrency", type=click.IntRange(1), metavar="N", help="Questions side by side; the run's own by default."
)
@click.option("--yes", is_flag=True, help="Do not ask before models are paid.")
@directory_option
def command(
    run: str | None,
    question: str | None,
    answer_model: str | None,
    judge_model: str | None,
    other_judge: str | None,
    base_url: str,
    max_calls: int | None,
    concurrency: int | None,
    yes: bool,
    directory: Path,
) -> int:
    """Ask failed questions of RUN (the newest by default) again: with the gold evidence alone, with 2k and 4k facts,
    with dates and speakers, without stale facts. The first change that turns FAIL to PASS is the cause.
    """
    from memx.engine.settings import RunSettings
    from memx.engine.store.reader import Store

    store = Store(directory)
    found = store.run(run)
    store.close()
    settings = RunSettings.from_dict(found.settings)
    settings = replace(
        settings,
        answer_model=answer_model or settings.answer_model,
        judge_model=judge_model or settings.judge_model,
        base_url=base_url or settings.base_url,
        model_concurrency=concurrency or settings.model_concurrency,
        max_calls=max_calls,
    )
    return run_and_print(directory, found.run_id, settings, question=question, other_judge=other_judge, ask=not yes)


def run_and_print(
    directory: Path,
    run_id: str,
    settings: RunSettings,
    *,
    question: str | None = None,
    other_judge: str | None = None,
    ask: bool = False,
) -> int:
    """Probe the failed questions of a run and print which change turns each; returns the exit code.

    Args:
        ask: say the price and wait for a yes before models are paid, where there is a terminal to ask at.
    """
    from memx.cli.interrupts import repeatable
    from memx.cli.progress import CountProgress, say_notice
    from memx.cli.table import table
    from memx.diagnose.probes import summarize
    from memx.engine.estimate import probe_estimate
    from memx.engine.probing import first_flips, planned, run_probes
    from memx.engine.roles import build_judge, build_models, build_run_answerer
    from memx.engine.side_by_side import side_by_side
    from memx.engine.store.reader import Store
    from memx.llm.tokens import estimate_tokens

    store = Store(directory)
    dataset = store.run(run_id).dataset
    plans = planned(store, run_id, question, other_judge=other_judge is not None)
    store.close()
    probes = [probe for plan in plans for probe in plan.probes]
    texts = [text for plan in plans for text in (plan.trace.question.text, plan.trace.question.gold)]
    price = probe_estimate(probes, estimate_tokens("".join(texts)) // len(plans), settings, other_judge)
    say(f"memx: {len(plans)} failed questions, {len(probes)} probes: {price.words()}")
    if price.calls and ask and sys.stdin.isatty():
        click.confirm("Ask them?", abort=True, err=True)
    stop = threading.Event()
    models = build_models(settings, directory, stop, say_notice)
    judge, answerer = build_judge(settings, models, dataset), build_run_answerer(settings, models, dataset)
    second = build_judge(replace(settings, judge_model=other_judge), models, dataset) if other_judge else None
    with CountProgress("probing", len(plans)) as progress, repeatable():
        judge.preflight()
        answerer.preflight()
        probed = side_by_side(
            lambda plan: run_probes(plan, answerer, judge, second), plans, settings.model_concurrency, stop
        )
        results = []
        for group in probed:
            results += group
            progress.advance()
    rows = [[question_id, kind] for question_id, kind in first_flips(results)]
    click.echo(table(["question", "first change that turns it to PASS"], rows))
    click.echo("\n" + "\n".join(summarize(results).lines()))
    paid = models.summary()
    if paid["calls"] or paid["cached"]:
        cost = "cost not known" if paid["cost"] is None else f"{paid['cost']:.4f} USD"
        say(f"memx: {paid['calls']} model calls, {paid['cached']} from the cache, {cost}")
    return 3 if any(result.verdict.outcome == "UNJUDGED" for result in results) else 0
