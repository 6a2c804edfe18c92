"""Stores that are old, too new, written by another process, or gone: words, and nothing lost."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memx.engine.store.schema import APPLICATION_ID, MIGRATIONS
from memx.engine.store.writer import delete_run
from memx.errors import StoreError
from memx.tui.app import debug
from memx.tui.screens.error import ErrorScreen
from memx.tui.screens.watch import WatchScreen
from tests.stores import write_run
from tests.tui.driving import AppOn, press, shown

ROOT = Path(__file__).resolve().parents[2]


def as_first_written(directory: Path) -> None:
    """Put a store back to the first version of its tables, rows included."""
    path, old = directory / "memx.db", directory / "old.db"
    with closing(sqlite3.connect(old)) as db:
        db.executescript(MIGRATIONS[0])
        db.execute("ATTACH ? AS new", [str(path)])
        for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
            db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}")
        db.commit()
        db.execute("DETACH new")
        db.execute("PRAGMA user_version = 1")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for rest in directory.glob("memx.db*"):
        rest.unlink()
    old.rename(path)


async def test_a_store_of_an_older_version_is_migrated_and_its_copy_kept(tmp_path: Path, app_on: AppOn) -> None:
    write_run(tmp_path, "20260301-090000-bbbb", questions=12)
    as_first_written(tmp_path)
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        assert "12 of 12 shown" in shown(pilot)
        await press(pilot, "m", "f")
        assert shown(pilot).splitlines()[3].startswith(">  fix")
    with closing(sqlite3.connect(tmp_path / "memx.v1.bak.db")) as copy:
        assert copy.execute("SELECT count(*) FROM traces").fetchone() == (12,)
        assert copy.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_store_of_a_newer_version_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", questions=4)
    with closing(sqlite3.connect(tmp_path / "memx.db")) as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="Upgrade memx"):
        debug(tmp_path, run_id=None, question_id=None)


async def test_what_another_process_writes_is_followed(tmp_path: Path, app_on: AppOn) -> None:
    write_run(tmp_path, "r1", questions=4)
    app = app_on(tmp_path)
    code = "import sys; from pathlib import Path; from tests.stores import write_run\n"
    code += "for n in range(3): write_run(Path(sys.argv[1]), f'r{n + 2}', questions=6)"
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter")
        writing = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
        while writing.poll() is None:
            await press(pilot, "/", "o", "backspace", "enter", "j", "m", "f", "u")
            app.watch_store()
        assert writing.returncode == 0
        assert "4 of 4 shown" in shown(pilot)
        app.watch_store()
        await press(pilot, "escape")
        assert "4 runs" in shown(pilot)


async def test_a_run_that_is_deleted_while_it_is_watched_says_so(tmp_path: Path, app_on: AppOn) -> None:
    write_run(tmp_path, "r1", questions=4)
    write_run(tmp_path, "r2", questions=4, state="running")
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "w")
        assert isinstance(app.screen, WatchScreen)
        delete_run(tmp_path, "r2")
        app.watch_store()
        await press(pilot)
        assert "no run named 'r2'" in shown(pilot)
        await press(pilot, "enter", "escape", "escape")
        app.watch_store()
        await press(pilot)
        assert "1 run " in shown(pilot)


async def test_nothing_is_started_where_the_store_is_gone(tmp_path: Path, app_on: AppOn) -> None:
    directory = tmp_path / "store"
    write_run(directory, "r1", questions=4)
    app = app_on(directory)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot)
        shutil.rmtree(directory)
        await press(pilot, "n", "enter")
        assert isinstance(app.screen, ErrorScreen)
        assert "No such file or directory" in str(app.screen.error)
        assert app.jobs == []
        await press(pilot, "escape", "j", "r", "enter", "escape")
        assert app.is_running
