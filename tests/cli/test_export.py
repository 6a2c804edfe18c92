"""``memx export`` in every format: true to the store, the same each time, and unharmed by any text."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from memx.cli.export import FORMATS
from memx.cli.main import run_command
from memx.engine.export import FORMATS as WRITERS
from memx.text.gate import printable
from tests.stores import write_run

Call = Callable[..., tuple[int, str, str]]
#: Elements of HTML that have no end.
_VOID = {"meta", "input", "br"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 36 questions with every cause, and one whose texts are hostile."""
    directory = tmp_path_factory.mktemp("store")
    write_run(directory, "plain")
    write_run(directory, "evil", hostile=True)
    return directory


@pytest.fixture
def call(store: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the store; gives exit code, stdout, stderr."""
    monkeypatch.setenv("MEMX_DIR", str(store))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command(list(arguments))
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return run


class Page(HTMLParser):
    """Checks that elements nest, and gathers what a page holds."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("run", ["plain", "evil"])
def test_a_file_is_what_stdout_gets_and_the_same_each_time(call: Call, tmp_path: Path, format_: str, run: str) -> None:
    code, out, _ = call("export", run, "--format", format_)
    assert code == 0 and len(out) > 1000
    target = tmp_path / "out"
    code, nothing, err = call("export", run, "--format", format_, "-o", str(target))
    assert (code, nothing) == (0, "") and "wrote" in err
    assert target.read_bytes().decode() == out
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_help_names_the_formats_that_there_are() -> None:
    assert list(FORMATS) == list(WRITERS)


@pytest.mark.parametrize("run", ["plain", "evil"])
def test_junit_has_one_case_per_question(call: Call, run: str) -> None:
    _, out, _ = call("export", run, "--format", "junit")
    suite = ElementTree.fromstring(out).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    counted = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        str(n) for n in (36, counted["failure"], counted["error"], counted["skipped"])
    ]
    assert [child.tag for child in suite if child.tag != "testcase"] == ["properties", "system-out", "system-err"]
    failure = next(case.find("failure") for case in cases if case.get("name") == "conv-3:q14")
    assert failure is not None and failure.get("type") == "retrieval.ranked_below_k"
    assert str(failure.get("message")).startswith("retrieval > ranked_below_k: fact f15 ranked 13, cut at 10")
    assert "evidence D2:7: stored as f15 > active > rank 13 of 21 > BELOW THE CUT at 10" in str(failure.text)


def test_html_holds_what_failed_and_loads_nothing(call: Call) -> None:
    _, out, _ = call("export", "plain", "--format", "html")
    page = page_of(out)
    questions = [attrs for tag, attrs in page.tags if tag == "details"]
    assert [attrs["data-verdict"] for attrs in questions].count("FAIL") == 17 == len(questions) - 1
    assert not {"src", "href", "action", "onclick"} & {name for _, attrs in page.tags for name in attrs}
    assert not re.search(r"https?:|@import|url\(", out)
    for words in ("ranked_below_k", "BELOW THE CUT at 10", "LOSES", "Would be kept if k &gt;= 13", "memx calibrate"):
        assert words in out
    _, one, _ = call("export", "plain", "--format", "html", "--where", "id=conv-2:q01")
    assert 'data-verdict="PASS"' in one and one.count("<details") == 1


def test_hostile_texts_stay_text_in_html_and_markdown(call: Call) -> None:
    _, out, _ = call("export", "evil", "--format", "html")
    page = page_of(out)
    assert {tag for tag, _ in page.tags} == {
        tag for tag, _ in page_of(call("export", "plain", "--format", "html")[1]).tags
    }
    assert printable(out) and "\\x1b[31mred" in out and "98,0" in out
    _, out, _ = call("export", "evil", "--format", "md")
    assert printable(out) and len(re.findall(r"^### ", out, re.MULTILINE)) == 18


def test_script_in_a_note_or_question_is_shown_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memx.engine.store.marks import Marks
    from memx.engine.store.reader import Store

    write_run(tmp_path, "r1", questions=2, outcomes=("absent",))
    store = Store(tmp_path)
    Marks(store).annotate(store.run(), "conv-1:q00", "</script><script>alert(1)</script>\"'<img src=x onerror=y>")
    text = "".join(WRITERS["html"](store, "r1", None))
    tags = [tag for tag, _ in page_of(text).tags]
    assert tags.count("script") == 1 and "img" not in tags and "alert(1)" in text


def test_marks_stand_in_every_format(tmp_path: Path) -> None:
    from memx.engine.store.filters import parse
    from memx.engine.store.marks import Mark, Marks
    from memx.engine.store.reader import Store

    write_run(tmp_path, "r1", questions=6, outcomes=("absent", "PASS"))
    store = Store(tmp_path)
    marks = Marks(store)
    marks.apply(store.run(), marks.changes(store.run(), ["conv-1:q00"], Mark.WONT, "a known gap"))
    for name, write in WRITERS.items():
        text = "".join(write(store, "r1", parse("mark:wont")))
        assert "wont" in text and "a known gap" in text and "conv-1:q00" in text, name
        assert "conv-3:q02" not in text, name


def test_result_has_a_record_per_question_and_a_manifest_beside_it(call: Call, tmp_path: Path) -> None:
    call("export", "plain", "--format", "result", "-o", str(tmp_path / "r.json"))
    found = json.loads((tmp_path / "r.json").read_text())
    assert (found["question_count"], found["retrieval_evaluable"], found["abstentions_excluded"]) == (36, 35, 0)
    record = next(one for one in found["records"] if one["question_id"] == "conv-3:q14")
    assert (record["expected_rank"], record["retrieved"], len(record["candidates"])) == (2, True, 21)
    assert set(record) >= {
        "query", "expected", "expected_ids", "expected_rank", "retrieved", "candidates", "runtime_ms", "diagnostics",
        "metrics", "abstention",
    }  # fmt: skip
    assert set(record["candidates"][0]) == {"rank", "id", "text", "metadata", "score", "final_score", "diagnostics"}
    manifest = json.loads((tmp_path / "r.json.manifest.json").read_text())
    assert manifest["evaluation"]["evaluable"] == 35 and manifest["evaluation"]["k_values"][-1] == 50


def test_csv_keeps_every_text_apart(call: Call) -> None:
    rows = list(csv.DictReader(io.StringIO(call("export", "evil", "--format", "csv")[1])))
    assert len(rows) == 36 and None not in rows[0]


def test_a_place_that_cannot_be_written_is_said(call: Call, tmp_path: Path) -> None:
    code, _, err = call("export", "plain", "-o", str(tmp_path / "no" / "such" / "x.json"))
    assert code == 2 and "x.json: cannot be written: No such file or directory" in err and ".x.json." not in err
    (tmp_path / "folder").mkdir()
    assert call("export", "plain", "-o", str(tmp_path / "folder"))[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    code, out, err = call("export", "plain", "--format", "html", "--where", "rank<x")
    assert (code, out) == (2, "") and "filter, column 6" in err


def test_a_report_says_how_often_its_stages_are_right(tmp_path: Path) -> None:
    from memx.engine.store.calibrations import Calibration, keep_calibration
    from memx.engine.store.reader import Store

    write_run(tmp_path, "r1", questions=4, outcomes=("absent", "PASS"))
    for faults, right in ((50, 10), (200, 190)):
        keep_calibration(tmp_path, Calibration("demo", "verbatim", True, faults, right, right - 2), (0, 1))
    keep_calibration(tmp_path, Calibration("other", "verbatim", True, 10, 1, 1), (0,))
    for name in ("html", "md"):
        text = "".join(WRITERS[name](Store(tmp_path), "r1", None))
        assert "planted into demo" in text and "planted into other" not in text
        assert "verbatim store with provenance: stage 95.0 % (91.0 to 97.3), cause 94.0 %, of 200 faults" in text
