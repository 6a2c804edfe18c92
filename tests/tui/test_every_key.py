"""Every key of the key list is pressed where it works, and 5,000 random keys and resizes leave the program alive."""

from __future__ import annotations

import random
from pathlib import Path
from unittest.mock import patch

import pytest
from textual import events
from textual.keys import _character_to_key

from memx.tui.actions import ACTIONS, NUMBERED
from memx.tui.app import DebugApp
from memx.tui.screens.base import BaseScreen
from memx.tui.widgets.pane import Pane
from tests.stores import write_run
from tests.tui.driving import AppOn, press

#: Keys that lead to a screen on which an action of the group works.
WAY = {
    "all": ["enter"], "list": ["enter"], "page": ["enter", "enter"], "questions": ["enter"],
    "triage": ["enter", "enter"], "runs": [], "compare": ["space", "space", "c"], "question": ["enter", "enter"],
}  # fmt: skip


@pytest.mark.parametrize("group", WAY)
async def test_each_key_calls_its_action(store_dir: Path, app_on: AppOn, group: str) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *WAY[group])
        owner = app.screen.focused if group in ("list", "page") else app.screen
        assert isinstance(owner, BaseScreen | Pane)
        for action in ACTIONS:
            for key in action.keys.split(",") if action.group == group else ():
                called: list[tuple[object, ...]] = []
                with patch.object(owner, f"action_{action.name}", lambda *args, to=called: to.append(args)):
                    await pilot.press(key)
                assert called == [(int(key),) if action.id in NUMBERED else ()], (action.id, key)


def test_every_group_of_keys_is_pressed() -> None:
    assert {action.group for action in ACTIONS} == set(WAY)


def test_every_action_has_its_own_id_and_every_key_one_action_per_place() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    for groups in (
        ("all", "list", "questions", "triage"), ("all", "list", "runs"), ("all", "page", "question", "triage"),
        ("all", "list", "compare"),
    ):  # fmt: skip
        # A pane's keys come before those of its screen; within a pane or a screen each key means one thing.
        for part in (groups[:1] + groups[2:], groups[1:2]):
            keys = [key for action in ACTIONS if action.group in part for key in action.keys.split(",")]
            assert len(keys) == len(set(keys)), groups


KEYS = (
    [key for action in ACTIONS for key in action.keys.split(",") if action.id not in ("all.quit", "all.copy")]
    + list("acfmnostwxz 019:<~\"-*") + ["backspace", "delete", "left", "right", "tab", "shift+tab", "é", "漢"]
)  # fmt: skip
_CHARACTERS = {
    "question_mark": "?", "slash": "/", "comma": ",", "full_stop": ".", "left_square_bracket": "[",
    "right_square_bracket": "]", "asterisk": "*", "space": " ",
}  # fmt: skip
SIZES = [(120, 36), (80, 24), (60, 16), (40, 10), (61, 17), (200, 50), (3, 2)]


def send(app: DebugApp, key: str) -> None:
    """A key as a terminal sends it, without waiting for what it does: fast typing overtakes the program."""
    name = _character_to_key(key) if len(key) == 1 else key
    typed = key if len(key) == 1 else _CHARACTERS.get(key)
    assert app._driver is not None
    event = events.Key(name, typed)
    event.set_sender(app)
    app._driver.send_message(event)


@pytest.mark.parametrize("seed", range(5))
async def test_random_keys_and_resizes_leave_it_alive(tmp_path: Path, app_on: AppOn, seed: int) -> None:
    write_run(tmp_path, "20260228-080000-evil", questions=30, hostile=True)
    write_run(tmp_path, "20260301-090000-evil", questions=30, hostile=True)
    chosen = random.Random(seed)
    app: DebugApp = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        for _ in range(1_000):
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
