"""Commands over stored runs: each prints what the store holds, and their exit codes are an interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import memx
from memx.cli.main import run_command
from memx.model import Decider, Measure, Trace, Value
from tests.engine import worlds
from tests.engine.worlds import Small

Call = Callable[..., tuple[int, str, str]]


class RetrievedCount(Measure):
    """How many facts came back."""

    name = "retrieved-count"
    reads = ("retrieved",)
    decider = Decider.MEMX

    def measure(self, traces: Sequence[Trace]) -> list[Value]:
        return [Value(self.name, self.decider, float(len(t.retrieved)), t.question.question_id) for t in traces]


class ReadsNonsense(RetrievedCount):
    """Reads a field that no trace has."""

    name = "reads-nonsense"
    reads = ("mood",)


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[memx.Run, memx.Run]:
    """A run that loses three questions, and one that loses none."""
    worse = memx.run(worlds.Forgetful, Small(), directory=tmp_path, top_k=1)
    better = memx.run(worlds.Notebook, Small(), directory=tmp_path, top_k=1, snapshots="session")
    return worse, better


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the directory of the two runs; gives exit code, stdout, stderr."""
    monkeypatch.setenv("MEMX_DIR", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_show_filters_and_counts(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    worse, _ = two_runs
    code, out, err = call("show", worse.run_id, "--where", "stage:retrieval case=case-1")
    assert code == 0 and "case-1:q1" in out and "case-0:q1" not in out
    assert "1 of 1 matching shown, 9 in all" in err
    _, out, _ = call("show", worse.run_id, "--json", "--limit", "0")
    assert len([json.loads(line) for line in out.splitlines()]) == 9
    assert call("show", worse.run_id, "--where", "nonsense:1")[0] == 2
    assert call("show", worse.run_id, "--sort", "mood")[0] == 2
    _, out, _ = call("export", worse.run_id, "--where", "verdict:fail")
    assert [q["question_id"] for q in json.loads(out)["questions"]] == [f"case-{n}:q1" for n in range(3)]


def test_compare_and_gate(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    worse, better = two_runs
    code, out, _ = call("compare", better.run_id, worse.run_id)
    assert code == 0 and "only A 3" in out and "case-2:q1" in out and "retrieval: absent" in out
    assert call("gate", better.run_id, worse.run_id, "--max-regressions", "2")[0] == 1
    assert call("gate", better.run_id, worse.run_id, "--max-regressions", "3")[0] == 0
    assert call("gate", better.run_id, worse.run_id, "--max-regressions", "2", "--p", "0.05")[0] == 0
    assert call("gate", worse.run_id, better.run_id, "--p", "0.9")[0] == 0
    assert call("gate", worse.run_id, better.run_id)[0] == 2


def test_explain_names_mechanisms_and_signals(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    _, out, _ = call("explain", two_runs[0].run_id)
    assert "3 diagnosed FAILs, 3 of them retrieval" in out and "mechanism" in out
    assert call("explain", two_runs[1].run_id)[1].strip().endswith("no near misses")


def test_show_fact_tells_by_which_session(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    _, better = two_runs
    _, out, _ = call("show-fact", "D2:0", "--run", better.run_id, "--case", "case-1")
    assert "after session D2: stored, active" in out and "Small talk number 2." in out
    code, _, err = call("show-fact", "D2:0", "--run", better.run_id)
    assert code == 2 and "--case" in err
    code, _, err = call("show-fact", "D9:0", "--run", better.run_id)
    assert code == 2 and "Did you mean D" in err
    _, _, err = call("show-fact", "none-like-it", "--run", better.run_id)
    assert err.count(" D1:0,") == 1


def test_a_measure_reads_stored_traces(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    code, out, _ = call("measure", "--measure", "tests.cli.test_stored_runs:RetrievedCount")
    assert code == 0 and out.count("retrieved-count") == 9
    code, _, err = call("measure", "--measure", "tests.cli.test_stored_runs:ReadsNonsense")
    assert code == 2 and "mood" in err


def test_calibrate_prints_the_confusion_matrix(call: Call) -> None:
    code, out, _ = call("calibrate", "--seed", "0", "--faults", "60")
    assert code == 0 and "stage accuracy" in out and "planted \\ found" in out
    code, out, err = call("calibrate", "--all", "--seed", "0", "--faults", "15")
    assert code == 0 and "2 of 2: verbatim store without provenance" in err
    assert [row.split()[:2] for row in out.splitlines()[-2:]] == [["verbatim", "yes"], ["verbatim", "no"]]


def test_a_summary_says_how_often_its_stages_are_right(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    worse, _ = two_runs
    assert "not calibrated here yet: memx calibrate" in call("runs", "show", worse.run_id)[1]
    call("calibrate", "--seed", "0", "--faults", "15")
    shown = " ".join(call("runs", "show", worse.run_id)[1].split())
    assert "calibrated on demo, verbatim store with provenance: of 15 planted faults stage right in" in shown


def test_weights_are_learned_on_half_of_the_cases_and_judged_on_the_other(call: Call, tmp_path: Path) -> None:
    small = ["--dataset", "tests.engine.worlds:Small", "--retrieval-mode", "full", "--optimize"]
    code, _, err = call("run", *small, "--dry-run-weights")
    assert code == 0 and "held out" in err and not (tmp_path / "weights.json").exists()
    call("run", *small)
    learned = json.loads((tmp_path / "weights.json").read_text())
    assert "semantic" in learned and "novelty" in learned
    weights = f"weights={tmp_path / 'weights.json'}"
    assert call("run", *small[:-1], "--adapter-option", weights)[0] == 0
    assert call("run", "--dataset", "tests.engine.worlds:Small", "--optimize")[0] == 2
    assert call("run", "--dataset", "tests.engine.worlds:Small", "--dry-run-weights")[0] == 2


def test_probes_say_which_change_turns_a_failure(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    worse, better = two_runs
    code, out, err = call("probe", worse.run_id)
    assert code == 0 and "3 failed questions, 9 probes: no model is asked" in err
    assert out.count("gold evidence alone") == 4
    assert "100 % fixed by gold evidence alone (3 of 3)" in out
    assert call("probe", better.run_id)[0] == 2
    code, _, err = call("probe", worse.run_id, "--question", "case-0:q0")
    assert code == 2 and "Only a FAIL" in err
    code, _, err = call("probe", worse.run_id, "--question", "case-0:q")
    assert code == 2 and "Did you mean case-0:q" in err


def test_a_beginning_of_several_ids_is_said_to_be_one(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    code, _, err = call("runs", "kill", "2")
    assert code == 2 and "2 runs begin with '2'" in err and two_runs[0].run_id in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "--limit", "-1"],
        ["explain", "--limit", "-1"],
        ["mark", "--where", "verdict:fail", "--as", "fix", "--limit", "-1"],
        ["compare", "a", "b", "--limit", "-1"],
        ["gate", "a", "b", "--max-regressions", "-1"],
        ["gate", "a", "b", "--p", "5"],
        ["probe", "--concurrency", "0"],
        ["calibrate", "--faults", "0"],
        ["calibrate", "--judge", "offline", "--limit", "0"],
    ],
)
def test_numbers_out_of_range_are_refused(call: Call, arguments: list[str]) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and "is not in the range" in err


def test_a_judge_is_audited_by_planted_answers(call: Call) -> None:
    code, out, _ = call("calibrate", "--judge", "offline", "--seed", "0", "--limit", "40")
    assert code == 0
    rows = {line[2:36].strip(): line for line in out.splitlines()}
    assert rows["gold as it is"].split()[4] == "100.0"
    assert float(rows["another question's gold"].split("%")[0].split()[-1]) < 20
    assert "false accepts" in out


def test_report_sums_up_retrieval(two_runs: tuple[memx.Run, memx.Run], call: Call) -> None:
    worse, better = two_runs
    _, out, _ = call("report", worse.run_id, "--json")
    found = json.loads(out)
    assert (found["evaluable"], found["turn"]["recall_any"]["1"]) == (9, pytest.approx(6 / 9))
    assert found["first_ranks"] == {"not found": 3}
    _, out, _ = call("report", worse.run_id, better.run_id, "--compare")
    assert worse.run_id in out and better.run_id in out and "1.000" in out
