"""``memx run``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memx.cli.main import say
from memx.cli.options import dataset_options, directory_option, judge_options, pairs

if TYPE_CHECKING:
    from memx.engine.events import Listener
    from memx.engine.runner import Ended
    from memx.engine.settings import RunSettings


@click.command(name="run", short_help="Run a benchmark on a memory system and diagnose what failed.")
@click.option("--dataset", default="demo", show_default=True, help="demo, locomo, ... or module.path:Class.")
@click.option("--source", type=click.Path(path_type=Path), help="The dataset's file, where it does not ship with memx.")
@click.option("--adapter", default="local", show_default=True, help="The memory system: a name or module.path:Class.")
@click.option("--adapter-option", "adapter_options", multiple=True, metavar="K=V", help="An option of the adapter.")
@click.option("--retrieval-mode", metavar="MODE", help="Short for --adapter-option mode=MODE.")
@click.option("--rebuild-cache", is_flag=True, help="Short for --adapter-option rebuild_cache=on.")
@click.option("--dataset-option", multiple=True, metavar="K=V", help="An option of the dataset.")
@click.option("--captions", type=click.Choice(["on", "off", "labelled"]), help="What becomes of image captions.")
@click.option("--skip-bad", is_flag=True, help="Leave unusable records out and count them, instead of stopping.")
@click.option("--limit", type=int, metavar="N", help="Ask exactly N questions.")
@click.option("--random", "random_", is_flag=True, help="Draw the questions at random instead of from the start.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw; printed with it.")
@click.option("--sample", type=click.Choice(["stratified"]), help="Draw in proportion to the categories.")
@click.option("--category", "categories", multiple=True, help="Ask only this category; may be repeated.")
@click.option("--question-ids", type=click.Path(path_type=Path), metavar="FILE", help="Ask only the ids in FILE.")
@click.option("--top-k", type=int, default=10, show_default=True, help="How many facts the candidate may see.")
@judge_options
@click.option("--answer-model", default="none", show_default=True, metavar="MODEL|extractive|none",
              help="Who answers from what was retrieved; none judges the retrieved text.")  # fmt: skip
@click.option("--diagnose-model", default="none", show_default=True, metavar="MODEL|none",
              help="Who is asked, last, which stored fact carries an evidence turn.")  # fmt: skip
@click.option("--context-budget", type=int, metavar="TOKENS", help="Tokens of retrieved text the candidate may see.")
@click.option("--ready-timeout", type=float, default=180.0, show_default=True, metavar="SECONDS",
              help="The longest that one call to the memory system may take.")  # fmt: skip
@click.option("--concurrency", type=int, default=4, show_default=True, help="Cases side by side.")
@click.option("--executor", default="threads", show_default=True, metavar="threads|processes|dask[:ADDRESS]",
              help="Who works off the cases: threads, processes of this machine, or a Dask cluster.")  # fmt: skip
@click.option("--snapshots", type=click.Choice(["case", "session"]), default="case", show_default=True,
              help="Snapshot the store around the case, or after each session too.")  # fmt: skip
@click.option("--skip-ingest", is_flag=True, help="Query what an earlier run stored; needs --entity-prefix.")
@click.option("--entity-prefix", default="", help="Namespace in the memory system, instead of one of this run's own.")
@click.option("--cleanup", is_flag=True, help="Delete what the run stored in the memory system, case by case.")
@click.option("--resume", metavar="RUN", help="Go on with a stored run by its own settings; caps may be raised.")
@click.option("--with-controls", is_flag=True,
              help="Then ask the same questions of the control arms, and tag each question.")  # fmt: skip
@click.option("--control", "controls", multiple=True, metavar="ARM",
              help="Only this control arm; may be repeated.")  # fmt: skip
@click.option("--probe", is_flag=True, help="Then ask the failed questions again with one thing changed (memx probe).")
@click.option("--optimize", is_flag=True, help="Then learn the built-in memory's signal weights (mode full).")
@click.option("--dry-run-weights", is_flag=True, help="With --optimize: print the weights, write nothing.")
@click.option(
    "--step-size",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.02,
    show_default=True,
    help="Of --optimize: the most per step.",
)
@click.option("--fail-under", type=float, metavar="SCORE", help="Exit 1 when the accuracy is below SCORE (0 to 1).")
@click.option("--detach", is_flag=True, help="Run in the background; memx runs watch follows it.")
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON instead of the summary.")
@click.option("--quiet", is_flag=True, help="No progress, no summary; problems only.")
@directory_option
def command(
    *,
    directory: Path,
    source: Path | None,
    adapter_options: tuple[str, ...],
    retrieval_mode: str | None,
    dataset_option: tuple[str, ...],
    captions: str | None,
    skip_bad: bool,
    rebuild_cache: bool,
    random_: bool,
    question_ids: Path | None,
    judge_prompt: Path | None,
    resume: str | None,
    with_controls: bool,
    controls: tuple[str, ...],
    probe: bool,
    optimize: bool,
    dry_run_weights: bool,
    step_size: float,
    fail_under: float | None,
    detach: bool,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Run a benchmark on a memory system: ingest, ask, judge, and diagnose every failure.

    With no options: the bundled demo, the built-in memory, offline, in under a minute.
    """
    from memx.adapters.datasets.selection import read_question_ids
    from memx.cli.progress import RunProgress
    from memx.engine.background import RUN_ID_VARIABLE
    from memx.engine.controls import check_arms
    from memx.engine.settings import RunSettings
    from memx.engine.setup import prepare
    from memx.errors import UsageError

    if optimize and (given["adapter"], retrieval_mode or "") != ("local", "full") and not resume:
        raise UsageError("--optimize learns the weights of local in mode full", "Add --retrieval-mode full.")
    if dry_run_weights and not optimize:
        raise UsageError("--dry-run-weights only shows what --optimize would learn", "Add --optimize.")
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise UsageError(f"--fail-under is a score from 0 to 1, not {fail_under:g}")
    arms = check_arms(controls) if with_controls or controls else ()
    if detach:
        return _detach(directory, resume)
    options = pairs(adapter_options, "--adapter-option")
    if retrieval_mode:
        options["mode"] = retrieval_mode
    if rebuild_cache:
        options["rebuild_cache"] = "on"
    settings = RunSettings(
        **given | {"sample": given["sample"] or ""},
        source=str(source.absolute()) if source else "",
        adapter_options=options,
        dataset_options=dataset_options(dataset_option, captions, skip_bad),
        random=random_,
        judge_prompt=str(judge_prompt.absolute()) if judge_prompt else "",
        question_ids=read_question_ids(question_ids) if question_ids else (),
    )
    with RunProgress(quiet=quiet) as progress:
        run_id = os.environ.pop(RUN_ID_VARIABLE, None)
        runner = prepare(settings, directory, listener=progress, resume=resume, run_id=run_id)
        if not quiet:
            for line in runner.opening_lines():
                say(line)
        ended = runner.run()
    if optimize and ended.state == "finished":
        _optimize(directory, ended.run_id, step_size, settings.seed, write=not dry_run_weights)
    if arms and ended.state == "finished":
        ended = _with_controls(directory, ended, runner.settings, arms, quiet=quiet)
    code = _report(directory, ended, fail_under=fail_under, as_json=as_json, quiet=quiet, with_controls=bool(arms))
    if probe and ended.state == "finished" and ended.summary.failed:
        from memx.cli.probe import run_and_print

        run_and_print(directory, ended.run_id, runner.settings, ask=True)
    return code


def _detach(directory: Path, resume: str | None) -> int:
    """Start the same command in the background, and say how to follow it."""
    from memx.engine.background import EndedAtOnce, start_detached

    # The arguments after "run" as they were typed.
    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    try:
        started = start_detached(arguments, directory, resume)
    except EndedAtOnce as ended:
        click.echo(ended.message, nl=False, err=True)
        return ended.exit_code
    click.echo(started.run_id)
    say(f"memx: run {started.run_id} goes on in the background, process {started.pid}; it writes to {started.log}")
    say(f"  Follow it: memx runs watch {started.run_id}")
    say(f"  End it:    memx runs kill {started.run_id}")
    return 0


def _with_controls(
    directory: Path, ended: Ended, settings: RunSettings, arms: tuple[str, ...], *, quiet: bool
) -> Ended:
    """Run the control arms after a run; the run with what they say of it, interrupted where they were."""
    from memx.cli.progress import RunProgress
    from memx.engine.controls import run_controls

    def run_arm(run: Callable[[Listener], Ended]) -> Ended:
        with RunProgress(quiet=quiet) as progress:
            return run(progress)

    if not quiet:
        count = ended.summary.questions
        say(f"memx: control arms on the same {count} questions: {', '.join(arms)}; finished ones are used again")
    done = run_controls(directory, ended.run_id, settings, arms, run_arm=run_arm)
    return replace(ended, summary=done.summary, state="interrupted" if done.interrupted else ended.state)


def _optimize(directory: Path, run_id: str, step_size: float, seed: int, *, write: bool) -> None:
    from memx.engine.optimize import learn_from_run, lesson_text, write_weights
    from memx.engine.store.reader import Store

    store = Store(directory)
    lesson = learn_from_run(store, store.run(run_id), step_size=step_size, seed=seed)
    store.close()
    say(lesson_text(lesson))
    if write:
        path = directory / "weights.json"
        write_weights(lesson, path)
        say(f"memx: wrote {path}; use it with --adapter-option weights={path}")


def _report(
    directory: Path, ended: Ended, *, fail_under: float | None, as_json: bool, quiet: bool, with_controls: bool
) -> int:
    from memx.engine.last_run import run_head
    from memx.engine.store.reader import Store
    from memx.engine.summary_text import summary_text

    store = Store(directory)
    run = store.run(ended.run_id)
    if as_json:
        click.echo(json.dumps(run_head(run), indent=2, ensure_ascii=True))
    elif not quiet:
        click.echo(summary_text(run, ended.summary))
    store.close()
    if ended.state == "interrupted":
        say(f"memx: interrupted; {ended.summary.questions} finished questions are saved in {directory}")
        say(f"  Go on with: memx run --resume {ended.run_id}{' --with-controls' if with_controls else ''}")
        return 130
    value = ended.summary.accuracy.value
    if not ended.complete:
        summary = ended.summary
        if summary.passed + summary.failed == 0:
            say("memx: no question could be evaluated")
        say(f"memx: {summary.errors} ERROR and {summary.unjudged} UNJUDGED; memx debug shows the step that broke")
        say(f"  Ask again what is open, once that is mended: memx run --resume {ended.run_id}")
        return 3
    if fail_under is not None and (value is None or value < fail_under):
        shown = "none" if value is None else f"{value:.4f}"
        say(f"memx: accuracy {shown} is below --fail-under {fail_under:g}")
        return 1
    return 0
