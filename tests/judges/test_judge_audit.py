"""The judge audit: planted answers are counted, and the figure stands on every report of a run with that judge."""

import json
from pathlib import Path

import pytest

from memx.cli.main import run_command

SMALL = ["--dataset", "tests.engine.worlds:Small"]


def test_an_audit_stands_on_reports_of_its_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMX_DIR", str(tmp_path))

    def call(*arguments: str) -> str:
        assert run_command(list(arguments)) == 0
        return " ".join(capsys.readouterr().out.split())

    run = call("run", *SMALL, "--adapter", "tests.engine.worlds:Forgetful", "--top-k", "1")
    assert "the judge is not audited yet: memx calibrate --judge offline" in run
    audit = call("calibrate", *SMALL, "--judge", "offline", "--seed", "0")
    assert "a denial of the gold 0.0 %" in audit and "gold in a sentence 100.0 %" in audit
    for report in (call("runs", "show"), call("export", "--format", "md"), call("export", "--format", "html")):
        assert "planted answers to" in report and "false accepts" in report
    judge = json.loads(call("export", "--format", "json"))["judge"]
    assert judge["audit"]["false_rejects"]["n"] == 0 and judge["audit"]["false_accepts"]["d"] > 20
