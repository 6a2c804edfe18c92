"""The Diagnostic Summary: counts, accuracy with its interval, stages and causes, read from the store."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import NormalDist
from typing import Any

from memx.adapters.datasets.errata import errata_for
from memx.engine.store.reader import QuestionRow, Store, Where
from memx.model import CAUSES_OF, Stage

_FAIL = Where("outcome = 'FAIL'")
_NUMBERS = re.compile(r"\d+(?:[.,:-]\d+)*")


@dataclass(frozen=True, slots=True)
class Share:
    """``n`` of ``d`` with a 95 % Wilson score interval; all None when there is nothing to divide by."""

    n: int
    d: int

    @property
    def value(self) -> float | None:
        """n / d."""
        return self.n / self.d if self.d else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Low and high end of the Wilson score interval (Wilson 1927) at 95 %."""
        if not self.d:
            return None
        z = NormalDist().inv_cdf(0.975)
        p, n = self.n / self.d, self.d
        centre = p + z * z / (2 * n)
        spread = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))

    def as_dict(self) -> dict[str, Any]:
        """value, n, d, low, high."""
        low, high = self.interval or (None, None)
        return {"value": self.value, "n": self.n, "d": self.d, "low": low, "high": high}


_STEPS_THAT_BREAK = {"store": "nothing stored", "judge": "model", "answer": "model"}


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run found. ``passed + failed + unjudged + errors = questions``.

    Attributes:
        adjusted: accuracy without the questions whose gold the errata overlay disputes; None when there are none.
        abstentions: questions whose right answer is a refusal, whatever their verdict.
        by_category: passed of judged; UNJUDGED and ERROR are in no denominator.
        stages: FAILs per stage, all five stages named.
        undiagnosed: FAILs without a diagnosis.
        telling: three FAILs that show the commonest mechanisms best.
        judge: agreement and flip_rate of a judge model that was asked more than once; None otherwise.
        llm: calls, cached, input_tokens, output_tokens, cost.
        broken: questions that broke, by what broke: ``not ready``, ``nothing stored``, ``model``, or the step at which
            the infrastructure (no connection, timeout, rate limit, server error) or the memory system failed.
        diagnosis_calls: requests of diagnosis among them, cached ones included.
        findings: oddities of the memory system, each with the number of cases that it was seen in; commonest first.
        left_behind: namespaces with data that stay in the memory system.
        controls: what control arms say of the run: reader, arms and tags; None where none ran.
    """

    questions: int
    passed: int
    failed: int
    unjudged: int
    errors: int
    abstentions: int
    accuracy: Share
    by_category: Mapping[str, Share]
    stages: Mapping[str, int]
    causes: Mapping[str, int]
    undiagnosed: int
    telling: tuple[QuestionRow, ...]
    llm: Mapping[str, Any]
    diagnosis_calls: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)
    adjusted: Share | None = None
    judge: Mapping[str, float | None] | None = None
    findings: tuple[tuple[str, int], ...] = ()
    left_behind: tuple[str, ...] = ()
    controls: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The ``summary`` object of ``last_run.json``."""
        return {
            "questions": self.questions,
            "passed": self.passed,
            "failed": self.failed,
            "unjudged": self.unjudged,
            "errors": self.errors,
            "abstentions": self.abstentions,
            "accuracy": self.accuracy.as_dict(),
            "accuracy_adjusted": None if self.adjusted is None else self.adjusted.as_dict(),
            "by_category": {name: {"n": share.n, "d": share.d} for name, share in self.by_category.items()},
            "stages": dict(self.stages),
            "causes": dict(self.causes),
            "broken": dict(self.broken),
            "llm": dict(self.llm),
            "judge": None if self.judge is None else dict(self.judge),
            "findings": [{"text": text, "cases": cases} for text, cases in self.findings],
            "left_behind": list(self.left_behind),
            "controls": None if self.controls is None else dict(self.controls),
        }


def summarize(
    store: Store,
    run_id: str,
    llm: Mapping[str, Any] | None = None,
    judge: Mapping[str, float | None] | None = None,
    left_behind: Sequence[str] = (),
    gone: Collection[str] = (),
) -> Summary:
    """The summary of the traces that a run has stored so far.

    Args:
        left_behind: namespaces that stay in the memory system, beside those that the run told of before.
        gone: namespaces that it told of before and that are empty now.
    """
    outcomes = store.facets(run_id, "outcome")
    passed, failed = outcomes.get("PASS", 0), outcomes.get("FAIL", 0)
    categories = store.facets(run_id, "category")
    passed_by = store.facets(run_id, "category", Where("outcome = 'PASS'"))
    failed_by = store.facets(run_id, "category", _FAIL)
    stages = store.facets(run_id, "stage", _FAIL)
    causes = store.facets(run_id, "cause", _FAIL)
    told = store.run(run_id).summary
    return Summary(
        questions=sum(outcomes.values()),
        passed=passed,
        failed=failed,
        unjudged=outcomes.get("UNJUDGED", 0),
        errors=outcomes.get("ERROR", 0),
        abstentions=store.count(run_id, Where("abstention")),
        accuracy=Share(passed, passed + failed),
        by_category={
            name: Share(passed_by.get(name, 0), passed_by.get(name, 0) + failed_by.get(name, 0))
            for name in sorted(categories)
        },
        stages={str(stage): stages.get(str(stage), 0) for stage in Stage},
        causes=causes,
        undiagnosed=failed - sum(stages.values()),
        telling=_telling(store, run_id, causes),
        adjusted=_adjusted(store, run_id),
        judge=judge,
        findings=_findings(store, run_id),
        left_behind=tuple(
            dict.fromkeys((*(one for one in told.get("left_behind", ()) if one not in gone), *left_behind))
        ),
        controls=told.get("controls"),
        diagnosis_calls=_diagnosis_calls(store, run_id),
        broken=_broken(store, run_id),
        llm=llm or {"calls": 0, "cached": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0},
    )


def _broken(store: Store, run_id: str) -> dict[str, int]:
    rows = store.query(
        "SELECT json_extract(error, '$.step') AS step, json_extract(error, '$.kind') AS kind, "
        "json_extract(error, '$.infrastructure') AS under, count(*) AS n "
        "FROM traces WHERE run_id = ? AND error IS NOT NULL GROUP BY step, kind, under ORDER BY n DESC, step",
        [run_id],
    )
    found: Counter[str] = Counter()
    for row in rows:
        if row["kind"] == "AdapterTimeoutError" and row["step"] == "ready":
            found["not ready"] += row["n"]
        elif row["step"] in _STEPS_THAT_BREAK:
            found[_STEPS_THAT_BREAK[row["step"]]] += row["n"]
        elif row["under"]:
            found[f"infrastructure: {row['under']} at {row['step']}"] += row["n"]
        else:
            found[f"memory system failed at {row['step']}"] += row["n"]
    return dict(found.most_common())


def _diagnosis_calls(store: Store, run_id: str) -> int:
    asked = "SELECT sum(json_extract(diagnosis, '$.llm_calls')) AS n FROM traces WHERE run_id = ? AND outcome = 'FAIL'"
    return store.query(asked, [run_id])[0]["n"] or 0


def _findings(store: Store, run_id: str) -> tuple[tuple[str, int], ...]:
    """Findings of all cases; those that differ in numbers alone count as one, told in the words of the first."""
    words: dict[str, str] = {}
    cases: Counter[str] = Counter()
    for case in store.cases(run_id):
        for finding in case.findings:
            key = _NUMBERS.sub("#", finding)
            words.setdefault(key, finding)
            cases[key] += 1
    return tuple((words[key], count) for key, count in cases.most_common())


def _adjusted(store: Store, run_id: str) -> Share | None:
    run = store.run(run_id)
    errata = errata_for(run.dataset, run.dataset_version)
    disputed = [question_id for question_id in errata if errata.disputes_gold(question_id)]
    listed = "question_id IN (SELECT value FROM json_each(?))"
    ids = (json.dumps(disputed),)
    if not disputed or not store.count(run_id, Where(listed, ids)):
        return None
    passed = store.count(run_id, Where(f"outcome = 'PASS' AND NOT {listed}", ids))
    return Share(passed, passed + store.count(run_id, Where(f"outcome = 'FAIL' AND NOT {listed}", ids)))


def stage_of(cause: str) -> str:
    """The stage that a cause belongs to."""
    return next(str(stage) for stage, causes in CAUSES_OF.items() if cause in causes)


def _telling(store: Store, run_id: str, causes: Mapping[str, int]) -> tuple[QuestionRow, ...]:
    """The surest FAILs of the commonest causes, three in all, from different cases where there are."""
    by_cause = [
        store.questions(run_id, Where("outcome = 'FAIL' AND cause = ?", (cause,)), sort="confidence", limit=50)
        for cause in list(causes)[:3]
    ]
    told: list[QuestionRow] = []
    while len(told) < 3 and any(by_cause):
        for rows in by_cause:
            if not rows or len(told) == 3:
                continue
            cases = {row.case_id for row in told}
            chosen = next((row for row in rows if row.case_id not in cases), rows[0])
            rows.remove(chosen)
            told.append(chosen)
    return tuple(told)
