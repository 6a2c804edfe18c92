"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memx.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def directory_option(function: F) -> F:
    """``--dir``: where runs are kept."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path),
        default=Path(".memx"),
        envvar="MEMX_DIR",
        show_default=True,
        help="Where runs are kept.",
    )(function)


def where_option(function: F) -> F:
    """``--where``: which questions of a run, in the filter language of ``memx debug``."""
    return click.option(
        "--where", default="", metavar="FILTER", help='As in memx debug: stage:retrieval rank<20 text~"dinner".'
    )(function)


def judge_options(function: F) -> F:
    """The options that name a judge and bound what it may cost."""
    options = [
        click.option("--judge-model", default="offline", show_default=True, metavar="MODEL|offline",
                     help="Who judges."),
        click.option("--base-url", default="", metavar="URL", help="Of an OpenAI-compatible endpoint."),
        click.option("--votes", type=int, default=1, show_default=True, metavar="N",
                     help="Ask the judge model N times; the majority decides."),
        click.option("--confirm-fails", is_flag=True, help="Ask the judge model again where it says FAIL."),
        click.option("--strict", is_flag=True, help="The offline judge says UNJUDGED where it is not sure."),
        click.option("--judge-prompt", type=click.Path(path_type=Path), metavar="FILE",
                     help="A prompt of your own, with {question}, {gold} and {candidate}."),
        click.option("--model-concurrency", type=int, default=16, show_default=True, metavar="N",
                     help="Requests to models at once."),
        click.option("--max-calls", type=int, metavar="N", help="Stop asking models after N calls."),
        click.option("--max-cost", type=float, metavar="USD", help="Stop asking models at this cost."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def dataset_options(given: tuple[str, ...], captions: str | None, skip_bad: bool) -> dict[str, str]:
    """Options of a dataset's loader from ``--dataset-option``, ``--captions`` and ``--skip-bad``."""
    options = pairs(given, "--dataset-option")
    if captions:
        options["captions"] = captions
    if skip_bad:
        options["skip_bad"] = "on"
    return options


def pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    """``K=V`` options as a mapping.

    Raises:
        UsageError: one has no ``=``.
    """
    found = {}
    for value in values:
        name, equals, content = value.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not '{value}'")
        found[name.replace("-", "_")] = content
    return found
