"""The structure holds: arrows between rooms, light imports, file sizes, and a README whose commands are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "faiss", "openai", "onnxruntime", "numpy", "textual", "rich", "sqlite_utils", "scipy", "dateutil")


def loaded_by(code: str) -> set[str]:
    """Names of the top-level packages that a fresh interpreter has loaded after running ``code``."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_arrows_between_rooms_run_one_way() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kept" in done.stdout


def test_help_loads_no_heavy_package() -> None:
    code = "import contextlib, io\nfrom memx.cli.main import run_command\n"
    code += "with contextlib.redirect_stdout(io.StringIO()):\n    assert run_command(['--help']) == 0"
    assert not loaded_by(code) & set(HEAVY)


def test_importing_memx_loads_nothing_of_it_but_itself() -> None:
    script = "import memx, sys; print([m for m in sys.modules if m.startswith('memx.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["memx.engine.api", "memx.engine.runner", "memx.engine.setup"])
def test_the_engine_runs_without_textual_and_rich(module: str) -> None:
    assert not loaded_by(f"import {module}") & {"textual", "rich", "torch", "faiss", "openai"}


def test_every_public_name_resolves() -> None:
    import memx

    for name in memx.__all__:
        assert getattr(memx, name) is not None
    with pytest.raises(AttributeError):
        _ = memx.no_such_name


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memx", "--version"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.startswith("memx, version ")


@pytest.mark.parametrize("tool", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]])
def test_the_code_is_clean(tool: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *tool], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_longer_than_a_reader_bears() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "memx").rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 500
    }
    assert not long


def test_every_command_is_documented() -> None:
    from memx.cli.main import COMMANDS

    docs = "\n".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    undocumented = [name for name in COMMANDS if not re.search(rf"\bmemx {name}\b", docs)]
    assert not undocumented
