"""The app driven by keys on a headless terminal, over real stores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from memx.engine.store import filters
from memx.engine.store.writer import delete_run
from memx.tui.screens.error import ErrorScreen
from memx.tui.screens.help import HelpScreen
from memx.tui.screens.question import QuestionScreen
from memx.tui.screens.questions import QuestionsScreen
from memx.tui.screens.runs import RunsScreen
from memx.tui.widgets.page import Page
from memx.tui.widgets.rows import Rows
from tests.stores import write_run
from tests.tui.driving import AppOn, notes, press, shown
from tests.tui.fuzz import send


async def test_the_way_from_runs_to_a_question_and_back(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot)
        assert isinstance(app.screen, RunsScreen)
        assert "20260301-090000-bbbb" in shown(pilot)
        assert shown(pilot).index("bbbb") < shown(pilot).index("aaaa")
        await press(pilot, "enter")
        assert isinstance(app.screen, QuestionsScreen)
        assert "36 of 36 shown" in shown(pilot)
        first_rows = shown(pilot).splitlines()[3:20]
        assert all(re.match(r"[> ]  open  FAIL", row) for row in first_rows)
        await press(pilot, "j", "enter")
        assert isinstance(app.screen, QuestionScreen)
        assert "[2 of 36]" in shown(pilot)
        assert "partly_stored" in shown(pilot)
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, RunsScreen)
        await press(pilot, "q")
    assert app.return_value == 0


TABS = (
    ("1", "the needed fact came back below the"),
    ("2", "BELOW THE CUT at 10"),
    ("3", "21 came back, the candidate saw the first 10"),
    ("4", "changes that do not touch this question are left out"),
    ("5", "LOSES <"),
    ("6", "timings, in milliseconds"),
)


async def test_each_tab_shows_its_page(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/cause=r", "tab", "enter", "enter", "6")
        for key, words in TABS:
            await press(pilot, key)
            assert words in shown(pilot), key


async def test_typing_a_filter_narrows_the_list_and_escape_clears_it(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/stage:retr")
        assert "5 of 36 shown" in shown(pilot)
        await press(pilot, "tab")
        assert "/ stage:retrieval" in shown(pilot)
        await press(pilot, *" zzz")
        assert "0 of 36 shown" in shown(pilot)
        assert "No question matches" in shown(pilot)
        await press(pilot, "enter", "enter")
        assert isinstance(app.screen, QuestionsScreen)
        await press(pilot, "escape")
        assert "36 of 36 shown" in shown(pilot)


async def test_keys_that_come_in_one_packet_with_a_filter_reach_the_list(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        for key in ("slash", *"rank<20", "enter", "?"):
            send(app, key)
        await press(pilot)
        await press(pilot, "escape")
        assert "/ rank<20" in shown(pilot)
        assert "11 of 36 shown" in shown(pilot)


async def test_a_filter_that_cannot_be_read_says_where_and_keeps_the_list(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/stage:re", *"x")
        assert "column 7: no stage 'rex'" in shown(pilot)
        assert "5 of 36 shown" in shown(pilot)


@pytest.mark.parametrize(
    ("way", "fields"), [(["enter"], tuple(filters.FIELDS)), (["space", "space", "c"], ("case", "text"))]
)
async def test_every_field_can_be_typed_and_completed(
    store_dir: Path, app_on: AppOn, way: list[str], fields: Sequence[str]
) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *way, "/")
        box = app.screen.query_one("#box", Input)
        for name in fields:
            for value in ("c", "1"):
                app.screen.set_focus(box)
                box.value = f"{name}:"
                box.cursor_position = len(box.value)
                await press(pilot, value, "tab")
        app.screen.set_focus(box)
        box.value = "type:temp"
        await press(pilot, "end", "o", "tab")
        assert box.value == "type:temporal"


async def test_f_goes_through_the_causes_and_s_through_the_orders(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "f")
        seen = [shown(pilot).splitlines()[1].strip()]
        for _ in range(15):
            await press(pilot, "f")
            seen.append(shown(pilot).splitlines()[1].strip())
        assert len(set(seen)) == 16
        assert seen[-1] == "/"
        await press(pilot, "s")
        assert "as asked" in shown(pilot)


async def test_brackets_walk_the_filtered_list_and_the_list_follows(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/stage:retrieval", "enter", "enter")
        ids = []
        for _ in range(5):
            assert isinstance(app.screen, QuestionScreen)
            assert app.screen.record is not None
            ids.append(app.screen.record.key[1])
            await press(pilot, "]")
        assert len(set(ids)) == 5
        assert notes(pilot) == "the list ends here"
        await press(pilot, "[", "escape")
        assert app.screen.query_one("#table", Rows).cursor == 3


async def test_rivals_are_switched_on_the_near_misses_tab(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/cause=ranked_below_k", "enter", "enter", "5")
        assert "rival 1 of 3" in shown(pilot)
        await press(pilot, ".")
        assert "rival 2 of 3" in shown(pilot)
        await press(pilot, ",", ",")
        assert "rival 3 of 3" in shown(pilot)


async def test_help_lists_the_keys_of_the_screen_below(store_dir: Path, app_on: AppOn) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=(80, 40)) as pilot:
        await press(pilot, "enter", "?")
        assert isinstance(app.screen, HelpScreen)
        assert "Next cause" in shown(pilot)
        assert any(line.body == "how it was lost" for line in app.screen.query_one(Page).lines)
        await press(pilot, "escape")
        assert isinstance(app.screen, QuestionsScreen)


@pytest.mark.parametrize("size", [(40, 10), (60, 10), (59, 30), (1, 1)])
async def test_a_terminal_too_small_says_so(store_dir: Path, app_on: AppOn, size: tuple[int, int]) -> None:
    app = app_on(store_dir)
    async with app.run_test(size=size) as pilot:
        await press(pilot)
        assert "terminal too small, need 60x16"[: size[0]] in shown(pilot)
        await pilot.resize_terminal(80, 24)
        await press(pilot)
        assert "too small" not in shown(pilot)
        await press(pilot, "enter", "enter", "2")
        assert "[2 Trail]" in shown(pilot)


async def test_hostile_texts_are_shown_on_every_screen(hostile_dir: Path, app_on: AppOn) -> None:
    app = app_on(hostile_dir)
    texts = []
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        for _ in range(36):
            await press(pilot, "down")
            texts.append(shown(pilot))
        app.screen.use_filter("cause=ranked_below_k")  # type: ignore[attr-defined]
        await press(pilot)
        await press(pilot, "enter", "v")
        for size in ((120, 36), (80, 24), (60, 16)):
            await pilot.resize_terminal(*size)
            for tab in "123456":
                await press(pilot, tab)
                texts.append(shown(pilot))
                await press(pilot, "G")
    together = "".join(texts)
    assert "\x1b" not in together
    assert "\\x1b[31mred" in together
    assert "[/foo] closes nothing" in together
    assert "list[int] = [1]" in together


async def test_all_of_a_long_text_can_be_read(hostile_dir: Path, app_on: AppOn) -> None:
    app = app_on(hostile_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/text~xxxx", "enter", "enter")
        page = app.screen.query_one(Page)
        assert page.virtual_size.height < 400
        assert any("more characters" in line.body for line in page.lines)
        await press(pilot, "v", "pagedown", "pagedown")
        assert "xxxxxxxx" in shown(pilot)
        assert page.virtual_size.height > 1_400


@pytest.mark.parametrize("no_color", [False, True])
async def test_the_cursor_and_the_verdicts_are_words_and_glyphs(
    store_dir: Path, app_on: AppOn, no_color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(store_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.no_color is no_color
        await press(pilot, "enter")
        assert any(row.startswith(">  open  FAIL") for row in shown(pilot).splitlines())
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                if segment.text.strip() and segment.style and segment.style.bgcolor and segment.style.color:
                    assert segment.style.color != segment.style.bgcolor, segment


@pytest.mark.parametrize(
    ("outcomes", "words"), [(("PASS",), "PASS"), (("ERROR",), "ERROR"), ((), "No question is stored yet")]
)
async def test_runs_without_a_fail_are_shown(tmp_path: Path, app_on: AppOn, outcomes: Any, words: str) -> None:
    write_run(
        tmp_path, "r1", questions=3 if outcomes else 0, outcomes=outcomes, state="finished" if outcomes else "failed"
    )
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        assert words in shown(pilot)
        await press(pilot, "f", "s", "j", "G", "enter", "2")


async def test_a_run_deleted_while_it_is_open_gives_words_not_a_crash(tmp_path: Path, app_on: AppOn) -> None:
    write_run(tmp_path, "r1")
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        delete_run(tmp_path, "r1")
        await press(pilot, "enter")
        assert isinstance(app.screen, ErrorScreen)
        assert "holds no question" in shown(pilot)
        await press(pilot, "escape", "escape", "r")
        assert isinstance(app.screen, QuestionsScreen)
        assert "This run is no longer stored" in shown(pilot)
        await press(pilot, "f", "j", "enter")
        app.watch_store()
        await press(pilot, "escape")
        assert "No run is stored here" in shown(pilot)


async def test_a_running_run_is_followed(tmp_path: Path, app_on: AppOn) -> None:
    write_run(tmp_path, "r1", questions=3, state="running")
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot)
        assert "RUNNING 100%" in shown(pilot)
        write_run(tmp_path, "r2", questions=3)
        app.watch_store()
        await press(pilot)
        assert "2 runs" in shown(pilot)
        assert ">     r1" in shown(pilot)
