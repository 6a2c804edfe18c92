"""The Markdown export: a summary and one section per question, to paste into an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memx.engine.export_parts import calibration_lines, chosen, facts_of, stage_rows, which
from memx.engine.record import MEANING, Record, lost_at, records, trail
from memx.engine.store.marks import Mark, Marks, Triage
from memx.engine.store.reader import Store, Where
from memx.engine.summary import summarize
from memx.engine.summary_text import accuracy_line, counts_line
from memx.text.gate import safe, shortened

_LIMIT = 1_200


def markdown_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """The summary of the run, then a section for each question that meets the condition, or that failed or broke."""
    run = store.run(run_id)
    kept = chosen(where)
    summary = summarize(store, run_id)
    lines = [f"# memx run {_code(run.run_id)}", ""]
    lines += [f"- {label}: {_code(value)}" for label, value in facts_of(run)]
    lines += ["", f"**{accuracy_line(summary)}**", "", counts_line(summary), ""]
    rows = stage_rows(summary)
    if rows:
        lines += ["| stage | cause | FAILs | share |", "|---|---|---|---|"]
        lines += [f"| {stage} | {cause} | {count} | {100 * share:.1f} % |" for stage, cause, count, share in rows]
        lines += ["", *("  \n".join(calibration_lines(run)).split("\n")), ""]
    lines += [f"{store.count(run_id, kept)} of {summary.questions} questions, those {which(where)}:", "", ""]
    yield "\n".join(lines)
    triage = Marks(store).current(run)
    for record in records(store, run, kept):
        yield markdown(record, triage.get(record.key[1], Triage())) + "\n"


def markdown(record: Record, stands: Triage | None = None) -> str:
    """Question, verdict, trail, what came back and near misses; stored texts stand in code, where nothing is markup."""
    trace = record.trace
    question, diagnosis = trace.question, trace.diagnosis
    lines = [
        f"### {_code(question.question_id)} {trace.verdict.outcome}{f': {lost_at(trace)}' if diagnosis else ''}",
        "",
        f"Run {_code(record.run.run_id)}, {_code(record.run.dataset)} by {_code(record.run.adapter)}, "
        f"category {_code(question.category)}, top {trace.top_k}.",
        "",
        f"- question: {_code(question.text)}",
        f"- gold: {_code(question.gold)}",
        f"- candidate: {_candidate(record)}",
        f"- verdict: **{trace.verdict.outcome}** by {trace.verdict.decider}: {_code(trace.verdict.why)}",
    ]
    if trace.error is not None:
        lines.append(f"- broke at {_code(trace.error.step)}: {_code(trace.error.message)}")
    if diagnosis is not None:
        lines += [
            f"- diagnosis: **{diagnosis.stage} > {diagnosis.cause}** ({diagnosis.confidence:.2f}, "
            f"{diagnosis.decided_by}): {MEANING[diagnosis.cause].format(k=trace.top_k)}",
            f"- why: {_code(diagnosis.why)}",
        ]
        if diagnosis.evidence:
            lines += ["", "| evidence | said | trail |", "|---|---|---|"]
        for piece in diagnosis.evidence:
            lines.append(f"| {_cell(piece.turn_id)} | {_cell(piece.text)} | {trail(piece, record)} |")
    if trace.retrieved:
        lines += ["", "| rank | fact | role | score | text |", "|---|---|---|---|---|"]
        for rank, item in enumerate(trace.top, start=1):
            score = "" if item.score is None else f"{item.score:.3f}"
            role = record.roles.get(item.fact_id, "")
            lines.append(f"| {rank} | {_cell(item.fact_id)} | {role} | {score} | {_cell(item.content)} |")
    for miss in diagnosis.near_misses[:1] if diagnosis else ():
        place = f"rank {miss.expected_rank}" if miss.expected_rank else "absent"
        lines += ["", f"Near miss: {_code(miss.expected_fact_id)} ({place}) against {_code(miss.winner_fact_id)}"]
        lines += [f"(rank {miss.winner_rank})", "", "| signal | expected | winner | gap |", "|---|---|---|---|"]
        lines += [f"| {_cell(s.name)} | {s.expected:.3f} | {s.winner:.3f} | {s.gap:+.3f} |" for s in miss.signals]
        if miss.would_keep:
            lines += ["", f"Would be kept if {', '.join(map(_code, miss.would_keep))}"]
    if stands is not None and stands.mark is not Mark.OPEN:
        lines += ["", f"Marked: **{stands.mark}**"]
    if stands is not None and stands.note:
        lines += ["", safe(stands.note, newlines=True)]
    return "\n".join(lines) + "\n"


def _candidate(record: Record) -> str:
    candidate = record.trace.candidate
    if candidate is None:
        return "none"
    # What was retrieved stands in the table below.
    return "the retrieved texts" if candidate.source == "retrieved" else _code(candidate.text)


def _code(text: str) -> str:
    """A stored text as a code span: one line, and fenced by more backticks than it holds itself."""
    shown = safe(shortened(text, _LIMIT)).strip()
    if not shown:
        return "(empty)"
    longest = max((len(run) for run in _ticks(shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _cell(text: str) -> str:
    # A bar ends a table cell, in code too, unless it is escaped (GitHub Flavored Markdown, tables).
    return _code(text).replace("|", "\\|")


def _ticks(text: str) -> list[str]:
    return re.findall(r"`+", text)
