"""The page "timeline": what happened to each fact that matters, session by session."""

from __future__ import annotations

from memx.diagnose.timeline import EventKind, FactEvent
from memx.engine.record import Record
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
    if not any(event.session_id for fact_id in ids[:_MOST] for event in record.timeline(fact_id)):
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
    prefix = f"  {event.session_id or event.label:<12} "
    if event.new is None:
        return [Line("LOST from the store", "bad", prefix)]
    text = shortened(event.new.content, limit) or "(empty)"
    if event.kind is EventKind.BORN:
        return [Line(f"born  {event.new.status}  {text}", "good" if event.new.active else "warn", prefix)]
    if event.kind is EventKind.REWRITTEN:
        return [Line(f"reworded  {text}", "warn", prefix)]
    if event.old is not None and event.old.status != event.new.status:
        by = f" by {', '.join(event.by)}" if event.by else ""
        role = "good" if event.new.active else "bad"
        return [Line(f"{event.old.status} -> {event.new.status}{by}", role, prefix)]
    return [Line("its links changed", "dim", prefix)]
