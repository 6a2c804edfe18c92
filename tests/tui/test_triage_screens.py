"""Marks, notes, selections, exports, clusters and the comparison, by keys over stores that are written to."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from memx.cli.export import command as export_command
from memx.engine.store.filters import parse
from memx.engine.store.marks import Mark, Marks
from memx.engine.store.pairs import difference
from memx.engine.store.reader import Store
from memx.tui.app import DebugApp
from memx.tui.config import read_config
from memx.tui.screens.clusters import ClustersScreen
from memx.tui.screens.compare import CompareScreen
from memx.tui.screens.error import ErrorScreen
from memx.tui.screens.question import QuestionScreen
from memx.tui.screens.questions import QuestionsScreen
from tests.stores import write_control
from tests.tui.driving import AppOn, notes, press, shown


def marks_of(directory: Path) -> dict[str, str]:
    store = Store(directory)
    found = {i: str(one.mark) for i, one in Marks(store).current(store.run()).items() if one.mark is not Mark.OPEN}
    store.close()
    return found


async def test_controls_stand_with_their_run_and_not_among_the_runs(own_dir: Path, app_on: AppOn) -> None:
    arm, run_id = "20260228-080000-aaaa", "20260301-090000-bbbb"
    write_control(own_dir, arm, run_id, {"conv-1:q00": "reader-bound"})
    app = app_on(own_dir)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot)
        assert arm not in shown(pilot)
        assert "1 run, 1 control (z)" in shown(pilot)
        assert "no-context 25.0 %  reader-bound 1" in shown(pilot)
        await press(pilot, "z")
        assert arm in shown(pilot)
        await press(pilot, "z", "enter")
        assert "tag         reader-bound" in shown(pilot)
        await press(pilot, "enter")
        assert "tag         reader-bound: answered wrong with the gold evidence too" in shown(pilot)


async def test_marking_one_repeating_and_undoing(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "enter", ".")
        assert "nothing to repeat yet" in notes(pilot)
        await press(pilot, "m", "f")
        assert marks_of(own_dir) == {"conv-1:q00": "fix"}
        assert shown(pilot).splitlines()[3].startswith(">  fix   FAIL")
        assert "1 of 12 triaged" in shown(pilot)
        await press(pilot, "j", ".", ".")
        assert marks_of(own_dir) == {"conv-1:q00": "fix", "conv-3:q02": "fix", "conv-2:q04": "fix"}
        await press(pilot, "u", "u")
        assert marks_of(own_dir) == {"conv-1:q00": "fix"}
        await press(pilot, "m", "escape")
        assert marks_of(own_dir) == {"conv-1:q00": "fix"}


async def test_a_selection_is_marked_at_once_and_taken_back_at_once(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(120, 30)) as pilot:
        await press(pilot, "enter", "space", "space")
        assert "2 selected" in shown(pilot)
        assert shown(pilot).splitlines()[3].startswith(" * open")
        await press(pilot, "m", "w")
        assert list(marks_of(own_dir).values()) == ["wont", "wont"]
        await press(pilot, "escape", *"/verdict:fail -mark:wont", "enter", "*", "m", "s")
        assert sorted(marks_of(own_dir).values()) == ["seen"] * 10 + ["wont"] * 2
        await press(pilot, "u")
        assert list(marks_of(own_dir).values()) == ["wont", "wont"]


async def test_a_note_is_kept_however_the_editor_is_left(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "enter", "a", *"the date", "escape", "8")
        assert "the date" in shown(pilot)
        await press(pilot, "a", *" is lost", "ctrl+c")
    store = Store(own_dir)
    assert Marks(store).current(store.run())["conv-1:q00"].note == "the date is lost"
    store.close()


async def test_a_mark_on_the_question_shows_on_the_list_behind_it(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "enter", "m", "x", "u", "m", "f")
        assert shown(pilot).splitlines()[0].rstrip().endswith("fix   [1 of 24]")
        await press(pilot, "escape")
        assert shown(pilot).splitlines()[3].startswith(">  fix ")


async def test_filters_are_kept_by_name_and_taken_again(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "F")
        assert "no filter is kept yet" in notes(pilot)
        await press(pilot, *"/stage:retrieval", "enter", "F", "k", *"lost", "enter", "escape")
        assert "24 of 24 shown" in shown(pilot)
        await press(pilot, "F", "1")
        assert "/ stage:retrieval" in shown(pilot)
        assert "5 of 24 shown" in shown(pilot)
        await press(pilot, "escape", "escape", "space", "space", "c", "F", "1")
        assert isinstance(app.screen, CompareScreen)
        assert app.screen.filter_now() == "stage:retrieval"
        assert "/ stage:retrieval" in shown(pilot)


async def test_exports_are_the_bytes_of_memx_export(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    run_id = "20260301-090000-bbbb"
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "e", "c", *"/stage:retrieval", "enter", "e", "j", "space", "e", "m")
        assert notes(pilot).count("wrote ") == 3
    written = {path.suffix: path for path in (own_dir / "exports").iterdir()}
    runner = CliRunner()
    for suffix, arguments in ((".csv", ["--format", "csv"]), (".json", ["--where", "stage:retrieval"])):
        done = runner.invoke(export_command, [run_id, "--dir", str(own_dir), *arguments], catch_exceptions=False)
        assert done.stdout_bytes == written[suffix].read_bytes()
    text = written[".md"].read_text()
    assert text.startswith(f"# memx run `{run_id}`")
    assert text.count("### `conv-1:q12` FAIL: retrieval > absent") == text.count("###") == 1


async def test_copying_goes_to_the_terminal_and_says_so(
    own_dir: Path, app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(own_dir)
    sent: list[str] = []
    async with app.run_test(size=(80, 24)) as pilot:
        assert app._driver is not None
        monkeypatch.setattr(app._driver, "write", sent.append)
        await press(pilot, "enter", "y")
        copied = [part for part in sent if part.startswith("\x1b]52;c;")]
        assert "When did Melanie" in base64.b64decode(copied[0][7:-1]).decode()
        assert "OSC 52" in notes(pilot)
        await press(pilot, *"/stage:retrieval", "enter", "Y")
        text = f"memx show 20260301-090000-bbbb --where stage:retrieval --dir {own_dir}"
        assert app.clipboard == text


async def test_a_text_too_long_for_a_terminal_is_not_said_to_be_copied(hostile_dir: Path, app_on: AppOn) -> None:
    app = app_on(hostile_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "enter", "6", "y")
        assert "more than a terminal takes" in notes(pilot)
        assert app.clipboard == ""


async def test_clusters_show_mechanisms_and_open_their_questions(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "c")
        assert isinstance(app.screen, ClustersScreen)
        assert "12 FAILs in" in shown(pilot)
        first = app.screen.rows.found[0]
        await press(pilot, "enter")
        assert isinstance(app.screen, QuestionsScreen)
        count = len(first.question_ids)
        assert f"{count} of {count} shown" in shown(pilot)
        assert str(first.mechanism)[:8] in shown(pilot)
        await press(pilot, "asterisk", "m", "f", "escape", "escape")
        assert isinstance(app.screen, ClustersScreen)
        assert app.screen.rows.cells(0)["triaged"][0] == str(count)
        await press(pilot, "enter", *"/zzz")
        assert f"0 of {count} shown" in shown(pilot)


async def test_two_runs_are_compared_and_a_flip_is_opened(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(100, 36)) as pilot:
        await press(pilot, "c")
        assert "pick two runs" in notes(pilot)
        await press(pilot, "j", "space", "g", "space", "c")
        assert isinstance(app.screen, CompareScreen)
        assert (app.screen.a.run_id, app.screen.b.run_id) == ("20260228-080000-aaaa", "20260301-090000-bbbb")
        text = shown(pilot)
        assert "A  20260228-080000-aaaa" in text
        worse, better = (sum(row.group == name for row in app.screen._all) for name in ("B worse", "B better"))
        assert f"[2 B worse {worse}]" in text
        assert "McNemar p" in text
        await press(pilot, "x")
        assert f"[2 B worse {better}]" in shown(pilot)
        await press(pilot, "x", "3")
        assert len(app.screen.rows) == better
        await press(pilot, "enter")
        assert isinstance(app.screen, QuestionScreen)
        assert f"[1 of {better}]" in shown(pilot)
        await press(pilot, "escape", *"/type:temporal", "enter", "1")
        assert {row.category for row in app.screen.rows.rows} == {"temporal"}


async def test_runs_of_different_datasets_are_not_compared(own_dir: Path, app_on: AppOn) -> None:
    import sqlite3

    with sqlite3.connect(own_dir / "memx.db") as db:
        db.execute("UPDATE runs SET dataset = 'locomo' WHERE run_id LIKE '%aaaa'")
    app = app_on(own_dir)
    async with app.run_test(size=(100, 36)) as pilot:
        await press(pilot, "space", "space", "c")
        assert isinstance(app.screen, ErrorScreen)
        assert "Only runs of the same dataset" in shown(pilot)


def test_the_interval_of_a_difference_holds_the_difference() -> None:
    assert difference(0, 0, 0) == (0.0, 0.0, 0.0)
    middle, low, high = difference(117, 292, 1986)
    assert middle == pytest.approx(100 * 175 / 1986)
    assert low < middle < high
    assert low > 0
    # By hand: 175/1988 = 8.803 points, give or take 1.95996 * sqrt(410 - 175^2/1988)/1988 = 1.958 points.
    assert (low, high) == (pytest.approx(6.844, abs=0.002), pytest.approx(10.761, abs=0.002))


async def test_find_marks_matches_and_counts_them(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "enter", "3", "n")
        assert "/ finds a text first" in notes(pilot)
        await press(pilot, "/", *"STUDIO", "enter")
        assert "1 of 4 lines" in shown(pilot)
        await press(pilot, "n", "n")
        assert "3 of 4 lines" in shown(pilot)
        await press(pilot, "N", "N", "N")
        assert "4 of 4 lines" in shown(pilot)
        await press(pilot, "escape")
        assert "lines" not in shown(pilot).splitlines()[1]
        await press(pilot, "/", *"zzz", "enter")
        assert "no match" in shown(pilot)


async def test_n_finds_what_the_list_was_filtered_by(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/stage:retrieval text~oslo", "enter", "enter", "3", "n")
        assert "1 of " in shown(pilot).splitlines()[1]


async def test_the_timeline_shows_what_each_session_did(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", *"/cause=synthesis", "enter", "enter", "7")
        assert "born  active" in shown(pilot)


async def test_the_palette_runs_an_action_by_its_name(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "ctrl+p", *"next order of")
        await pilot.pause(0.3)
        await press(pilot, "enter")
        assert "as asked" in shown(pilot)
        await press(pilot, "ctrl+p", *"export")
        await pilot.pause(0.3)
        await press(pilot, "enter")
        assert "HTML, a page to hand on" in shown(pilot)


async def test_keys_and_theme_are_moved_by_the_configuration(
    own_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[tui]\ntheme = "textual-light"\n[keymap]\n"questions.sort" = "o"\n')
    monkeypatch.setenv("MEMX_CONFIG", str(config))
    store = Store(own_dir)
    app = DebugApp(store, store, config=read_config())
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter", "s")
        assert "failed first" in shown(pilot)
        await press(pilot, "o")
        assert "as asked" in shown(pilot)
        assert " o sort" in shown(pilot)
        assert app.theme == "textual-light"
    store.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[keymap]\n"questions.srt" = "o"', "Did you mean questions.sort"),
        ('[keymap]\n"questions.sort" = 3', "keys separated by commas"),
        ("keymap = 3", "is a table of keys"),
        ('[tui]\ntheme = "pink"', "no theme named 'pink'"),
        ("[tui", "no TOML"),
    ],
)
def test_a_bad_configuration_is_refused_in_words(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memx.errors import InputError

    path = tmp_path / "config.toml"
    path.write_text(text)
    monkeypatch.setenv("MEMX_CONFIG", str(path))
    with pytest.raises(InputError) as raised:
        read_config()
    assert words in str(raised.value)
    assert str(path) in str(raised.value)


async def test_a_store_that_vanishes_while_open_keeps_the_program_alive(own_dir: Path, app_on: AppOn) -> None:
    app = app_on(own_dir)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        for path in own_dir.glob("memx.db*"):
            path.unlink()
        await press(pilot, "j", "m", "f")
        assert isinstance(app.screen, ErrorScreen)
        assert "the store is gone" in shown(pilot)
        await press(pilot, "escape", "r", "enter", "escape", "escape")
        assert app.is_running


def test_markdown_of_hostile_texts_is_a_table_of_code(hostile_dir: Path) -> None:
    from memx.engine.export_markdown import markdown
    from memx.engine.record import Record

    store = Store(hostile_dir)
    run = store.run()
    for question_id in store.question_ids(store.question_keys(run.run_id, parse("verdict:fail"))):
        text = markdown(Record(store, run, question_id))
        assert "\x1b" not in text
        rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
        assert rows
        assert all(json.dumps(row) for row in rows)
    store.close()
