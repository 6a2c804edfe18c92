"""Every screen and tab of the UI has a command that prints the same facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from memx.cli.main import run_command
from memx.diagnose.clusters import clusters
from memx.engine.api import mcnemar_exact
from memx.engine.record import Record
from memx.engine.store.filters import parse
from memx.engine.store.marks import Mark, Marks, Triage
from memx.engine.store.pairs import pair_rows
from memx.engine.store.reader import Store
from memx.tui.app import DebugApp
from memx.tui.document import Line, plain
from memx.tui.listing import Listing
from memx.tui.pages import facts, notes, observed, timeline, verdict
from memx.tui.question_rows import QuestionRows
from memx.tui.screens import compare, runs
from memx.tui.screens.clusters import ClusterRows
from memx.tui.screens.summary import SummaryScreen
from tests.stores import write_run

Prints = Callable[..., str]
A, B = "20260228-080000-aaaa", "20260301-090000-bbbb"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two runs, one with a marked question."""
    write_run(tmp_path, A, adapter="word-overlap", outcomes=("PASS", "absent", "synthesis"))
    write_run(tmp_path, B)
    found = Store(tmp_path)
    run = found.run(B)
    marks = Marks(found, "ana")
    marks.apply(run, marks.changes(run, ["conv-3:q14"], Mark.FIX, "k is *too* small"))
    return found


@pytest.fixture
def prints(store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Prints:
    """Runs a command on the store; gives what it prints, with single blanks."""
    monkeypatch.setenv("MEMX_DIR", str(store.directory))

    def run(*arguments: str) -> str:
        assert run_command(list(arguments)) == 0
        return words(capsys.readouterr().out)

    return run


def words(text: str) -> str:
    return " ".join(text.split())


def lines_of(page: Sequence[Line]) -> list[str]:
    return [words(row) for row in plain(page, 80).splitlines() if row.strip()]


def test_runs_and_the_pane_below_them(store: Store, prints: Prints) -> None:
    listed = prints("runs", "ls")
    rows = runs.RunList(store.runs())
    for index, run in enumerate(rows.runs):
        cells = rows.cells(index)
        for name in ("run", "system", "dataset", "score", "fail", "state"):
            assert cells[name][0].strip() in listed
        shown = prints("runs", "show", run.run_id)
        assert f"{run.started_at:%m-%d %H:%M}" in listed
        summary, settings = run.summary, run.settings
        assert f"{summary['passed']} PASS {summary['failed']} FAIL" in shown and f"judge {run.judge}" in shown
        assert all(f"{name} {value}" in shown for name, value in settings.items() if value)


async def test_the_summary_of_a_run(store: Store, prints: Prints) -> None:
    with closing(Store(store.directory)) as search_store:
        app = DebugApp(store, search_store)
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.press("i")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert isinstance(app.screen, SummaryScreen)
            shown = app.screen.copied()[0]
    printed = prints("runs", "show", B)
    assert "Diagnostic Summary" in shown
    assert all(words(row) in printed for row in shown.splitlines())


def test_questions_under_a_filter(store: Store, prints: Prints) -> None:
    where = "stage:retrieval rank<20"
    listing = Listing(store, store.run(B))
    listing.accept(where, 0, *listing.search(where, 0))
    triage = Marks(store).current(store.run(B))
    table = QuestionRows(listing, lambda question_id: triage.get(question_id, Triage()), ())
    printed = prints("show", B, "--where", where)
    for index in range(len(table)):
        cells = table.cells(index)
        for name in ("mark", "verdict", "stage", "cause", "rank", "category", "question"):
            assert cells[name][0] in printed
    assert printed.count(" FAIL ") == len(table) == len(store.questions(B, parse(where)))


def test_the_tabs_of_a_question(store: Store, prints: Prints) -> None:
    run = store.run(B)
    record = Record(store, run, "conv-3:q14")
    marks = Marks(store)
    printed = prints("debug", "conv-3:q14", "--run", B, "--plain")
    stands, history = marks.current(run)["conv-3:q14"], marks.history(run, "conv-3:q14")
    tabs = {
        "verdict": verdict.verdict_page(record),
        "evidence": verdict.evidence_page(record),
        "diff": facts.diff_page(record),
        "near misses": facts.near_misses_page(record),
        "timeline": timeline.timeline_page(record),
        "trace": observed.trace_page(record, raw=False),
        "notes": notes.notes_page(stands, history),
    }
    for name, page in tabs.items():
        missing = [line for line in lines_of(page) if line not in printed]
        assert not missing, name


def test_the_plain_record_shows_what_was_seen_and_what_matters_below(store: Store, prints: Prints) -> None:
    record = Record(store, store.run(B), "conv-3:q14")
    printed = prints("debug", "conv-3:q14", "--run", B, "--plain")
    section = printed[printed.index("Retrieved ---") : printed.index("Store diff ---")]
    ranks = [int(rank) for rank in re.findall(r"(?<![\w.]) ?(\d+) [fg]\d\d ", section)]
    assert ranks == [*range(1, 11), 13]
    assert f"{len(record.trace.retrieved) - 11} more came back below the cut" in section


def test_clusters(store: Store, prints: Prints) -> None:
    rows = ClusterRows(clusters(store.traces(B)), Marks(store).triaged(store.run(B)))
    printed = prints("explain", B)
    for index, found in enumerate(rows.found):
        cells = rows.cells(index)
        numbers = f"{cells['count'][0]} {cells['of FAILs'][0]} +{found.worth:.1f} {cells['triaged'][0]}"
        assert words(f"{found.mechanism} {numbers}") in printed
        assert found.example in printed and found.hypothesis in printed


@pytest.mark.parametrize("where", ["", "type:temporal"])
def test_compare(store: Store, prints: Prints, where: str) -> None:
    a, b = store.run(A), store.run(B)
    rows = pair_rows(store, a, b, parse(where))
    only_a, only_b = (sum(row.group == name for row in rows) for name in ("B worse", "B better"))
    lines = plain(compare.four_way(a, b, rows, mcnemar_exact(only_a, only_b)), 200)
    printed = prints("compare", A, B, "--where", where, "--group", "all", "--limit", "0")
    assert {float(figure) for figure in re.findall(r"[+-]?\d+\.\d+", lines)} <= {
        float(figure) for figure in re.findall(r"[+-]?\d+(?:\.\d+)?", printed)
    }
    numbers = [re.findall(r"\b\d+\b", line)[:2] for line in lines.splitlines() if line.startswith(("A pass", "A fail"))]
    assert words(f"A pass {' '.join(numbers[0])} A fail {' '.join(numbers[1])} same: judge yes") in printed
    table = compare.PairRows(rows)
    for index in range(len(table)):
        cells = table.cells(index)
        assert all(cells[name][0] in printed for name in ("question id", "category", "A says", "B says", "question"))
    assert printed.count("conv-") == len(rows)


def test_compare_lists_one_group(store: Store, prints: Prints) -> None:
    rows = pair_rows(store, store.run(A), store.run(B))
    for option, group in (("worse", "B worse"), ("better", "B better"), ("both-fail", "both fail")):
        printed = prints("compare", A, B, "--group", option, "--limit", "0")
        assert printed.count("conv-") == sum(row.group == group for row in rows) > 0


def test_saved_filters(store: Store, prints: Prints) -> None:
    Marks(store).save_filter("near", "cause:ranked_below_k")
    assert prints("show", "--filters") == "near: cause:ranked_below_k"
