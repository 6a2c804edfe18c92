"""Pictures of every screen at three sizes. A change of looks is seen in the report before it is taken."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memx.engine.store.reader import Store
from memx.errors import StoreError
from memx.tui.app import DebugApp
from tests.stores import write_run

SIZES = {"120x36": (120, 36), "80x24": (80, 24), "60x16": (60, 16)}
#: Keys that lead to each screen.
SCREENS = {
    "runs": [],
    "questions": ["enter"],
    "filtered": ["enter", *"/stage:retrieval go", "enter", "space"],
    "bad-filter": ["enter", *"/stage:foo"],
    "question": ["enter", "enter"],
    "clusters": ["enter", "c"],
    "compare": ["space", "space", "c"],
    "help": ["enter", "?"],
    "mark": ["enter", "m"],
    "note": ["enter", "a"],
    "export": ["enter", "e"],
    "form": ["n"],
    "price": ["J", *"gpt-4o", "enter"],
    "probe": ["enter", "enter", "p"],
    "watch": ["j", "j", "w"],
}
TABS = {"2": "trail", "3": "retrieved", "4": "diff", "5": "near", "7": "timeline", "8": "notes"}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[DebugApp]:
    """The app on a store whose times and place are always the same."""
    monkeypatch.chdir(tmp_path)
    directory = Path("runs")
    write_run(directory, "20260228-080000-aaaa", questions=24, outcomes=("PASS", "absent", "synthesis"))
    write_run(directory, "20260301-090000-bbbb", hostile=True)
    if "watch" in request.node.name:
        write_run(directory, "20260227-070000-cccc", questions=24, state="running")
    with sqlite3.connect(directory / "memx.db") as db:
        db.execute("UPDATE runs SET started_at = '2026-03-01T09:00:00+00:00'")
        # As far as a run is that was looked at half way.
        db.execute("UPDATE runs SET question_total = 60 WHERE run_id LIKE '%cccc'")
    db.close()
    stores = Store(directory), Store(directory)
    yield DebugApp(*stores)
    for store in stores:
        store.close()


async def _settle(pilot: Any) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def _presses(keys: list[str]) -> Any:
    async def before(pilot: Any) -> None:
        await _settle(pilot)
        for key in keys:
            await pilot.press(key)
            await _settle(pilot)
        # Toasts go with time, so no picture shows them.
        pilot.app.clear_notifications()
        await _settle(pilot)

    return before


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCREENS)
def test_screen(app: DebugApp, snap_compare: Any, name: str, size: str) -> None:
    assert snap_compare(app, run_before=_presses(SCREENS[name]), terminal_size=SIZES[size])


@pytest.mark.parametrize("key", TABS)
def test_tab(app: DebugApp, snap_compare: Any, key: str) -> None:
    keys = ["enter", *"/cause=ranked_below_k", "enter", "enter", key]
    assert snap_compare(app, run_before=_presses(keys), terminal_size=SIZES["80x24"])


@pytest.mark.parametrize("size", ["120x36", "60x16"])
def test_diff(app: DebugApp, snap_compare: Any, size: str) -> None:
    keys = ["enter", *"/cause=ranked_below_k", "enter", "enter", "4", "z", "/", *"supersedes", "enter"]
    assert snap_compare(app, run_before=_presses(keys), terminal_size=SIZES[size])


@pytest.mark.parametrize("size", SIZES)
def test_error(app: DebugApp, snap_compare: Any, size: str) -> None:
    async def before(pilot: Any) -> None:
        await _settle(pilot)
        app.show_error(StoreError("runs/memx.db: the disk is full", "Free some space, then resume the run."))
        await _settle(pilot)

    assert snap_compare(app, run_before=before, terminal_size=SIZES[size])


def test_light_theme(app: DebugApp, snap_compare: Any) -> None:
    app.theme = "textual-light"
    assert snap_compare(app, run_before=_presses(["enter"]), terminal_size=SIZES["80x24"])


def test_no_color(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Any) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    write_run(Path("runs"), "20260301-090000-bbbb")
    store = Store(Path("runs"))
    assert snap_compare(DebugApp(store, store), run_before=_presses(["enter"]), terminal_size=SIZES["80x24"])
    store.close()


def test_too_small(app: DebugApp, snap_compare: Any) -> None:
    assert snap_compare(app, run_before=_presses(["enter"]), terminal_size=(40, 10))
