"""The pages "retrieved", "store diff" and "near misses": what came back, what the store did, and what came too low."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from memx.engine.record import Record
from memx.model import Fact, NearMiss, Retrieved
from memx.text.gate import safe
from memx.tui.document import Line, Pair, fit, shortened

_BAR = 8
#: Texts with more words than this are compared as wholes.
_MOST_WORDS = 800
_EQUAL = 1e-9


def retrieved_page(record: Record, limit: int | None = None, below: bool = True) -> list[Line]:
    """What the query brought back, best first, with the cut and each fact's signals.

    Args:
        below: show all that came back below the cut; otherwise only what the diagnosis names, and how many others.
    """
    trace = record.trace
    if not trace.retrieved:
        return [Line("Nothing came back." if trace.error is None else "The query did not finish.", "dim")]
    lines = [Line(f"{len(trace.retrieved)} came back, the candidate saw the first {len(trace.top)}", "dim"), Line()]
    left = 0
    for rank, item in enumerate(trace.retrieved, start=1):
        if rank == trace.top_k + 1:
            lines += [Line(f"---- cut at {trace.top_k}: the candidate did not see what follows ----", "warn"), Line()]
        if rank > trace.top_k and not below and item.fact_id not in record.roles:
            left += 1
            continue
        lines += _retrieved(record, rank, item, limit)
    if left:
        lines.append(Line(f"{left:,} more came back below the cut, none of them named by the diagnosis", "dim"))
    return lines


def _retrieved(record: Record, rank: int, item: Retrieved, limit: int | None) -> list[Line]:
    fact = record.facts.get(item.fact_id)
    role = record.roles.get(item.fact_id, "")
    status = str(fact.status) if fact else "not in the last snapshot"
    score = "" if item.score is None else f"  score {_number(item.score)}"
    tag = f"  {role.upper()}" if role else ""
    turns = item.metadata.get("source_turn_ids") or (fact.source_turn_ids if fact else ())
    source = f"  from {', '.join(map(str, turns))}" if turns else ""
    shade = {"expected": "good", "stale": "bad", "conflicting": "bad", "winner": "warn"}.get(role, "key")
    head = Line(f"{item.fact_id}{tag}  {status}{score}{source}", shade, f"{rank:>3}  ", key=item.fact_id)
    lines = [head, Line(shortened(item.content, limit) or "(empty)", "text", "     ")]
    if item.signals:
        signals = "  ".join(f"{name} {_number(value)}" for name, value in item.signals.items())
        lines.append(Line(signals, "dim", "     "))
    return [*lines, Line()]


def diff_page(record: Record, limit: int | None = None, everything: bool = False) -> list[Line | Pair]:
    """What the ingest of the case did to the store: the facts that matter to the question, or all of them.

    The old and the new text of a fact that was changed, or that took another's place, stand beside each other.
    """
    diff = record.diff
    counts = record.trace.diff
    added, removed, changed, unchanged = (
        (counts.added, counts.removed, counts.changed, counts.unchanged)
        if counts
        else (len(diff.added), len(diff.removed), len(diff.changed), diff.unchanged)
    )
    total = f"ingest of {record.trace.case_id}: {added:,} added, {removed:,} removed, {changed:,} changed"
    lines: list[Line | Pair] = [Line(f"{total}, {unchanged:,} left alone", "head"), Line()]
    matter = _that_matter(record)
    shown = [fact for fact in diff.added if everything or fact.fact_id in matter]
    pairs = [pair for pair in diff.changed if everything or pair[0].fact_id in matter or pair[1].fact_id in matter]
    gone = [fact for fact in diff.removed if everything or fact.fact_id in matter]
    for old, new in pairs:
        lines += _changed(record, old, new, limit)
    for fact in gone:
        lines += _fact(record, "-", fact, limit, "bad")
    for fact in shown:
        replaced = [record.facts[old] for old in fact.supersedes if old in record.facts]
        lines += _fact(record, "+", fact, limit, "good" if fact.active else "warn", replaced)
    hidden = len(diff.added) + len(diff.changed) + len(diff.removed) - len(shown) - len(pairs) - len(gone)
    if not (shown or pairs or gone):
        lines.append(Line("None of the changes touches a fact that the diagnosis or the evidence names.", "dim"))
    if hidden:
        lines += [Line(), Line(f"{hidden:,} changes that do not touch this question are left out", "dim")]
    return lines


def _that_matter(record: Record) -> set[str]:
    """Facts the diagnosis names, what they replace or are replaced by, and facts made from the evidence turns."""
    matter = set(record.roles)
    evidence = set(record.trace.question.evidence)
    for fact in record.facts.values():
        if evidence & set(fact.source_turn_ids):
            matter.add(fact.fact_id)
    for fact in record.facts.values():
        if fact.fact_id in matter:
            matter.update(fact.supersedes)
        elif matter & set(fact.supersedes):
            matter.add(fact.fact_id)
    return matter


def _fact(
    record: Record, sign: str, fact: Fact, limit: int | None, role: str, replaced: Sequence[Fact] = ()
) -> list[Line | Pair]:
    head = Line(_about(record, fact), role, f"{sign} ", role, key=fact.fact_id)
    if replaced:
        return [head, *(compared(old.content, fact.content, limit) for old in replaced)]
    return [head, Line(shortened(fact.content, limit) or "(empty)", "text", "    ")]


def compared(old: str, new: str, limit: int | None) -> Pair:
    """Two wordings with what differs marked word by word: ``[-gone-]`` and ``{+new+}``."""
    # Through the gate first: some control characters count as blanks and would be lost.
    before, after = (safe(shortened(text, limit), newlines=True).split() for text in (old, new))
    blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(before), 0, len(after))]
    if max(len(before), len(after)) <= _MOST_WORDS:
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    left: list[tuple[str, str]] = []
    right: list[tuple[str, str]] = []
    for kind, a, b, c, d in blocks:
        if kind == "equal":
            left.append((" ".join(before[a:b]), "text"))
            right.append((" ".join(after[c:d]), "text"))
            continue
        if a < b:
            left.append((f"[-{' '.join(before[a:b])}-]", "bad"))
        if c < d:
            right.append((f"{{+{' '.join(after[c:d])}+}}", "good"))
    return Pair(tuple(left) or (("(empty)", "dim"),), tuple(right) or (("(empty)", "dim"),))


def _changed(record: Record, old: Fact, new: Fact, limit: int | None) -> list[Line | Pair]:
    lines: list[Line | Pair] = [Line(_about(record, new), "warn", "~ ", "warn", key=new.fact_id)]
    if old.content != new.content:
        lines.append(compared(old.content, new.content, limit))
    else:
        lines.append(Line(shortened(new.content, limit), "text", "    "))
    if old.status is not new.status:
        lines.append(Line(f"{old.status} -> {new.status}", "warn", "    "))
    return lines


def _about(record: Record, fact: Fact) -> str:
    role = record.roles.get(fact.fact_id, "")
    parts = [f"{fact.fact_id}{'  ' + role.upper() if role else ''}", str(fact.status)]
    if fact.source_turn_ids:
        parts.append(f"from {', '.join(fact.source_turn_ids)}")
    if fact.supersedes:
        parts.append(f"supersedes {', '.join(fact.supersedes)}")
    if fact.created_at:
        parts.append(f"{fact.created_at:%Y-%m-%d}")
    return "  ".join(parts)


def near_misses_page(record: Record, rival: int | None = None, limit: int | None = None) -> list[Line]:
    """Expected facts beside what took their place, signal by signal: one rival (from 0), or all when None."""
    diagnosis = record.trace.diagnosis
    misses = diagnosis.near_misses if diagnosis else ()
    if not misses:
        where = f"its stage is {diagnosis.stage}" if diagnosis else f"this question is {record.trace.verdict.outcome}"
        return [Line(f"No near miss: only retrieval FAILs have one, and {where}.", "dim")]
    chosen: Sequence[NearMiss] = misses if rival is None else [misses[rival % len(misses)]]
    lines: list[Line] = []
    for place, miss in enumerate(chosen):
        number = (rival or 0) % len(misses) + 1 if rival is not None else place + 1
        lines += [*_miss(record, miss, f"rival {number} of {len(misses)}", limit), Line()]
    return lines[:-1]


def _miss(record: Record, miss: NearMiss, number: str, limit: int | None) -> list[Line]:
    expected = f"#{miss.expected_rank}" if miss.expected_rank else "absent"
    lines = [
        Line(number, "dim"),
        Line(_content(record, miss.expected_fact_id, limit), "text", f"expected  {expected:>6}  ", "good"),
        Line(_content(record, miss.winner_fact_id, limit), "text", f"winner    {f'#{miss.winner_rank}':>6}  ", "bad"),
        Line(),
        Line(
            f"{'signal':<17}{'expected':>9} {'':<8} {'winner':>9} {'':<8} {'gap':>9}  verdict",
            "label",
            short=f"{'signal':<14}{'expected':>9} {'winner':>9} {'gap':>9}  verdict",
        ),
    ]
    for signal in miss.signals:
        top = max(abs(signal.expected), abs(signal.winner))
        verdict, role = ("ties", "dim")
        if signal.gap > _EQUAL:
            verdict, role = ("WINS", "good")
        elif signal.gap < -_EQUAL:
            verdict, role = ("LOSES <", "bad")
        row = (
            f"{fit(signal.name, 16)} {_number(signal.expected):>9} {_bar(signal.expected, top)} "
            f"{_number(signal.winner):>9} {_bar(signal.winner, top)} {_number(signal.gap, sign=True):>9}  {verdict}"
        )
        # Without the bars where they have no room.
        numbers = " ".join(f"{_number(value):>9}" for value in (signal.expected, signal.winner))
        short = f"{fit(signal.name, 13)} {numbers} {_number(signal.gap, sign=True):>9}  {verdict}"
        lines.append(Line(row, role, short=short))
    if not miss.signals:
        lines.append(Line("The memory system declares no signals for these facts.", "dim"))
    if miss.would_keep:
        lines += [Line(), Line("  |  ".join(miss.would_keep), "warn", "would be kept if  ", "label")]
    return lines


def _content(record: Record, fact_id: str, limit: int | None) -> str:
    texts = {item.fact_id: item.content for item in record.trace.retrieved}
    fact = record.facts.get(fact_id)
    text = fact.content if fact else texts.get(fact_id, "(its text is not stored)")
    return f"{fact_id}  {shortened(text, limit)}"


def _bar(value: float, top: float) -> str:
    filled = round(_BAR * max(0.0, value) / top) if top > 0 else 0
    return "#" * filled + "." * (_BAR - filled)


def _number(value: float, sign: bool = False) -> str:
    plus = "+" if sign else ""
    if value != value or abs(value) in (float("inf"),):
        return str(value)
    return f"{value:{plus}.3f}" if abs(value) < 1000 else f"{value:{plus}.3g}"
