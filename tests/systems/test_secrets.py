"""A secret option of an adapter reaches neither the store, nor last_run.json, nor the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memx.adapters.options import Option, read_options
from memx.cli.main import run_command
from memx.errors import AdapterError
from memx.model import Session
from tests.engine.worlds import Notebook

SECRET = "correct horse battery staple"


class Guarded(Notebook):
    """Needs a passphrase, and says it in every error."""

    name = "guarded"
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "passphrase": Option("", env="GUARDED_PASSPHRASE", secret=True),
        "fail": "no",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = read_options(self.name, self.OPTIONS, options)
        if self.options["fail"] == "start":
            raise RuntimeError(f"login with {self.options['passphrase']} failed")

    def describe(self) -> Mapping[str, Any]:
        return {"server": f"opened with {self.options['passphrase']}"}

    def ingest_session(self, session: Session) -> None:
        if self.options["fail"] == "ingest":
            raise AdapterError(f"{self.options['passphrase']} is refused")
        super().ingest_session(session)


@pytest.mark.parametrize("fail", ["no", "start", "ingest"])
@pytest.mark.parametrize("given_by", ["option", "environment"])
def test_a_secret_is_written_nowhere(
    fail: str, given_by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--limit", "1", "--adapter", "tests.systems.test_secrets:Guarded"]
    arguments += ["--adapter-option", f"fail={fail}"]
    if given_by == "option":
        arguments += ["--adapter-option", f"passphrase={SECRET}"]
    else:
        monkeypatch.setenv("GUARDED_PASSPHRASE", SECRET)
    code = run_command(arguments)
    assert code == {"no": 0, "start": 3, "ingest": 3}[fail]
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    for path in Path(os.environ["MEMX_DIR"]).rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
