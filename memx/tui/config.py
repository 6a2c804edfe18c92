"""The user's settings of the UI: a theme, and keys moved by the id of their action.

# ~/.config/memx/config.toml, or the file that MEMX_CONFIG names
[tui]
theme = "textual-light"

[keymap]
"questions.filter" = "slash,ctrl+f"
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memx.errors import InputError


@dataclass(frozen=True, slots=True)
class Config:
    """``theme`` None keeps the default; ``keymap`` goes from action ids to keys as Textual writes them."""

    theme: str | None = None
    keymap: Mapping[str, str] = field(default_factory=dict)


def config_path() -> Path:
    """Where the settings are looked for."""
    given = os.environ.get("MEMX_CONFIG")
    if given:
        return Path(given)
    from platformdirs import user_config_path

    return user_config_path("memx") / "config.toml"


def read_config() -> Config:
    """The user's settings; the defaults where there is no file.

    Raises:
        InputError: the file cannot be read, or names an action or a theme that does not exist.
    """
    path = config_path()
    if not path.is_file():
        return Config()
    import tomllib

    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", "Check its permissions.", path=path) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"no TOML: {error}", "Mend it, or move it away.", path=path) from None
    return Config(_theme(data, path), _keymap(data, path))


def _theme(data: Mapping[str, Any], path: Path) -> str | None:
    from textual.theme import BUILTIN_THEMES

    table = data.get("tui", {})
    theme = table.get("theme") if isinstance(table, dict) else None
    if theme is not None and theme not in BUILTIN_THEMES:
        known = ", ".join(sorted(BUILTIN_THEMES))
        raise InputError(f"no theme named {theme!r}", f"There are: {known}", path=path, place="tui.theme")
    return theme


def _keymap(data: Mapping[str, Any], path: Path) -> dict[str, str]:
    import difflib

    from memx.tui.actions import BY_ID, NUMBERED

    movable = [action_id for action_id in BY_ID if action_id not in NUMBERED]

    table = data.get("keymap", {})
    if not isinstance(table, dict):
        raise InputError("is a table of keys", '[keymap]\n"questions.filter" = "slash"', path=path, place="keymap")
    for action_id, keys in table.items():
        if action_id not in movable:
            near = difflib.get_close_matches(action_id, movable, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else "docs/debug.md lists the actions."
            raise InputError(f"no action '{action_id}'", hint, path=path, place="keymap")
        if not isinstance(keys, str) or not keys.strip():
            raise InputError(
                "is a text of keys separated by commas",
                'For example "slash,ctrl+f"',
                path=path,
                place=f"keymap.{action_id}",
            )
    return dict(table)
