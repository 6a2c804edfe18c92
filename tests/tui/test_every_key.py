"""Every key of the key list is pressed where it works, and random keys and resizes leave the program alive."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from memx.engine.store.reader import Store
from memx.tui.actions import ACTIONS, NUMBERED
from memx.tui.screens.base import BaseScreen
from memx.tui.widgets.pane import Pane
from tests.stores import write_run
from tests.tui.driving import AppOn, press
from tests.tui.fuzz import FuzzedApp, fuzz

#: Keys that lead to a screen on which an action of the group works.
WAY = {
    "work": [], "watch": [],
    "all": ["enter"], "list": ["enter"], "page": ["enter", "enter"], "questions": ["enter"], "filters": ["enter"],
    "triage": ["enter", "enter"], "runs": [], "compare": ["space", "space", "c"], "question": ["enter", "enter"],
}  # fmt: skip


@pytest.mark.parametrize("group", WAY)
async def test_each_key_calls_its_action(store_dir: Path, app_on: AppOn, group: str) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *WAY[group])
        if group == "watch":
            app.watch_run(app.store.run())
            await press(pilot)
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
        ("all", "list", "questions", "triage", "filters"),
        ("all", "list", "runs"), ("all", "page", "question", "triage"),
        ("all", "list", "compare", "filters"), ("all", "list", "runs", "work"), ("all", "page", "watch", "work"),
    ):  # fmt: skip
        # A pane's keys come before those of its screen; within a pane or a screen each key means one thing.
        for part in (groups[:1] + groups[2:], groups[1:2]):
            keys = [key for action in ACTIONS if action.group in part for key in action.keys.split(",")]
            assert len(keys) == len(set(keys)), groups


@pytest.mark.parametrize("seed", [3, 5])
async def test_random_keys_and_resizes_leave_it_alive(tmp_path: Path, seed: int) -> None:
    write_run(tmp_path, "20260228-080000-evil", questions=24, hostile=True)
    write_run(tmp_path, "20260301-090000-evil", questions=24, hostile=True)
    store, search_store = Store(tmp_path), Store(tmp_path)
    async with FuzzedApp(store, search_store).run_test(size=(80, 24)) as pilot:
        await fuzz(pilot, 250, seed)
    store.close()
    search_store.close()
