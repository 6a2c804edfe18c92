"""``memx debug`` where there is no terminal to draw on, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from memx.cli.debug import command
from memx.errors import StoreError, UnknownNameError
from memx.text.gate import printable
from memx.tui.document import cells
from tests.stores import write_run

HEAVY = ("torch", "faiss", "openai", "scipy", "numpy", "sqlite_utils", "onnxruntime")


def record(directory: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        command, ["--dir", str(directory), *arguments], catch_exceptions=False, standalone_mode=False
    )
    return result.output


def test_without_a_question_it_is_the_first_fail_of_the_newest_run(store_dir: Path) -> None:
    text = record(store_dir)
    assert text.startswith("conv-1:q00  FAIL  extraction > never_stored\n")
    assert "20260301-090000-bbbb" in text


def test_a_record_holds_all_that_explains_the_question(store_dir: Path) -> None:
    text = record(store_dir, "conv-3:q14", "--plain", "--run", "20260228")
    for words in (
        "20260228-080000-aaaa", "gold        15 March 2024", "stage       retrieval > ranked_below_k",
        "BELOW THE CUT at 10", "---- cut at 10", "semantic 0.800", "24 added, 0 removed", "LOSES <",
        "would be kept if  k >= 13",
    ):  # fmt: skip
        assert words in text
    assert all(cells(line) <= 80 for line in text.splitlines())


def test_hostile_texts_are_printed_in_full_and_written_out(hostile_dir: Path) -> None:
    text = record(hostile_dir)
    assert printable(text)
    assert all(cells(line) <= 80 for line in text.splitlines())
    assert text.count("x") > 100_000


def test_what_cannot_be_shown_is_said(store_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no question named 'conv-1:q0'\. Did you mean conv-1:q"):
        record(store_dir, "conv-1:q0")
    with pytest.raises(UnknownNameError, match="no run named 'x'"):
        record(store_dir, "--run", "x")
    with pytest.raises(StoreError, match="memx run"):
        record(tmp_path)
    write_run(tmp_path, "r1", questions=4, outcomes=("PASS", "UNJUDGED"))
    with pytest.raises(StoreError, match=r"run r1 has no FAIL \(2 PASS, 2 UNJUDGED\)"):
        record(tmp_path)


@pytest.mark.parametrize(
    ("code", "banned"),
    [
        ("import memx.tui.app, memx.tui.screens.help", HEAVY),
        # What starting, pricing and stopping runs from inside imports.
        ("import memx.tui.screens.watch, memx.tui.screens.form, memx.engine.estimate, memx.engine.probing", HEAVY),
        ("import memx.engine.background, memx.engine.store.search, memx.adapters.registry", HEAVY),
        ("import memx.cli.debug, memx.cli.record", ("textual", "rich", *HEAVY)),
    ],
)  # fmt: skip
def test_no_heavy_package_is_imported(code: str, banned: tuple[str, ...]) -> None:
    script = f"import sys\n{code}\nprint(*(name for name in {banned!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
