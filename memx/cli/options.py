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
