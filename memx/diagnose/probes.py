"""Counterfactual probes: one failed question again with one thing changed. The first change that turns FAIL to PASS is
the cause; the counts over a run say what each change would mend.

Here is what a probe changes and how results are read; running them (query, answer, judge) is the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memx.model import Outcome, Retrieved, Trace, Turn, Verdict


class ProbeKind(StrEnum):
    """What a probe changes, in the order in which probes are tried: the cheapest explanation first."""

    OTHER_JUDGE = "other judge"
    GOLD_EVIDENCE = "gold evidence alone"
    TWICE_K = "2k facts"
    FOUR_TIMES_K = "4k facts"
    DATES_AND_SPEAKERS = "dates and speakers added"
    WITHOUT_STALE = "stale facts removed"


@dataclass(frozen=True, slots=True)
class Probe:
    """One question with one change.

    Attributes:
        context: the facts to answer from; None keeps the candidate and asks another judge.
        needs: how deep the stored retrieval must be; deeper than what a trace holds asks the memory system again.
    """

    kind: ProbeKind
    question_id: str
    context: tuple[Retrieved, ...] | None
    needs: int = 0

    @property
    def asks_answer(self) -> bool:
        """True when the answer model is asked again."""
        return self.context is not None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of one probe."""

    probe: Probe
    verdict: Verdict

    @property
    def flips(self) -> bool:
        """True when the change turned FAIL to PASS."""
        return self.verdict.outcome is Outcome.PASS


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """All probes of a run.

    Attributes:
        first: by question id, the first change that turned it; None where none did.
        fixes: how many questions each change turns, whether or not an earlier one does too.
        tried: how many questions each change was tried on.
        depths: the k of a change that only asks for more facts, where it is the same for all questions.
    """

    first: Mapping[str, ProbeKind | None]
    fixes: Mapping[ProbeKind, int]
    tried: Mapping[ProbeKind, int]
    depths: Mapping[ProbeKind, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """One line per change: the share of probed questions it mends."""
        return [
            f"{100 * self.fixes[kind] / count:.0f} % fixed by {self._name(kind)} ({self.fixes[kind]} of {count})"
            for kind, count in self.tried.items()
            if count
        ]

    def _name(self, kind: ProbeKind) -> str:
        return f"k = {self.depths[kind]}" if kind in self.depths else str(kind)


def plan(
    trace: Trace,
    turns: Mapping[str, Turn],
    kinds: Sequence[ProbeKind] = tuple(ProbeKind),
    deeper: Callable[[int], Sequence[Retrieved]] | None = None,
) -> list[Probe]:
    """The probes of one failed question, in the order in which to try them, without those that would change nothing.

    Args:
        turns: the case's turns by id.
        deeper: asks the memory system for so many facts; without it only what the trace holds is used, and a probe
            that would need more is left out.
    """
    question, top = trace.question, trace.top
    evidence = [turns[one] for one in question.evidence if one in turns]
    found: dict[ProbeKind, Probe] = {ProbeKind.OTHER_JUDGE: Probe(ProbeKind.OTHER_JUDGE, question.question_id, None)}
    if evidence:
        rows = tuple(Retrieved(turn.turn_id, _dated(turn, turn.content)) for turn in evidence)
        found[ProbeKind.GOLD_EVIDENCE] = Probe(ProbeKind.GOLD_EVIDENCE, question.question_id, rows)
    for kind, times in ((ProbeKind.TWICE_K, 2), (ProbeKind.FOUR_TIMES_K, 4)):
        depth = times * trace.top_k
        facts = tuple(trace.retrieved[:depth])
        if len(facts) < depth and deeper is not None:
            facts = tuple(deeper(depth)[:depth])
        if len(facts) > len(top):
            found[kind] = Probe(kind, question.question_id, facts, depth)
    said_by = _turn_of(top, turns)
    if said_by:
        rows = tuple(
            replace(row, content=_dated(said_by[row.fact_id], row.content)) if row.fact_id in said_by else row
            for row in top
        )
        if rows != tuple(top):
            found[ProbeKind.DATES_AND_SPEAKERS] = Probe(ProbeKind.DATES_AND_SPEAKERS, question.question_id, rows)
    stale = (
        {fact.fact_id for fact in trace.diagnosis.facts if fact.role in ("stale", "conflicting")}
        if trace.diagnosis
        else set()
    )
    rows = tuple(row for row in top if row.fact_id not in stale)
    if len(rows) < len(top):
        found[ProbeKind.WITHOUT_STALE] = Probe(ProbeKind.WITHOUT_STALE, question.question_id, rows)
    return [found[kind] for kind in ProbeKind if kind in kinds and kind in found]


def price(probes: Iterable[Probe]) -> tuple[int, int]:
    """(answers, verdicts) that the probes would ask of models, before any cache."""
    listed = list(probes)
    return sum(probe.asks_answer for probe in listed), len(listed)


def summarize(results: Iterable[ProbeResult]) -> ProbeSummary:
    """Read the results of all probes of a run."""
    order = list(ProbeKind)
    first: dict[str, ProbeKind | None] = {}
    fixes = dict.fromkeys(order, 0)
    tried = dict.fromkeys(order, 0)
    listed = sorted(results, key=lambda one: order.index(one.probe.kind))
    for result in listed:
        kind, question_id = result.probe.kind, result.probe.question_id
        tried[kind] += 1
        fixes[kind] += result.flips
        if result.flips and first.get(question_id) is None:
            first[question_id] = kind
        first.setdefault(question_id, None)
    depths: dict[ProbeKind, set[int]] = {}
    for result in listed:
        if result.probe.needs:
            depths.setdefault(result.probe.kind, set()).add(result.probe.needs)
    same = {kind: min(found) for kind, found in depths.items() if len(found) == 1}
    return ProbeSummary(first, fixes, tried, same)


def _dated(turn: Turn, content: str) -> str:
    """A text with when it was said and by whom in front, where it does not say so itself."""
    speaker = "" if turn.speaker in content else f"{turn.speaker}: "
    day = f"{turn.at:%d %B %Y}" if turn.at else ""
    return f"[{day}] {speaker}{content}" if day and day not in content else f"{speaker}{content}"


def _turn_of(rows: Sequence[Retrieved], turns: Mapping[str, Turn]) -> dict[str, Turn]:
    found = {}
    for row in rows:
        named = row.metadata.get("source_turn_ids") or ()
        known = [turns[one] for one in named if one in turns] if isinstance(named, (list, tuple)) else []
        if known:
            found[row.fact_id] = known[0]
    return found
