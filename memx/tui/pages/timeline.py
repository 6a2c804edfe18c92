"""The page "timeline": what happened to each fact that matters, session by session."""

from __future__ import annotations

from memx.engine.record import Record
from memx.engine.store.reader import FactEvent
from memx.model import FactStatus
from memx.tui.document import Line, shortened

_MOST = 12


def timeline_page(record: Record, limit: int | None = None) -> list[Line]:
    """The life of the facts that the diagnosis names, and of those made from the evidence turns."""
    ids = list(record.roles)
    evidence = set(record.trace.question.evidence)
    ids += [f.fact_id for f in record.facts.values() if evidence & set(f.source_turn_ids) and f.fact_id not in ids]
    if not ids:
        return [Line("No fact of the store is tied to this question.", "dim")]
    lines: list[Line] = []
    if all(event.session_id is None for fact_id in ids[:_MOST] for event in record.timeline(fact_id)):
        lines += [
            Line("Snapshots were taken before and after the whole ingest alone;", "dim"),
            Line("memx run --snapshots session shows which session changed what.", "dim"),
            Line(),
        ]  # fmt: skip
    for fact_id in ids[:_MOST]:
        role = record.roles.get(fact_id, "")
        lines.append(Line(f"{fact_id}  {role.upper()}".rstrip(), "head", key=fact_id))
        events = record.timeline(fact_id)
        for event in events:
            lines += _event(event, limit)
        if not events:
            lines.append(Line("in no snapshot", "dim", "  "))
        lines.append(Line())
    if len(ids) > _MOST:
        lines.append(Line(f"{len(ids) - _MOST:,} more facts are left out", "dim"))
    return lines


def _event(event: FactEvent, limit: int | None) -> list[Line]:
    where = event.session_id or event.label or f"snapshot {event.step}"
    prefix = f"  {where:<12} "
    if event.fact is None:
        return [Line("LOST from the store", "bad", prefix)]
    text = shortened(event.fact.content, limit) or "(empty)"
    if event.before is None:
        return [Line(f"born  {event.fact.status}  {text}", "good" if event.fact.active else "warn", prefix)]
    lines = []
    if event.before.content != event.fact.content:
        lines += [Line(f"reworded  {text}", "warn", prefix)]
    if event.before.status != event.fact.status:
        role = "good" if event.fact.status == FactStatus.ACTIVE else "bad"
        lines.append(Line(f"{event.before.status} -> {event.fact.status}", role, prefix))
    return lines or [Line("its links or dates changed", "dim", prefix)]
