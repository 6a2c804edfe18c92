"""Pictures of every screen at three sizes. A picture that differs is put beside the test's files, to be looked at."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from memx.engine.store.reader import Store
from memx.errors import StoreError
from memx.tui.app import DebugApp
from tests.stores import write_run
from tests.tui.driving import press

#: The size that a screen is opened at comes first.
SIZES = {"80x24": (80, 24), "120x36": (120, 36), "60x16": (60, 16)}
#: Keys that lead to a question that was ranked below k.
FAIL = ["enter", *"/cause=r", "tab", "enter", "enter"]
#: Keys that lead to each screen.
SCREENS = {
    "runs": [],
    "summary": ["i"],
    "questions": ["enter"],
    "filtered": ["enter", *"/stage:r", "tab", *" go", "enter", "space"],
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
TABS = {
    "2": "trail", "3": "retrieved", "4": "diff", "5": "near", "6": "trace", "7": "timeline", "8": "notes",
}  # fmt: skip

Take = Callable[[Pilot[Any], str], None]


@pytest.fixture
def take(snapshot: SnapshotAssertion, tmp_path: Path) -> Take:
    """Compares what is shown with the picture of that name."""
    pictures = snapshot.use_extension(SVGImageExtension)

    def compare(pilot: Pilot[Any], name: str) -> None:
        now = pilot.app.export_screenshot()
        same = now == pictures(name=name)
        if not same:
            (tmp_path / f"{name}.svg").write_text(now)
        assert same, f"{name} looks different: {tmp_path / name}.svg; --snapshot-update takes it"

    return compare


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores whose times are always the same, by what is special about them; no picture writes."""
    found = {}
    for name in ("", "watch"):
        found[name] = tmp_path_factory.mktemp("pictures")
        directory = found[name] / "runs"
        write_run(directory, "20260228-080000-aaaa", questions=24, outcomes=("PASS", "absent", "synthesis"))
        write_run(directory, "20260301-090000-bbbb", hostile=True)
        if name:
            write_run(directory, "20260227-070000-cccc", questions=24, state="running")
        with closing(sqlite3.connect(directory / "memx.db")) as db:
            db.execute("UPDATE runs SET started_at = '2026-03-01T09:00:00+00:00'")
            # As far as a run is that was looked at half way.
            db.execute("UPDATE runs SET question_total = 60 WHERE run_id LIKE '%cccc'")
            db.commit()
    return found


@pytest.fixture
def app(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[DebugApp]:
    """The app on such a store, and at a place that is always the same."""
    monkeypatch.chdir(places["watch" if "watch" in request.node.name else ""])
    directory = Path("runs")
    stores = Store(directory), Store(directory)
    yield DebugApp(*stores)
    for store in stores:
        store.close()


async def settle(pilot: Pilot[Any], size: str = "") -> None:
    """Wait for what is under way, on a terminal of a size; toasts go with time, so no picture shows them."""
    if size:
        await pilot.resize_terminal(*SIZES[size])
    pilot.app.clear_notifications()
    await press(pilot)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("name", SCREENS)
async def test_screen(app: DebugApp, take: Take, name: str) -> None:
    async with app.run_test(size=SIZES["80x24"]) as pilot:
        await settle(pilot)
        await press(pilot, *SCREENS[name])
        for size in SIZES:
            await settle(pilot, size)
            take(pilot, f"{name}-{size}")


async def test_tabs(app: DebugApp, take: Take) -> None:
    async with app.run_test(size=SIZES["80x24"]) as pilot:
        await settle(pilot)
        await press(pilot, *FAIL)
        for key, name in TABS.items():
            for size in SIZES:
                await press(pilot, key)
                await settle(pilot, size)
                take(pilot, f"{name}-{size}")


async def test_old_and_new_texts(app: DebugApp, take: Take) -> None:
    async with app.run_test(size=SIZES["80x24"]) as pilot:
        await settle(pilot)
        await press(pilot, *FAIL, "4", "z", "/", *"supersedes", "enter")
        for size in SIZES:
            await settle(pilot, size)
            await press(pilot, "n")
            take(pilot, f"old-new-{size}")


async def test_error_and_too_small(app: DebugApp, take: Take) -> None:
    async with app.run_test(size=SIZES["80x24"]) as pilot:
        await settle(pilot)
        app.show_error(StoreError("runs/memx.db: the disk is full", "Free some space, then resume the run."))
        for size in SIZES:
            await settle(pilot, size)
            take(pilot, f"error-{size}")
        await press(pilot, "escape")
        await pilot.resize_terminal(40, 10)
        await settle(pilot)
        take(pilot, "too-small")


@pytest.mark.parametrize("look", ["light", "no-color"])
async def test_looks(places: dict[str, Path], take: Take, look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(places[""])
    if look == "no-color":
        monkeypatch.setenv("NO_COLOR", "1")
    with closing(Store(Path("runs"))) as store:
        app = DebugApp(store, store)
        if look == "light":
            app.theme = "textual-light"
        async with app.run_test(size=SIZES["80x24"]) as pilot:
            await settle(pilot)
            for keys, name in ((["enter"], "questions"), (["enter", "2"], "trail"), (["p"], "form")):
                await press(pilot, *keys)
                await settle(pilot)
                take(pilot, f"{look}-{name}")
