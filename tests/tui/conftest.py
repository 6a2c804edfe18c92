"""Stores and an app under test: real files, a real app on a headless terminal."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memx.engine.store.reader import Store
from memx.tui.app import DebugApp
from memx.tui.widgets.filterline import FilterLine
from tests.stores import write_run
from tests.tui.driving import TellingApp


@pytest.fixture(autouse=True)
def complains_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a pause in the typing."""
    monkeypatch.setattr(FilterLine, "COMPLAINS_AFTER_S", 0.0)


@pytest.fixture(scope="session", autouse=True)
def rare_collections() -> Iterator[None]:
    """The collector does not look through all of Textual again and again; it cost an eighth of these tests' time."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


@pytest.fixture(scope="session")
def store_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of 36 questions each, every cause among them; not to be written to."""
    directory = tmp_path_factory.mktemp("store")
    write_run(directory, "20260228-080000-aaaa", adapter="word-overlap")
    write_run(directory, "20260301-090000-bbbb")
    return directory


@pytest.fixture(scope="session")
def hostile_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every text is one that a careless program chokes on."""
    directory = tmp_path_factory.mktemp("hostile")
    write_run(directory, "20260301-090000-evil", hostile=True)
    return directory


@pytest.fixture(scope="session")
def template_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of 24 questions; copied for tests that write."""
    directory = tmp_path_factory.mktemp("template")
    endings = ("PASS", "absent", "synthesis", "never_stored")
    write_run(directory, "20260228-080000-aaaa", questions=24, outcomes=endings)
    write_run(directory, "20260301-090000-bbbb", questions=24)
    return directory


@pytest.fixture
def own_dir(tmp_path: Path, template_dir: Path) -> Path:
    """Two runs of 24 questions that a test may write to."""
    return Path(shutil.copytree(template_dir, tmp_path / "store"))


@pytest.fixture
def app_on() -> Iterator[Callable[[Path], DebugApp]]:
    """Makes apps on a directory and closes their stores at the end."""
    stores: list[Store] = []

    def make(directory: Path) -> DebugApp:
        pair = Store(directory), Store(directory)
        stores.extend(pair)
        return TellingApp(*pair)

    yield make
    for store in stores:
        store.close()
