"""Running counterfactual probes on stored failures: answer and judge again with one thing changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memx.diagnose.probes import Probe, ProbeKind, ProbeResult, plan
from memx.engine.answers import Answerer
from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.store.reader import Store, Where
from memx.errors import ModelError, UsageError
from memx.model import Candidate, CandidateSource, Decider, Outcome, Trace, Turn, Verdict


@dataclass(frozen=True, slots=True)
class Probing:
    """A failed question and its probes, ready to run; nothing has been asked yet."""

    trace: Trace
    turns: Mapping[str, Turn]
    sources: Mapping[str, tuple[str, ...]]
    probes: tuple[Probe, ...]


def planned(store: Store, run_id: str, question_id: str | None = None, *, other_judge: bool = False) -> list[Probing]:
    """The probes of one failed question, or of all of a run, from what the store holds.

    Args:
        other_judge: a second judge is at hand, so the stored candidate may be judged by it.

    Raises:
        UnknownNameError: the run holds no such question.
        UsageError: the question did not fail, or no question of the run did.
    """
    kinds = tuple(kind for kind in ProbeKind if other_judge or kind is not ProbeKind.OTHER_JUDGE)
    if question_id is None:
        traces = list(store.traces(run_id, Where("outcome = 'FAIL'")))
    else:
        store.find_question(question_id, run_id)
        traces = [store.trace(run_id, question_id)]
        if traces[0].verdict.outcome is not Outcome.FAIL:
            raise UsageError(f"question {question_id} is {traces[0].verdict.outcome}", "Only a FAIL can be probed.")
    if not traces:
        raise UsageError(f"run {run_id} has no FAIL", "There is nothing to probe.")
    found = []
    cases: dict[tuple[str, int], tuple[Mapping[str, Turn], Mapping[str, tuple[str, ...]]]] = {}
    for trace in traces:
        key = (trace.case_id, trace.attempt)
        if key not in cases:
            turns = store.turns(run_id, trace.case_id)
            facts = store.snapshot(run_id, *key).facts
            # A probe with the gold evidence alone shows turns as if they were facts.
            sources = {turn_id: (turn_id,) for turn_id in turns} | {f.fact_id: f.source_turn_ids for f in facts}
            cases[key] = (turns, sources)
        found.append(Probing(trace, *cases[key], tuple(plan(trace, cases[key][0], kinds))))
    return found


def run_probes(
    probing: Probing, answerer: Answerer, judge: Judge, other_judge: Judge | None = None
) -> list[ProbeResult]:
    """The verdict after each change, in the order of the plan; a model that fails leaves UNJUDGED."""
    return [ProbeResult(probe, _verdict(probe, probing, answerer, judge, other_judge)) for probe in probing.probes]


def _verdict(probe: Probe, probing: Probing, answerer: Answerer, judge: Judge, other_judge: Judge | None) -> Verdict:
    trace = probing.trace
    context = trace.top if probe.context is None else probe.context
    try:
        if probe.context is None:
            candidate = trace.candidate or Candidate("", CandidateSource.MODEL)
            judge = other_judge or judge
        else:
            candidate = answerer.answer(trace.question, context, None)
        evidence = tuple(probing.turns[i] for i in trace.question.evidence if i in probing.turns)
        sources = {row.fact_id: probing.sources.get(row.fact_id, ()) for row in context}
        return judge.judge(JudgeItem(trace.question, candidate, evidence, tuple(context), sources))
    except ModelError as error:
        return Verdict(Outcome.UNJUDGED, Decider.MEMX, f"model failed: {error.message}")


def first_flips(results: Sequence[ProbeResult]) -> list[tuple[str, str]]:
    """(question id, first change that turned it to PASS, or ``none``), in the order of the results."""
    from memx.diagnose.probes import summarize

    return [(question_id, str(kind or "none")) for question_id, kind in summarize(results).first.items()]
