"""Broken files: one InputError each that names file, place and way out; hypothesis looks for any that escapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memx.adapters.datasets.reading import read_json
from memx.errors import InputError

GOOD = json.dumps([{"id": "a", "text": "héllo"}], ensure_ascii=False)

BROKEN = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \r\n\t", "the file is empty"),
    "truncated object": (b'[{"a": 1}, {"b"', "line 1 column 16: the JSON ends in the middle"),
    "truncated text": (b'[\n{"a": "xy', "line 2 column 7: the JSON ends in the middle"),
    "two values": (b'{"a": 1}\n{"a": 2}', "line 2 column 1: a second JSON value begins here"),
    "not JSON": (b"hello there", "line 1 column 1: is not JSON"),
    "a web page": (b"<!DOCTYPE html><html></html>", "is a web page"),
    "misplaced comma": (b'[{"a": 1,, "b": 2}]', "line 1 column 10: is not JSON"),
    "NaN": (b'[{"a": NaN}]', "NaN is no JSON value"),
    "Infinity": (b"[-Infinity]", "-Infinity is no JSON value"),
    "repeated key": (b'[{"question_id": "q7", "a": 1, "a": 2}]', "the key 'a' stands twice in one object (object with"),
    "huge integer": (b"[" + b"9" * 5000 + b"]", "holds a number that cannot be read"),
    "nested deep": (b"[" * 200_000, "is nested too deep"),
    "UTF-16": (GOOD.encode("utf-16"), "is UTF-16 or UTF-32"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), "is UTF-16 or UTF-32"),
    "Latin-1": (b'\n["caf\xe9"]', "line 2: byte 6 is not UTF-8"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is a binary file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_file_gives_one_clear_line(tmp_path: Path, name: str) -> None:
    content, words = BROKEN[name]
    path = tmp_path / "data.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_json(path)
    shown = str(caught.value)
    assert words in shown and shown.startswith(str(path)) and "\n" not in shown


def test_a_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace(",", ",\r\n").encode())
    assert read_json(path) == json.loads(GOOD)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    for path, words in (
        (tmp_path, "is a directory"),
        (tmp_path / "x", "no such file"),
        (loop, "leads back to itself"),
        (Path("/dev/zero"), "is a device"),
    ):
        with pytest.raises(InputError, match=words):
            read_json(path)


def test_a_huge_single_line_cut_off_gives_a_short_message(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(b'["' + b"x" * 50_000_000)
    with pytest.raises(InputError, match="the JSON ends in the middle") as caught:
        read_json(path)
    assert len(str(caught.value)) < 300


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda t: t.encode("utf-8", "surrogatepass")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_nothing_but_an_input_error_escapes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(content)
    try:
        read_json(path)
    except InputError as error:
        assert "\n" not in str(error)


@given(st.integers(min_value=1, max_value=60))
def test_every_cut_of_a_file_is_found(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "data.json"
    content = json.dumps([{"question": "why?", "evidence": ["D1:1"], "n": 12.5}, {"ok": True}])
    path.write_text(content[: min(cut, len(content) - 1)])
    with pytest.raises(InputError):
        read_json(path)
