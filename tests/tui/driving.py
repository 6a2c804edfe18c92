"""Driving the app in tests: keys, and the text on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from memx.tui.app import DebugApp

AppOn = Callable[[Path], DebugApp]


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys and wait until what they started is done."""
    for key in keys:
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


def shown(pilot: Pilot[Any]) -> str:
    """The text on the terminal, line by line."""
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in lines)


def notes(pilot: Pilot[Any]) -> str:
    """What the app has told the user in passing, line by line, also what is gone from the screen again."""
    return "\n".join(pilot.app.told)  # type: ignore[attr-defined]


class TellingApp(DebugApp):
    """The app, keeping what it tells in passing: on a slow machine a toast is gone before a test looks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told: list[str] = []

    def notify(self, message: str, **kwargs: Any) -> None:  # type: ignore[override]
        self.told.append(message)
        super().notify(message, **kwargs)
