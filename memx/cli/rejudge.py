"""``memx rejudge``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from memx.cli.main import say
from memx.cli.options import directory_option, judge_options


@click.command(name="rejudge", short_help="Judge the stored answers of a run again, with another judge.")
@click.argument("run", required=False)
@judge_options
@directory_option
def command(
    run: str | None,
    directory: Path,
    judge_model: str,
    base_url: str,
    votes: int,
    confirm_fails: bool,
    strict: bool,
    judge_prompt: Path | None,
    model_concurrency: int,
    max_calls: int | None,
    max_cost: float | None,
) -> int:
    """Judge the stored candidates of RUN (the newest by default) again; nothing is ingested or queried.

    The verdicts and diagnoses become a run of their own, and every verdict that changed is listed.
    """
    import threading

    from memx.cli.interrupts import repeatable
    from memx.cli.progress import RunProgress
    from memx.cli.table import table
    from memx.engine.estimate import diagnose_estimate, rejudge_estimate
    from memx.engine.rejudge import rejudge
    from memx.engine.roles import build_judge, build_model_rung, build_models
    from memx.engine.settings import RunSettings
    from memx.engine.store.reader import Store, Where
    from memx.engine.summary_text import summary_text

    store = Store(directory)
    old = store.run(run)
    settings = replace(
        RunSettings.from_dict(old.settings),
        judge_model=judge_model,
        base_url=base_url,
        votes=votes,
        confirm_fails=confirm_fails,
        strict=strict,
        judge_prompt=str(judge_prompt or ""),
        model_concurrency=model_concurrency,
        max_calls=max_calls,
        max_cost=max_cost,
    )
    price = rejudge_estimate(store, old, settings)
    if settings.diagnose_model not in ("", "none"):
        price += diagnose_estimate(settings.diagnose_model, store.count(old.run_id, Where("candidate IS NOT NULL")))
    say(f"memx: {price.words()}")
    stop = threading.Event()
    again = f"memx rejudge {old.run_id} and the same options"
    with RunProgress() as progress, repeatable(again):
        models = build_models(settings, directory, stop, progress)
        judge = build_judge(settings, models, old.dataset)
        done = rejudge(
            directory,
            old.run_id,
            judge,
            settings,
            concurrency=model_concurrency,
            listener=progress,
            stop=stop,
            llm_counts=models.summary,
            model_rung=build_model_rung(settings, models),
        )
    click.echo(summary_text(store.run(done.run_id), done.summary))
    click.echo(f"\n{len(done.changes)} verdicts changed against {old.run_id}")
    rows = [[c.question_id, f"{c.before} -> {c.after}", c.why] for c in done.changes]
    if rows:
        click.echo(table(["question", "verdict", "why"], rows))
    failed = store.count(done.run_id, Where("outcome = 'UNJUDGED' AND error IS NOT NULL"))
    store.close()
    if done.state == "interrupted":
        say(f"memx: interrupted; what was judged by then is in run {done.run_id}")
        say(f"  Judge the rest with {again}: the judge's replies are kept and not asked for again.")
        return 130
    if failed:
        say(f"memx: the judge failed on {failed} questions")
        say(f"  Once it answers: {again}; its replies are kept.")
        return 3
    return 0
