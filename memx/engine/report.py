"""The analyzer: what the stored traces of a run say of its retrieval, ranks and timings, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, quantiles

from memx.engine.store.reader import Store
from memx.model import RankMetrics

#: Cut-offs that reports show.
KS = (1, 3, 5, 10, 30, 50)
_BUCKETS = ((1, 1), (2, 3), (4, 5), (6, 10), (11, 20), (21, 30), (31, 50))


@dataclass(frozen=True, slots=True)
class Level:
    """Means over the evaluable questions at one level (turns or sessions)."""

    recall_any: dict[int, float]
    recall_all: dict[int, float]
    ndcg_any: dict[int, float]
    mrr: float


@dataclass(frozen=True, slots=True)
class Report:
    """The numbers of one run.

    Attributes:
        evaluable: questions with retrieval metrics; abstentions and questions without evidence have none.
        first_ranks: how many evidence turns of failed questions stand at which ranks; the last is "not found".
        timings_ms: by step: median and 95th percentile.
        declared: how often each finish reason or policy was declared by the memory system.
        tags: how many questions control arms call guessable, reader-bound and retrieval-bound; empty without them.
    """

    run_id: str
    questions: int
    evaluable: int
    abstentions: int
    turn: Level | None
    session: Level | None
    first_ranks: dict[str, int]
    retrieved: float
    timings_ms: dict[str, tuple[float, float]]
    declared: dict[str, int]
    tags: dict[str, int] = field(default_factory=dict)


def report(store: Store, run_id: str) -> Report:
    """Read the traces of a run once and sum them up."""
    traces = list(store.traces(run_id))
    measured = [trace.metrics for trace in traces if trace.metrics is not None]
    ranks: Counter[str] = Counter()
    timings: dict[str, list[float]] = {}
    declared: Counter[str] = Counter()
    for trace in traces:
        for step, ms in trace.timings_ms.items():
            timings.setdefault(step, []).append(ms)
        for piece in trace.diagnosis.evidence if trace.diagnosis else ():
            ranks[_bucket(piece.rank)] += 1
        for name in ("policy", "finish_reason"):
            if name in trace.declared:
                declared[f"{name} {trace.declared[name]}"] += 1
    return Report(
        run_id=run_id,
        questions=len(traces),
        evaluable=len(measured),
        abstentions=sum(trace.question.abstention for trace in traces),
        turn=_level([one.turn for one in measured]),
        session=_level([one.session for one in measured]),
        first_ranks={name: ranks[name] for name in [*map(_name, _BUCKETS), "beyond", "not found"] if ranks[name]},
        retrieved=fmean([len(trace.retrieved) for trace in traces]) if traces else 0.0,
        timings_ms={step: (median(values), _p95(values)) for step, values in timings.items()},
        declared=dict(declared.most_common()),
        tags=dict(Counter(store.tags(run_id).values()).most_common()),
    )


def report_text(found: Report) -> str:
    """The report as plain lines."""
    lines = [
        f"run {found.run_id}: {found.questions} questions, {found.evaluable} with retrieval metrics, "
        f"{found.abstentions} abstentions left out; {found.retrieved:.1f} facts came back on average",
        "",
        "                    " + "".join(f"{'@' + str(k):>8}" for k in KS),
    ]
    for name, level in (("turn", found.turn), ("session", found.session)):
        if level is None:
            lines.append(f"{name:<10} no evidence, or the memory system does not tell where a fact came from")
            continue
        for metric in ("recall_any", "recall_all", "ndcg_any"):
            values = getattr(level, metric)
            lines.append(f"{name:<8}{metric:<12}" + "".join(f"{values[k]:>8.3f}" for k in KS))
        lines.append(f"{name:<8}{'mrr':<12}{level.mrr:>8.3f}")
    if found.first_ranks:
        ranks = "  ".join(f"{name}: {count}" for name, count in found.first_ranks.items())
        lines += ["", f"ranks of the evidence of failed questions   {ranks}"]
    if found.tags:
        lines += ["", "control arms   " + "  ".join(f"{name}: {count}" for name, count in found.tags.items())]
    lines += ["", "step          median ms    95 % ms"]
    lines += [f"{step:<14}{middle:>9.2f}  {high:>9.2f}" for step, (middle, high) in found.timings_ms.items()]
    if found.declared:
        lines += ["", *(f"{name}: {count}" for name, count in found.declared.items())]
    return "\n".join(lines)


def compare_rows(reports: Sequence[Report]) -> list[list[str]]:
    """Session-level R@1, R@3, R@5, R@10 and NDCG@10, turn-level R@10 and MRR, a row per run."""
    rows = []
    for one in reports:
        if one.session is None or one.turn is None:
            rows.append([one.run_id, *["-"] * 7])
            continue
        session = [f"{one.session.recall_any[k]:.3f}" for k in (1, 3, 5, 10)]
        rest = [one.session.ndcg_any[10], one.turn.recall_any[10], one.turn.mrr]
        rows.append([one.run_id, *session, *(f"{value:.3f}" for value in rest)])
    return rows


def _level(measured: Sequence[RankMetrics]) -> Level | None:
    if not measured:
        return None

    def mean(name: str) -> dict[int, float]:
        return {k: fmean(getattr(one, name)[k] for one in measured) for k in KS}

    return Level(mean("recall_any"), mean("recall_all"), mean("ndcg_any"), fmean(one.mrr for one in measured))


def _bucket(rank: int | None) -> str:
    if rank is None:
        return "not found"
    return next((_name(bucket) for bucket in _BUCKETS if bucket[0] <= rank <= bucket[1]), "beyond")


def _name(bucket: tuple[int, int]) -> str:
    return str(bucket[0]) if bucket[0] == bucket[1] else f"{bucket[0]}-{bucket[1]}"


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
