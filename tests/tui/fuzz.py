"""Random keys and resizes, sent faster than the program works them off."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from memx.tui.actions import ACTIONS
from memx.tui.app import DebugApp

KEYS = (
    [key for action in ACTIONS for key in action.keys.split(",") if action.id not in ("all.quit", "all.copy")]
    + list("acfmnostwxz 019:<~\"-*") + ["backspace", "delete", "left", "right", "tab", "shift+tab", "é", "漢"]
)  # fmt: skip
SIZES = [(120, 36), (80, 24), (60, 16), (40, 10), (61, 17), (200, 50), (3, 2)]
_CHARACTERS = {
    "question_mark": "?", "slash": "/", "comma": ",", "full_stop": ".", "left_square_bracket": "[",
    "right_square_bracket": "]", "asterisk": "*", "space": " ",
}  # fmt: skip


class FuzzedApp(DebugApp):
    """The app, keeping the commands that keys would have started."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked: list[Sequence[str]] = []

    def start_job(self, arguments: Sequence[str], *, watch: bool) -> None:
        self.asked.append(arguments)

    def copy_to_clipboard(self, text: str) -> None:
        """Nothing of the fuzz goes to a clipboard."""


def send(app: DebugApp, key: str) -> None:
    """A key as a terminal sends it, without waiting for what it does: fast typing overtakes the program."""
    name = _character_to_key(key) if len(key) == 1 else key
    typed = key if len(key) == 1 else _CHARACTERS.get(key)
    assert app._driver is not None
    event = events.Key(name, typed)
    event.set_sender(app)
    app._driver.send_message(event)


async def fuzz(pilot: Pilot[Any], count: int, seed: int) -> None:
    """Send so many keys and resizes; the program is alive afterwards.

    Raises:
        AssertionError: it is not.
    """
    chosen, app = random.Random(seed), pilot.app
    assert isinstance(app, DebugApp)
    for _ in range(count):
        if chosen.random() < 0.03:
            await pilot.resize_terminal(*chosen.choice(SIZES))
        else:
            send(app, chosen.choice(KEYS))
        if chosen.random() < 0.2:
            await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()
    assert app.is_running
    await pilot.resize_terminal(80, 24)
    await pilot.pause()
    assert app.screen.is_running
