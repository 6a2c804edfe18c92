"""The Diagnostic Summary as plain text, 80 columns: what ``memx run`` and ``memx runs show`` print."""

from __future__ import annotations

import textwrap

from memx.engine.record import TAG_MEANING
from memx.engine.store.reader import QuestionRow, RunRow
from memx.engine.summary import Share, Summary, stage_of
from memx.text.gate import safe, safe_line

_WIDTH = 80
_BAR = 20
_MOST_FINDINGS = 5


def summary_text(run: RunRow, summary: Summary) -> str:
    """The summary of a run: accuracy, categories, stages and causes, three telling failures, what to type next."""
    lines = [
        "Diagnostic Summary",
        safe_line(f"  run {run.run_id}  {run.dataset} x {run.adapter}  judge {run.judge}  {_state(run)}", _WIDTH),
        "",
        *_accuracy(summary),
        *textwrap.wrap(safe(audit_line(run)), _WIDTH, initial_indent="  audit     ", subsequent_indent=" " * 12),
        "",
        *_categories(summary),
        *_stages(summary),
        *_calibrated(run, summary),
        *_telling(summary),
        *_controls(run, summary),
        *_memory_system(run, summary),
        *_not_a_measurement(run),
        *_next(run, summary),
    ]
    return "\n".join(lines)


def percent(share: Share) -> str:
    """``68.2 %``, or ``-`` when there is nothing to divide by."""
    return "-" if share.value is None else f"{share.value * 100:.1f} %"


def _state(run: RunRow) -> str:
    return "" if run.state == "finished" else run.state.upper()


def accuracy_line(summary: Summary) -> str:
    """Accuracy with its interval."""
    share = summary.accuracy
    line = f"accuracy  {percent(share)}  ({share.n} of {share.d} judged)"
    if share.interval:
        line += f"  95 % interval {share.interval[0] * 100:.1f} to {share.interval[1] * 100:.1f} %"
    return line


def audit_line(run: RunRow) -> str:
    """How often the run's judge was wrong on planted answers, or how to measure that."""
    if run.judge_audit is None:
        return f"the judge is not audited yet: memx calibrate --judge {run.judge}"
    dataset, (accepts, wrong, rejects, right) = run.judge_audit
    kinds = (("false accepts", Share(accepts, wrong)), ("false rejects", Share(rejects, right)))
    told = (
        f"{name} {percent(share)} ({low * 100:.1f} to {high * 100:.1f})"
        for name, share in kinds
        for low, high in [share.interval or (0.0, 1.0)]
    )
    return f"planted answers to {dataset}: {', '.join(told)}"


def counts_line(summary: Summary) -> str:
    """How many questions ended in which way."""
    return (
        f"{summary.questions} questions: {summary.passed} PASS  {summary.failed} FAIL  {summary.unjudged} UNJUDGED"
        f"  {summary.errors} ERROR"
    )


def adjusted_line(share: Share) -> str:
    """Accuracy without the questions whose gold is disputed."""
    return f"adjusted  {percent(share)}  ({share.n} of {share.d}), without questions whose gold is disputed"


def _accuracy(summary: Summary) -> list[str]:
    lines = [f"  {accuracy_line(summary)}"]
    if summary.adjusted is not None:
        lines.append(f"  {adjusted_line(summary.adjusted)}")
    lines.append(f"  {counts_line(summary)}")
    if summary.broken:
        lines.append(
            "  broken    " + ", ".join(f"{count} {safe_line(what, 60)}" for what, count in summary.broken.items())
        )
    if summary.judge is not None:
        stated = {name: value for name, value in summary.judge.items() if value is not None}
        shown = "  ".join(f"{name.replace('_', ' ')} {value * 100:.1f} %" for name, value in stated.items())
        lines.append(f"  judge     {shown}")
    if summary.llm.get("calls") or summary.llm.get("cached"):
        cost = summary.llm.get("cost")
        paid = "cost not known" if cost is None else f"{cost:.4f} USD"
        told = f"; {summary.diagnosis_calls} for diagnosis" if summary.diagnosis_calls else ""
        lines.append(f"  models    {summary.llm['calls']} calls, {summary.llm['cached']} from the cache, {paid}{told}")
    if summary.abstentions and summary.unjudged:
        asking = "1 question asks" if summary.abstentions == 1 else f"{summary.abstentions} questions ask"
        lines.append(f"  {asking} for a refusal; retrieved text cannot refuse, so without an")
        lines.append("  answer such are UNJUDGED and outside the accuracy (see --answer-model).")
    return lines


def _categories(summary: Summary) -> list[str]:
    lines = ["  by category"]
    width = max((len(name) for name in summary.by_category), default=0)
    for name, share in summary.by_category.items():
        bar = "-" if share.value is None else _bar(share.value)
        lines.append(
            f"    {safe_line(name, 24):<{min(width, 24)}}  {percent(share):>7}  {share.n:>4} of {share.d:<4}  {bar}"
        )
    return [*lines, ""]


def _stages(summary: Summary) -> list[str]:
    if not summary.failed:
        return []
    lines = [f"  why {summary.failed} failed"]
    for stage, count in summary.stages.items():
        if not count:
            continue
        share = count / summary.failed
        label = "none (memory path is right)" if stage == "none" else stage
        lines.append(f"    {label:<28}{count:>5}  {share * 100:>5.1f} % of FAILs  {_bar(share)}")
        for cause, number in summary.causes.items():
            if stage_of(cause) == stage:
                lines.append(f"      {cause:<26}{number:>5}  {number / summary.failed * 100:>5.1f} %")
    if summary.undiagnosed:
        lines.append(f"    {'not diagnosed':<28}{summary.undiagnosed:>5}")
    return [*lines, ""]


def _calibrated(run: RunRow, summary: Summary) -> list[str]:
    """How often stages are right, where any are shown."""
    if not summary.failed:
        return []
    if not run.calibrations:
        return ["  stages    not calibrated here yet: memx calibrate", ""]
    one = run.calibrations[0]
    told = "with" if one.provenance else "without"
    stage, cause = Share(one.stage_right, one.faults), Share(one.cause_right, one.faults)
    words = f"calibrated on {one.dataset}, {one.store} store {told} provenance: of {one.faults} planted faults stage "
    words += f"right in {percent(stage)}, cause in {percent(cause)}"
    return [*textwrap.wrap(safe(words), _WIDTH, initial_indent="  stages    ", subsequent_indent=" " * 12), ""]


def _telling(summary: Summary) -> list[str]:
    if not summary.telling:
        return []
    lines = ["  telling failures"]
    for row in summary.telling:
        lines += _telling_one(row)
    return [*lines, ""]


def _telling_one(row: QuestionRow) -> list[str]:
    head = f"    {row.question_id}  {row.stage}: {row.cause}"
    return [
        safe_line(head, _WIDTH),
        safe_line(f"      asked  {row.question}", _WIDTH),
        safe_line(f"      gold   {row.gold}", _WIDTH),
        *_why(safe(row.reason or "")),
    ]


def _why(reason: str) -> list[str]:
    """The reason on at most two lines."""
    lines = textwrap.wrap(reason[:1000], _WIDTH - 13, max_lines=2, placeholder=" …") or [""]
    return [safe_line(f"      {label:<6} {line}", _WIDTH) for label, line in zip(("why", ""), lines, strict=False)]


def _controls(run: RunRow, summary: Summary) -> list[str]:
    """The control arms beside the run, and how many questions each tag has."""
    controls = summary.controls
    if not controls:
        return []
    accuracy = summary.accuracy
    rows = {run.adapter + " (this run)": (accuracy.value, accuracy.n, accuracy.d)}
    rows |= {name: (arm["value"], arm["n"], arm["d"]) for name, arm in controls["arms"].items()}
    width = max(map(len, rows))
    lines = ["  controls, the same questions"]
    for name, (value, n, d) in rows.items():
        shown = "-" if value is None else f"{value * 100:.1f} %"
        bar = "" if value is None else _bar(value)
        lines.append(safe_line(f"    {name:<{width}}  {shown:>7}  {n:>4} of {d:<4}  {bar}", _WIDTH))
    tags = controls["tags"]
    lines += [f"    {tags[tag]:>4} {tag:<16} {meaning}" for tag, meaning in TAG_MEANING.items() if tags[tag]]
    if not controls["reader"]:
        lines += [
            "    No model answers here: the retrieved text itself is judged, so nothing can",
            "    be guessed and no reader fails. --answer-model tells these questions apart.",
        ]
    return [*lines, ""]


def _memory_system(run: RunRow, summary: Summary) -> list[str]:
    """Oddities of the memory system, and what stays behind in it."""
    lines = []
    if summary.findings:
        lines.append("  noticed of the memory system")
        for text, cases in summary.findings[:_MOST_FINDINGS]:
            where = f"in {cases} {'case' if cases == 1 else 'cases'}: "
            lines += [f"    {line}" for line in textwrap.wrap(where + safe(text), _WIDTH - 4, subsequent_indent="  ")]
        if len(summary.findings) > _MOST_FINDINGS:
            lines.append(f"    and {len(summary.findings) - _MOST_FINDINGS} more: memx runs show")
    if summary.left_behind:
        first, count = summary.left_behind[0], len(summary.left_behind)
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(safe_line(f"  left in {run.adapter}: {first}{more} (see --cleanup)", _WIDTH))
    return [*lines, ""] if lines else []


def _not_a_measurement(run: RunRow) -> list[str]:
    reasons = run.manifest.get("not_publishable_because") or []
    if not reasons:
        return []
    return [safe_line(f"  not a measurement: {safe('; '.join(reasons))}", _WIDTH), ""]


def _next(run: RunRow, summary: Summary) -> list[str]:
    lines = []
    if run.state in ("interrupted", "failed") and "rejudged_from" not in run.manifest:
        lines.append(f"  go on     memx run --resume {run.run_id}")
    if summary.failed:
        lines.append("  next      memx debug")
    elif summary.errors:
        lines.append("  next      memx debug        (shows the step that broke)")
    else:
        lines.append("  next      memx runs ls")
    return lines


def _bar(share: float) -> str:
    filled = round(share * _BAR)
    return "#" * filled + "." * (_BAR - filled)
