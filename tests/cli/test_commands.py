"""The commands as a user types them: what stands on stdout, what on stderr, and the exit code."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from memx.cli.main import run_command

Call = Callable[..., tuple[int, str, str]]
SMALL = ["--dataset", "tests.engine.worlds:Small", "--adapter", "tests.engine.worlds:Forgetful", "--top-k", "1"]


@pytest.fixture
def memx_(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in an empty directory; gives exit code, stdout, stderr."""
    monkeypatch.setenv("MEMX_DIR", str(tmp_path / ".memx"))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run_command(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_run_prints_the_summary_and_says_what_to_type_next(memx_: Call) -> None:
    code, out, err = memx_("run", *SMALL)
    assert code == 0
    assert "accuracy  66.7 %  (6 of 9 judged)" in out
    assert "retrieval" in out and "memx debug" in out
    assert "judge offline" in err
    assert max(map(len, out.splitlines())) <= 80


def test_thresholds_json_and_quiet(memx_: Call) -> None:
    assert memx_("run", *SMALL, "--fail-under", "0.5")[0] == 0
    code, out, err = memx_("run", *SMALL, "--fail-under", "0.9", "--quiet")
    assert (code, out) == (1, "") and "below --fail-under" in err
    code, out, _ = memx_("run", *SMALL, "--json")
    assert code == 0 and json.loads(out)["summary"]["failed"] == 3


def test_errors_give_exit_code_3_and_name_the_step(memx_: Call) -> None:
    code, out, err = memx_(
        "run", "--dataset", "tests.engine.worlds:Small", "--adapter", "tests.engine.worlds:BreaksOnCase1"
    )
    assert code == 3
    assert "3 ERROR" in out and "ingest failed" in err and "sk-abc" not in out + err
    code, _, err = memx_("run", *SMALL, "--adapter", "tests.engine.worlds:NotReady")
    assert code == 3 and "no question could be evaluated" in err


def test_a_clumsy_memory_system_spoils_neither_the_data_nor_the_messages(memx_: Call) -> None:
    code, out, err = memx_("run", *SMALL[:2], "--adapter", "tests.engine.worlds:Clumsy", "--json")
    assert code == 3
    run = json.loads(out)
    assert (run["summary"]["passed"], run["summary"]["errors"]) == (6, 3)
    assert run["adapter"]["options"] == {} and "sk-abcdefghijklmnop" not in out
    assert "said on standard output" in err
    assert "case-1: ingest failed: Speechless: no message (0 of 2 sessions went in whole; 3 facts are stored)" in err
    assert "case-0: None (2 times)" in err and "case-0: 11 more findings of other words" in err


def test_a_search_that_hangs_is_said_and_the_first_error_is_printed_where_nothing_failed(memx_: Call) -> None:
    arguments = ("--adapter", "tests.engine.worlds:HangsWhenAsked", "--ready-timeout", "0.2", "--limit", "2")
    code, _, err = memx_("run", *SMALL[:2], *arguments)
    assert code == 3
    assert "case-0: hangs-when-asked hangs and was left; it was not closed" in err
    code, out, _ = memx_("debug", "--plain")
    assert code == 0
    assert "broke at    query: hangs-when-asked did not return from query within 0.2 s" in out
    assert "way out     Raise --ready-timeout" in out


def test_an_adapter_that_describes_nothing_is_not_told_to_have_wrong_options(memx_: Call) -> None:
    code, _, err = memx_("run", *SMALL[:2], "--adapter", "tests.engine.worlds:DescribesNothing")
    assert code == 3
    assert "describes-nothing.describe() returned NoneType" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--adapter", "locl"], "Did you mean local"),
        (["run", "--dataset", "dmo"], "Did you mean demo"),
        (["rn"], "Did you mean run"),
        (["run", "--adapter", "tests.engine.worlds:LacksExport"], "lacks export_state()"),
        (["run", "--adapter", "no.such.module:X"], "no module"),
        (["run", "--adapter", "tests.engine.worlds:Nowhere"], "no class in tests.engine.worlds named 'Nowhere'"),
        (["run", "--limit", "0"], "from 1"),
        (["run", "--skip-ingest"], "Give --entity-prefix"),
        (["run", "--top-k", "many"], "not a valid integer"),
        (["run", "--fail-under", "68"], "from 0 to 1"),
        (["run", "--adapter-option", "x"], "NAME=VALUE"),
        (["run", "--adapter-option", "no_such=1"], "no_such"),
        (["run", "--resume", "x"], "memx run"),
        (["runs", "show"], "memx run"),
        (["run", "--dataset", "locomo"], "--source"),
        (["run", "--dataset", "locomo", "--source", "/no/such/file.json"], "/no/such/file.json"),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_code_2(memx_: Call, arguments: list[str], words: str) -> None:
    code, out, err = memx_(*arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_runs_are_listed_shown_exported_and_removed(memx_: Call, tmp_path: Path) -> None:
    memx_("run", *SMALL, "--quiet")
    _, out, _ = memx_("runs", "ls", "--json")
    run_id = json.loads(out)["run_id"]
    assert run_id in memx_("runs", "ls")[1]
    _, shown, _ = memx_("runs", "show", run_id)
    assert "case-2" in shown and "accuracy" in shown
    _, exported, _ = memx_("export", run_id)
    assert exported == (tmp_path / ".memx" / "last_run.json").read_text()
    code, _, _ = memx_("export", run_id, "--format", "csv", "-o", str(tmp_path / "x.csv"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text())))
    assert code == 0 and len(rows) == 9
    assert [row["cause"] for row in rows if row["verdict"] == "FAIL"] == ["absent"] * 3
    assert memx_("runs", "rm", run_id, "--yes")[0] == 0
    assert memx_("runs", "ls")[1].strip() == ""


def test_adapters_and_datasets_are_listed_and_shown(memx_: Call) -> None:
    _, out, _ = memx_("adapters", "list")
    assert all(name in out for name in ("local", "word-overlap", "no-context", "full-context", "oracle"))
    _, out, _ = memx_("adapters", "show", "local")
    assert "mode" in out and "fusion" in out
    _, out, _ = memx_("datasets", "list")
    assert "demo" in out and "locomo" in out
    code, out, _ = memx_("datasets", "check", "demo")
    assert code == 0 and "questions  " in out


def test_a_directory_that_cannot_be_written_is_said(memx_: Call, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, _, err = memx_("run", *SMALL, "--dir", str(blocked / "x"))
    assert code == 2 and "--dir" in err


def test_keys_reach_no_file(memx_: Call, tmp_path: Path) -> None:
    secret = "verysecretvalue123"
    code, out, err = memx_(
        "run", *SMALL, "--adapter-option", f"api_key={secret}", "--base-url", f"http://u:{secret}@localhost:1/v1"
    )
    assert code == 0 and secret not in out + err
    for path in (tmp_path / ".memx").iterdir():
        if path.is_file():
            assert secret.encode() not in path.read_bytes()


def test_an_interrupt_that_a_package_turned_into_an_error_is_an_interrupt(
    memx_: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def imports(*arguments: object) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            # As packages in C do while they are being imported.
            raise ImportError("import numpy failed") from None

    monkeypatch.setattr("memx.engine.store.reader.Store.__init__", imports)
    assert memx_("runs", "ls") == (130, "", "memx: interrupted\n")
