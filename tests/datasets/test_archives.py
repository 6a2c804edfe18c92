"""Archives as sources: unpacked once, never outside their folder."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from memx.adapters.datasets.archives import unpacked
from memx.adapters.datasets.opening import open_dataset
from memx.errors import InputError
from tests.datasets.builders import locomo_sample, longmemeval_row, write


def tar(path: Path, members: dict[str, bytes], link: str = "") -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo("link.json")
            info.type, info.linkname = tarfile.SYMTYPE, link
            packed.addfile(info)
    return path


def test_datasets_in_archives(tmp_path: Path) -> None:
    locomo = json.dumps([locomo_sample()]).encode()
    with zipfile.ZipFile(tmp_path / "locomo-main.zip", "w") as packed:
        packed.writestr("locomo-main/README.md", "x")
        packed.writestr("locomo-main/data/locomo10.json", locomo)
    assert [case.case_id for case in open_dataset("locomo", tmp_path / "locomo-main.zip").cases()] == ["conv-1"]
    path = tar(tmp_path / "data.tar.gz", {"longmemeval_oracle.json": json.dumps([longmemeval_row()]).encode()})
    assert [case.case_id for case in open_dataset("longmemeval", path).cases()] == ["q1"]
    before = unpacked(path).stat().st_mtime_ns
    assert unpacked(path).stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "name", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "..\\evil.json", "C:/evil.json"]
)
@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_member_that_leads_out_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("good.json", "[]")
            packed.writestr(name, "[]")
    else:
        tar(path, {"good.json": b"[]", name: b"[]"})
    with pytest.raises(InputError, match="leads out of the archive") as caught:
        unpacked(path)
    assert f"data.{kind}" in caught.value.message and "evil.json" in caught.value.message
    assert not list(tmp_path.parent.glob("evil.json"))


def test_links_and_damage_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"link\.json: is a link or device"):
        unpacked(tar(tmp_path / "a.tar.gz", {}, link="/etc/passwd"))
    good = tar(tmp_path / "b.tar.gz", {"x.json": b"1" * 100_000}).read_bytes()
    with pytest.raises(InputError, match="is no sound archive"):
        unpacked(write(tmp_path / "c.tar.gz", good[:-20]))
    with pytest.raises(InputError, match="is no sound archive"):
        unpacked(write(tmp_path / "d.zip", b"PK\x03\x04 nothing"))
    with pytest.raises(InputError, match="holds no file"):
        unpacked(tar(tmp_path / "e.tar", {}))
