"""Names to classes: built in, installed entry points, module paths; what is wrong is said before a run begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memx.adapters.registry import adapter_class, dataset_class, names
from memx.errors import UnknownNameError, UsageError

GOOD = """
import memx
class Good(memx.MemoryAdapter):
    name = "good"
    def ingest_session(self, session): pass
    def query(self, query, entity_id, top_k): return memx.QueryResult(())
    def export_state(self, entity_id): return memx.Snapshot(entity_id, (memx.Fact("f", "a fact"),))
class NoQuery(memx.MemoryAdapter):
    def ingest_session(self, session): pass
    def export_state(self, entity_id): return memx.Snapshot(entity_id, ())
class Unrelated:
    def ingest_session(self, session): pass
    def query(self, query, entity_id, top_k): pass
    def export_state(self, entity_id): pass
not_a_class = 3
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package on the path that offers an adapter by entry point."""
    (tmp_path / "good_memory_pkg.py").write_text(GOOD)
    (tmp_path / "broken_memory_pkg.py").write_text("import package_that_nobody_has\n")
    (tmp_path / "crashing_memory_pkg.py").write_text("1 / 0\n")
    (tmp_path / "exiting_memory_pkg.py").write_text("raise SystemExit(4)\n")
    info = tmp_path / "good_memory_pkg-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: good-memory-pkg\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[memx.adapters]\ngood = good_memory_pkg:Good\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_three_kinds_of_names(installed: None) -> None:
    assert adapter_class("local").name == "local"
    assert adapter_class("good").name == "good"
    assert adapter_class("good_memory_pkg:Good") is adapter_class("good")
    assert dataset_class("demo").name == "demo"
    assert "installed" in names("adapter")["good"]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("goood", UnknownNameError, "Did you mean good"),
        ("good_memory_pkg:NoQuery", UsageError, r"lacks query\(\)"),
        ("good_memory_pkg:Unrelated", UsageError, "no subclass of"),
        ("good_memory_pkg:not_a_class", UsageError, "not a class"),
        ("good_memory_pkg:Goood", UnknownNameError, "Did you mean Good"),
        ("no_such_pkg.adapter:Good", UsageError, "no module"),
        ("broken_memory_pkg:X", UsageError, "pip install package_that_nobody_has"),
        ("crashing_memory_pkg:X", UsageError, "ZeroDivisionError"),
        ("exiting_memory_pkg:X", UsageError, "SystemExit: 4"),
    ],
)
def test_what_cannot_be_used_is_said(installed: None, name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        adapter_class(name)


def test_a_file_in_the_working_directory_never_stands_in_for_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_memory_here.py").write_text(GOOD)
    for name in ("statistics", "queue", "click", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    script = "from memx.cli.main import run_command; import sys; "
    script += "sys.exit(run_command(['run', '--limit', '3', '--quiet', '--adapter', 'my_memory_here:Good']))"
    environ = {**os.environ, "MEMX_DIR": str(tmp_path / "runs"), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environ, check=False)
    assert "shadowed" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
