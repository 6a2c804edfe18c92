"""The page "trace": timings, retrieval metrics, what the memory system declared, and the whole trace as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from memx.engine.record import Record
from memx.engine.store import codec
from memx.model import RankMetrics
from memx.tui.document import Line


def trace_page(record: Record, raw: bool = True) -> list[Line]:
    """Everything else that was observed; ``raw`` adds the trace as indented JSON."""
    trace = record.trace
    lines = [Line(f"run {record.run.run_id}  attempt {trace.attempt}  namespace {trace.entity_id}", "dim"), Line()]
    lines.append(Line("timings, in milliseconds", "head"))
    longest = max(trace.timings_ms.values(), default=0.0)
    for name, value in trace.timings_ms.items():
        filled = round(24 * value / longest) if longest > 0 else 0
        lines.append(Line(f"{value:>12,.1f}  {'#' * filled}", "text", f"  {name:<14}"))
    if not trace.timings_ms:
        lines.append(Line("none were taken", "dim", "  "))
    if trace.metrics is not None:
        lines += [Line(), Line("retrieval metrics", "head")]
        lines += _level("turn", trace.metrics.turn) + _level("session", trace.metrics.session)
    if trace.declared:
        lines += [Line(), Line("declared by the memory system", "head")]
        lines += [Line(_one_line(value), "text", f"  {name:<14}  ") for name, value in trace.declared.items()]
    if raw:
        lines += [Line(), Line("the whole trace", "head")]
        text = json.dumps(json.loads(codec.dumps(asdict(trace))), indent=1, ensure_ascii=False)
        lines += [Line(row, "dim") for row in text.splitlines()]
    return lines


def _level(name: str, level: RankMetrics) -> list[Line]:
    ks = sorted(level.recall_any)
    head = "".join(f"{f'@{k}':>7}" for k in ks)
    rows = (("recall any", level.recall_any), ("recall all", level.recall_all), ("ndcg", level.ndcg_any))
    lines = [Line(f"{head}   mrr {level.mrr:.3f}", "dim", f"  {name:<14}")]
    for label, values in rows:
        lines.append(
            Line("".join(f"{values[k]:>7.3f}" if k in values else f"{'-':>7}" for k in ks), "text", f"    {label:<12}")
        )
    return lines


def _one_line(value: object) -> str:
    return value if isinstance(value, str) else codec.dumps(value)
