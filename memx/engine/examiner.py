"""From a candidate to a verdict and, where it fails, a diagnosis: the last steps of a question, run or re-judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from memx.adapters.failures import INFRASTRUCTURE, read_failure, words_of
from memx.diagnose.contract import AsksModel, Embed, History
from memx.diagnose.diagnoser import Diagnoser
from memx.engine.answers import fit_context
from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.redaction import redact_text
from memx.errors import MemxError, ModelError
from memx.model import CandidateSource, Decider, Outcome, Retrieved, StepFailure, Trace, Verdict
from memx.text.gate import shortened

#: An adapter's error may hold a whole reply; so many characters of it are kept.
_SAID_CHARS = 1000
UNJUDGED = Verdict(Outcome.UNJUDGED, Decider.MEMX, "not yet judged")


class Examiner:
    """Judges and diagnoses the questions of one case; safe to share between threads.

    Args:
        history: the case and its snapshots.
        errata: corrections of the dataset by question id.
        context_budget: tokens that the candidate could see; None for no limit.
        model: the last rung of the relevance ladder; None asks no model.
    """

    def __init__(
        self,
        history: History,
        judge: Judge,
        *,
        embed: Embed | None,
        errata: Mapping[str, Any] | None,
        context_budget: int | None,
        model: AsksModel | None = None,
    ) -> None:
        self.turns = history.case.turns()
        self.facts = history.after.by_id()
        self._judge = judge
        self._budget = context_budget
        self._diagnoser = Diagnoser(history, embed=embed, errata=errata, model=model)

    def sources(self, fact_id: str) -> tuple[str, ...]:
        """Ids of the turns that a stored fact came from, as far as the memory system tells."""
        fact = self.facts.get(fact_id)
        return fact.source_turn_ids if fact else ()

    def dates(self, retrieved: Sequence[Retrieved]) -> dict[str, datetime]:
        """When each retrieved fact came about: when its source turn was said, else the store's own time."""
        found = {}
        for item in retrieved:
            said = next((self.turns[i].at for i in self.sources(item.fact_id) if i in self.turns), None)
            when = said or (self.facts[item.fact_id].created_at if item.fact_id in self.facts else None)
            if when is not None:
                found[item.fact_id] = when
        return found

    def seen(self, trace: Trace) -> int:
        """How many of the top k the candidate could see: those that fit the context budget."""
        if self._budget is None or trace.candidate is None or trace.candidate.source is CandidateSource.ADAPTER:
            return len(trace.top)
        dates = None if trace.candidate.source is CandidateSource.RETRIEVED else self.dates(trace.top)
        return len(fit_context(trace.top, self._budget, dates).used)

    def examine(self, trace: Trace, timings: dict[str, float]) -> Trace:
        """The trace with a verdict on its candidate, and a diagnosis where that is FAIL.

        A judge model that fails for good leaves it UNJUDGED, with the step and message.
        """
        assert trace.candidate is not None
        bare = replace(trace, verdict=UNJUDGED, diagnosis=None, error=None)
        evidence = tuple(self.turns[i] for i in trace.question.evidence if i in self.turns)
        seen = self.seen(trace)
        shown = trace.top[:seen]
        sources = {item.fact_id: self.sources(item.fact_id) for item in shown}
        try:
            with timed(timings, "judge"):
                verdict = self._judge.judge(JudgeItem(trace.question, trace.candidate, evidence, shown, sources))
        except ModelError as error:
            return unjudged(bare, "judge", error)
        judged = replace(bare, verdict=verdict)
        if verdict.outcome is not Outcome.FAIL:
            return judged
        with timed(timings, "diagnose"):
            retrieved = [*shown, *map(_cut_off, trace.top[seen:]), *trace.retrieved[len(trace.top) :]]
            found = self._diagnoser.diagnose(trace.question, retrieved, trace.top_k, trace.candidate, verdict)
        return replace(judged, diagnosis=found)


def _cut_off(item: Retrieved) -> Retrieved:
    """A fact of the top k that the context budget kept from the candidate, marked for diagnosis."""
    return replace(item, metadata={**item.metadata, "in_context": False})


def unjudged(trace: Trace, step: str, error: ModelError) -> Trace:
    """The trace without a verdict, because a model failed in ``step``."""
    found = failure(step, error)
    verdict = Verdict(Outcome.UNJUDGED, Decider.MEMX, f"{step} failed: {found.message}")
    return replace(trace, verdict=verdict, error=found)


def failure(step: str, error: BaseException) -> StepFailure:
    """What broke, with keys and tokens left out."""
    name, under = type(error).__name__, INFRASTRUCTURE.get(read_failure(error).kind, "")
    if isinstance(error, MemxError):
        said = shortened(redact_text(error.message), _SAID_CHARS)
        return StepFailure(step, said, name, redact_text(error.hint), under)
    # "'x'" says nothing where "KeyError: 'x'" does.
    said = shortened(f"{name}: {redact_text(words_of(error)) or 'no message'}", _SAID_CHARS)
    return StepFailure(step, said, name, infrastructure=under)


@contextmanager
def timed(timings: dict[str, float], step: str) -> Iterator[None]:
    """Adds the milliseconds spent inside to ``timings[step]``."""
    started = time.perf_counter()
    try:
        yield
    finally:
        timings[step] = timings.get(step, 0.0) + (time.perf_counter() - started) * 1000
