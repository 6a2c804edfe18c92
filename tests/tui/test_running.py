"""Runs, re-judging and probes from inside: real memx commands in processes of their own, driven by keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from memx.engine.estimate import rejudge_estimate
from memx.engine.settings import RunSettings
from memx.engine.store.reader import Store
from memx.errors import UsageError
from memx.tui.app import DebugApp
from memx.tui.jobs import Pace
from memx.tui.running import run_arguments
from memx.tui.screens.error import ErrorScreen
from memx.tui.screens.form import FormScreen
from memx.tui.screens.leave import LeaveScreen
from memx.tui.screens.questions import QuestionsScreen
from memx.tui.screens.runs import RunsScreen
from memx.tui.screens.watch import WatchScreen
from tests.stores import write_run
from tests.tui.driving import AppOn, notes, press, shown

ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def own_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "store"
    write_run(directory, "20260301-090000-bbbb", questions=12)
    return directory


async def until(pilot: Pilot[Any], done: Callable[[], bool]) -> None:
    """Let the program go on until something holds; the test's own time limit is a minute."""
    for _ in range(1200):
        assert isinstance(pilot.app, DebugApp)
        pilot.app.watch_store()
        if isinstance(pilot.app.screen, WatchScreen):
            pilot.app.screen.tick()
        await pilot.pause(0.05)
        if done():
            return
    raise AssertionError(shown(pilot))


async def ended(pilot: Pilot[Any], app: DebugApp) -> int:
    """Wait for the end of the last command; returns its exit code."""
    await asyncio.to_thread(app.jobs[-1].wait, 60)
    app.watch_store()
    if isinstance(app.screen, WatchScreen):
        app.screen.tick()
    await pilot.pause()
    code = app.jobs[-1].code
    assert code is not None
    return code


def fill(app: DebugApp, **values: str) -> None:
    assert isinstance(app.screen, FormScreen)
    for name, value in values.items():
        app.screen.query_one(f"#{name}", Input).value = value


async def test_a_run_is_started_watched_stopped_and_gone_on_with(
    own_dir: Path, tmp_path: Path, app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MEMX_TEST_GATE", "3")
    monkeypatch.setenv("MEMX_TEST_PIPE", str(pipe))
    app = app_on(own_dir)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "n")
        fill(app, dataset="tests.engine.worlds:Small", adapter="tests.engine.worlds:Gated", more="--concurrency 1")
        await press(pilot, "enter")
        assert isinstance(app.screen, WatchScreen)
        await asyncio.to_thread(pipe.read_text)
        await until(pilot, lambda: "2 of 9 questions" in shown(pilot))
        assert "RUNNING" in shown(pilot).splitlines()[0]
        await press(pilot, "escape")
        assert isinstance(app.screen, RunsScreen)
        assert "RUNNING 22%" in shown(pilot)
        await press(pilot, "q")
        assert isinstance(app.screen, LeaveScreen)
        await press(pilot, "escape", "w", "x")
        assert "told to stop" in notes(pilot)
        assert await ended(pilot, app) == 130
        assert "INTERRUPTED" in shown(pilot)
        assert "R goes on with it" in shown(pilot)
        monkeypatch.setenv("MEMX_TEST_GATE", "")
        await press(pilot, "R")
        assert await ended(pilot, app) == 0
        assert "9 of 9 questions" in shown(pilot)
        await press(pilot, "enter")
        assert isinstance(app.screen, QuestionsScreen)
        assert "9 of 9 shown" in shown(pilot)
        await press(pilot, "q")
    assert app.return_value == 0
    assert not list((own_dir / "logs").iterdir())


async def test_closing_with_a_run_under_way_can_leave_it_running_or_stop_it(
    own_dir: Path, tmp_path: Path, app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MEMX_TEST_GATE", "1")
    monkeypatch.setenv("MEMX_TEST_PIPE", str(pipe))
    arguments = ["run", "--dataset", "tests.engine.worlds:Small", "--adapter", "tests.engine.worlds:Gated"]
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_job([*arguments, "--concurrency", "1"], watch=False)
        await asyncio.to_thread(pipe.read_text)
        await until(pilot, lambda: "RUNNING" in shown(pilot))
        await press(pilot, "ctrl+c", "l")
    assert app.return_value == 0
    assert app.jobs[0].code is None
    # Another UI finds it and stops it, as it would a run of any other process.
    second = app_on(own_dir)
    async with second.run_test(size=(80, 24)) as pilot:
        await press(pilot, "w")
        assert "was started elsewhere" in shown(pilot)
        await press(pilot, "x")
        await asyncio.to_thread(app.jobs[0].wait, 60)
        await until(pilot, lambda: "INTERRUPTED" in shown(pilot))
        await press(pilot, "x")
        assert "it is not running" in notes(pilot)
    third = app_on(own_dir)
    async with third.run_test(size=(80, 24)) as pilot:
        monkeypatch.setenv("MEMX_TEST_GATE", "2")
        third.start_job([*arguments, "--concurrency", "1"], watch=True)
        await asyncio.to_thread(pipe.read_text)
        await press(pilot, "q")
        assert isinstance(third.screen, LeaveScreen)
        await pilot.press("s")
        await asyncio.to_thread(third.jobs[0].wait, 60)
        while third.is_running:
            await pilot.pause(0.05)
    assert third.return_value == 0
    assert third.jobs[0].code == 130


async def test_a_command_that_fails_says_why_and_the_form_is_kept(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "n")
        fill(app, adapter="locl", limit="x")
        await press(pilot, "enter")
        assert "--limit is a number, not 'x'" in shown(pilot)
        assert isinstance(app.screen, FormScreen)
        fill(app, limit="4")
        await press(pilot, "enter")
        assert await ended(pilot, app) == 2
        assert isinstance(app.screen, ErrorScreen)
        assert "no adapter named 'locl'" in shown(pilot)
        assert "Did you mean local" in shown(pilot)
        await press(pilot, "escape", "escape", "n")
        assert isinstance(app.screen, FormScreen)
        assert (app.screen.values["adapter"], app.screen.values["limit"]) == ("locl", "4")


async def test_judging_again_says_its_price_first(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "J", *"gpt-4o-mini", "enter")
        assert "at most 12 model calls" in shown(pilot)
        assert "about $0.0" in shown(pilot)
        await press(pilot, "escape")
        assert app.jobs == []
        await press(pilot, "J", "enter")
        assert "no model is asked, nothing is paid" in shown(pilot)
        await press(pilot, "y")
        assert await ended(pilot, app) == 0
        assert "memx rejudge 20260301-090000-bbbb --judge-model offline" in " ".join(shown(pilot).split())
        await press(pilot, "escape")
        assert "2 runs" in shown(pilot)


async def test_a_probe_says_its_price_and_shows_what_it_found(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "p", *"gpt-4o", "enter")
        assert "at most 18 model calls" in shown(pilot)
        await press(pilot, "escape", "enter", "enter", "p", *"extractive", "enter")
        assert "memx probe 20260301-090000-bbbb --yes --question conv-1:q00" in shown(pilot)
        await press(pilot, "y")
        assert await ended(pilot, app) == 0
        assert "memx: probing  1/1" in shown(pilot)
        assert "first change that turns it to PASS" in shown(pilot)


def test_the_estimate_counts_votes_and_knows_when_there_is_no_price(own_dir: Path) -> None:
    store = Store(own_dir)
    run = store.run()
    one, three = (rejudge_estimate(store, run, RunSettings(judge_model="gpt-4o", votes=n)) for n in (1, 3))
    assert (one.calls, three.calls) == (12, 36)
    assert one.cost is not None
    assert three.cost == pytest.approx(3 * one.cost)
    assert rejudge_estimate(store, run, RunSettings(judge_model="my-own")).cost is None
    assert "no price is known" in rejudge_estimate(store, run, RunSettings(judge_model="my-own")).words()
    assert rejudge_estimate(store, run, RunSettings()).calls == 0
    store.close()


def test_the_form_becomes_the_command_a_user_would_type() -> None:
    values = {"dataset": "locomo", "source": "a b.json", "limit": "5", "mode": "", "more": "--seed 3 --category 'x y'"}
    assert run_arguments(values) == [
        "run", "--dataset", "locomo", "--source", "a b.json", "--limit", "5", "--seed", "3", "--category", "x y",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="quote"):
        run_arguments({"more": "'x"})
    with pytest.raises(UsageError, match="--top-k is a number"):
        run_arguments({"top_k": "ten"})


def test_the_pace_is_that_of_the_last_minute(own_dir: Path) -> None:
    from dataclasses import replace

    store = Store(own_dir)
    run = replace(store.run(), question_total=100, done=10)
    store.close()
    pace = Pace()
    pace.note(run, 0.0)
    assert pace.left(run) is None
    for second in range(1, 200):
        pace.note(replace(run, done=10 + (second if second < 100 else 100 + 2 * (second - 100))), float(second))
    assert pace.rate(run) == pytest.approx(2.0, rel=0.05)
    assert pace.left(replace(run, done=90)) == pytest.approx(5.0, rel=0.05)
