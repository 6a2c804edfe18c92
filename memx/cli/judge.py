"""``memx judge``."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import click

from memx.cli.main import say
from memx.cli.options import directory_option, judge_options


@click.command(name="judge", short_help="Judge a file of answers; one line back for each.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@judge_options
@click.option("--dataset", default="", help="Judge by the rules of this dataset (the prompts of a judge model).")
@directory_option
def command(file: Path, dataset: str, directory: Path, **given: Any) -> int:
    """Judge each line {"question", "gold", "candidate", "category"} of FILE (JSON lines; - for standard input).

    Each is written back on stdout, in order, with "verdict", "decider" and "why" added. The question may be empty; a
    category of "abstention" or "adversarial", or "abstention": true, is passed by a refusal only.
    """
    from memx.cli.interrupts import repeatable
    from memx.cli.progress import say_notice
    from memx.engine.judges.lines import judge_line, read_lines
    from memx.engine.roles import build_judge, build_models
    from memx.engine.settings import RunSettings
    from memx.engine.side_by_side import side_by_side
    from memx.model import Outcome

    prompt = given.pop("judge_prompt")
    settings = RunSettings(**given, judge_prompt=str(prompt or ""))
    lines = read_lines(file)
    stop = threading.Event()
    models = build_models(settings, directory, stop, say_notice)
    judge = build_judge(settings, models, dataset)
    counts: dict[str, int] = {}
    failed = 0
    with repeatable():
        judge.preflight()
        judged = side_by_side(lambda line: judge_line(judge, line), lines, settings.model_concurrency, stop)
        for line, verdict in zip(lines, judged, strict=True):
            counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
            failed += verdict.failed
            print(json.dumps({**line.record, **verdict.record}, ensure_ascii=False), flush=True)
    say(f"memx: {len(lines)} judged by {judge.name}: " + "  ".join(f"{n} {counts[n]}" for n in Outcome if n in counts))
    return 3 if failed else 0
