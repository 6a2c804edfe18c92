"""The HTML export: one file that needs no network, to hand to a colleague, read in light or dark, filter and print.

Every stored text passes the gate, is escaped, and stands as text; nothing of it becomes markup, style or script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from memx.diagnose.clusters import clusters
from memx.engine.export_parts import calibration_lines, chosen, facts_of, stage_rows, which
from memx.engine.record import MEANING, Record, lost_at, records, trail
from memx.engine.store.marks import Mark, Marks, Triage
from memx.engine.store.reader import RunRow, Store, Where
from memx.engine.summary import Summary, summarize
from memx.engine.summary_text import adjusted_line, counts_line, percent
from memx.model import EvidencePiece, NearMiss, Retrieved
from memx.text.gate import safe, shortened

#: Characters of one text; the store holds it whole.
_LIMIT = 2_000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def html_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """The page in pieces: the run, then each question that meets the condition, or that failed or broke."""
    run = store.run(run_id)
    kept = chosen(where)
    summary = summarize(store, run_id)
    title = _text(f"memx: {run.dataset} x {run.adapter}, run {run.run_id}")
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_part('export_html.css')}</style>\n</head>\n<body>\n"
    )
    yield _head(run, summary)
    yield _why(store, run, summary)
    yield f"<main>\n<h2>{store.count(run_id, kept)} questions {which(where)}</h2>\n{_form(store, run_id, kept)}"
    triage = Marks(store).current(run)
    for record in records(store, run, kept):
        yield _question(record, triage.get(record.key[1], Triage()))
    yield f"</main>\n<script>\n{_part('export_html.js')}</script>\n</body>\n</html>\n"


def _part(name: str) -> str:
    return files("memx.engine").joinpath(name).read_text("utf-8")


# ----------------------------------------------------------------------------------------------------------- the run


def _head(run: RunRow, summary: Summary) -> str:
    share = summary.accuracy
    interval = share.interval
    low_high = f", 95 % interval {interval[0] * 100:.1f} to {interval[1] * 100:.1f} %" if interval else ""
    adjusted = f"<p>{_text(adjusted_line(summary.adjusted))}</p>\n" if summary.adjusted else ""
    rows = [
        [_text(name), percent(one), f"{one.n} of {one.d}", _bar(one.value)] for name, one in summary.by_category.items()
    ]
    return (
        f"<header>\n<h1>{_text(run.dataset)} x {_text(run.adapter)}</h1>\n"
        f'<p class="id">run {_text(run.run_id)}</p>\n{_list(facts_of(run))}</header>\n'
        f'<section>\n<h2>Summary</h2>\n<p><span class="big">{percent(share)}</span> accuracy'
        f' <span class="dim">({share.n} of {share.d} judged{low_high})</span></p>\n{adjusted}'
        f"<p>{counts_line(summary)}</p>\n{_table(('category', '#passed', '#of judged', ''), rows)}</section>\n"
    )


def _why(store: Store, run: RunRow, summary: Summary) -> str:
    if not summary.failed:
        return "<section>\n<h2>Why they failed</h2>\n<p>No question failed.</p>\n</section>\n"
    causes = [
        [stage, cause, str(count), f"{100 * share:.1f} %", _bar(share)]
        for stage, cause, count, share in stage_rows(summary)
    ]
    groups = [
        [str(one.mechanism), str(len(one.question_ids)), f"{100 * one.share:.0f} %", f"+{one.worth:.1f}",
         _text(one.hypothesis), f"<code>{_text(one.example)}</code>"]
        for one in clusters(store.traces(run.run_id))
    ]  # fmt: skip
    trust = [*calibration_lines(run), *_judge_lines(summary)]
    return (
        f"<section>\n<h2>Why {summary.failed} failed</h2>\n"
        f"{_table(('stage', 'cause', '#FAILs', '#share', ''), causes)}"
        '<h3>By mechanism</h3>\n<p class="dim">Worth: points of accuracy, were all of them mended.</p>\n'
        f"{_table(('mechanism', '#FAILs', '#share', '#worth', 'what it means', 'example'), groups)}"
        f"<h3>How far to trust this</h3>\n{''.join(f'<p>{_text(line)}</p>{chr(10)}' for line in trust)}</section>\n"
    )


def _judge_lines(summary: Summary) -> list[str]:
    stated = {name: value for name, value in (summary.judge or {}).items() if value is not None}
    shown = ", ".join(f"{name.replace('_', ' ')} {value * 100:.1f} %" for name, value in stated.items())
    return [f"The judge, asked again: {shown}."] if shown else []


def _form(store: Store, run_id: str, kept: Where) -> str:
    selects = []
    for name, column in (("verdict", "outcome"), ("cause", "cause"), ("category", "category")):
        selects.append(_select(name, list(store.facets(run_id, column, kept))))
    selects.append(_select("mark", [str(mark) for mark in Mark]))
    return (
        '<form hidden>\n<input type="search" name="text" placeholder="filter ( / )" aria-label="filter by words">\n'
        f"{''.join(selects)}"
        '<button type="reset">clear</button>\n<button type="button" id="open">open all</button>\n'
        '<button type="button" id="close">close all</button>\n'
        '<output class="dim" aria-live="polite"></output>\n</form>\n'
    )


def _select(name: str, values: Sequence[str]) -> str:
    options = "".join(f'<option value="{_text(value)}">{_text(value)}</option>' for value in values)
    return f'<select name="{name}" aria-label="{name}"><option value="">{name}: any</option>{options}</select>\n'


# ------------------------------------------------------------------------------------------------------- one question


def _question(record: Record, stands: Triage) -> str:
    trace = record.trace
    question, verdict, diagnosis = trace.question, trace.verdict, trace.diagnosis
    cause = str(diagnosis.cause) if diagnosis else ""
    where = f" {_text(lost_at(trace))}" if diagnosis else ""
    mark = f" [{stands.mark}]" if stands.mark is not Mark.OPEN else ""
    facts = [
        ("gold", _words(question.gold)),
        ("candidate", _candidate(record)),
        ("verdict", f'<span class="{verdict.outcome}">{verdict.outcome}</span> by {verdict.decider}: '
                    f"{_words(verdict.why)}"),
    ]  # fmt: skip
    if trace.error is not None:
        facts.append(("broke at", f"{_text(trace.error.step)}: {_words(trace.error.message)}"))
    if diagnosis is not None:
        meaning = MEANING[diagnosis.cause].format(k=trace.top_k)
        facts.append(("lost at", f"<strong>{diagnosis.stage} &gt; {diagnosis.cause}</strong>: {_text(meaning)}"))
        sure = f"confidence {diagnosis.confidence:.2f}, decided by {diagnosis.decided_by}"
        facts.append(("why", f'{_words(diagnosis.why)} <span class="dim">({sure})</span>'))
        facts += [("also", _words(note)) for note in diagnosis.notes]
    facts += [("category", _text(question.category)), ("case", _text(trace.case_id))]
    if stands.mark is not Mark.OPEN:
        facts.append(("mark", f"<strong>{stands.mark}</strong>"))
    note = f'<p class="note text" dir="auto">{_words(stands.note, newlines=True)}</p>\n' if stands.note else ""
    return (
        f'<details class="question" data-verdict="{verdict.outcome}" data-cause="{cause}" '
        f'data-category="{_text(question.category)}" data-mark="{stands.mark}">\n'
        f'<summary><span class="{verdict.outcome}">{verdict.outcome}</span>{where}{mark} '
        f'<span class="id">{_text(question.question_id)}</span> {_words(question.text)}</summary>\n'
        f"<div>\n{_list(facts, ready=True)}{note}{_evidence(record)}{_retrieved(record)}{_misses(record)}</div>\n"
        "</details>\n"
    )


def _candidate(record: Record) -> str:
    candidate = record.trace.candidate
    if candidate is None:
        return '<span class="dim">(none)</span>'
    if candidate.source == "retrieved":
        # It repeats the table of retrieved facts word for word.
        return '<span class="dim">(the retrieved texts)</span>'
    return _words(candidate.text) or '<span class="dim">(empty)</span>'


def _evidence(record: Record) -> str:
    diagnosis = record.trace.diagnosis
    pieces = diagnosis.evidence if diagnosis else ()
    if not pieces:
        return ""
    rows = []
    for piece in pieces:
        turn = record.turns.get(piece.turn_id)
        who = f"{turn.speaker}{f', {turn.at:%Y-%m-%d %H:%M}' if turn.at else ''}" if turn else ""
        rows.append(
            [f"<code>{_text(piece.turn_id)}</code><br><span class=\"dim\">{_text(who)}</span>", _words(piece.text),
             f'<span class="{"good" if piece.in_top_k else "bad"}">{_text(trail(piece, record))}</span>'
             f"{_carried(record, piece)}"]
        )  # fmt: skip
    return "<h3>Evidence trail</h3>\n" + _table(("evidence", "said", "trail"), rows)


def _carried(record: Record, piece: EvidencePiece) -> str:
    lines = []
    for fact_id in piece.stored:
        fact = record.facts.get(fact_id)
        text = f"{fact.status}: {_words(fact.content)}" if fact else "not in the last snapshot"
        lines.append(f'<br><code>{_text(fact_id)}</code> <span class="dim">{text}</span>')
    return "".join(lines) + (f'<br><span class="warn">{_words(piece.note)}</span>' if piece.note else "")


def _retrieved(record: Record) -> str:
    """The facts that the candidate saw, and of those below the cut the ones that matter."""
    trace = record.trace
    if not trace.retrieved:
        return ""
    rows, classes = [], []
    for rank, item in enumerate(trace.retrieved, start=1):
        role = record.roles.get(item.fact_id, "")
        if rank > trace.top_k and not role:
            continue
        rows.append(_retrieved_row(rank, item, role))
        classes.append(f"{role} {'below' if rank > trace.top_k else ''}".strip())
    left = len(trace.retrieved) - len(rows)
    more = f'<p class="dim">{left} more came back below the cut at {trace.top_k}.</p>\n' if left else ""
    return "<h3>Retrieved</h3>\n" + _table(("#rank", "fact", "role", "#score", "text"), rows, classes) + more


def _retrieved_row(rank: int, item: Retrieved, role: str) -> list[str]:
    score = "" if item.score is None else f"{item.score:.3f}"
    return [str(rank), f"<code>{_text(item.fact_id)}</code>", role, score, _words(item.content)]


def _misses(record: Record) -> str:
    diagnosis = record.trace.diagnosis
    return "".join(_miss(record, miss) for miss in (diagnosis.near_misses if diagnosis else ()))


def _miss(record: Record, miss: NearMiss) -> str:
    place = f"rank {miss.expected_rank}" if miss.expected_rank else "absent"
    rows, classes = [], []
    for signal in miss.signals:
        verdict = "ties" if abs(signal.gap) < 1e-9 else "WINS" if signal.gap > 0 else "LOSES"
        rows.append([_text(signal.name), f"{signal.expected:.3f}", f"{signal.winner:.3f}", f"{signal.gap:+.3f}",
                     f'<span class="{"bad" if verdict == "LOSES" else "good" if verdict == "WINS" else "dim"}">'
                     f"{verdict}</span>"])  # fmt: skip
        classes.append("")
    keep = f"<p>Would be kept if {_text('; '.join(miss.would_keep))}</p>\n" if miss.would_keep else ""
    return (
        f"<h3>Near miss: <code>{_text(miss.expected_fact_id)}</code> ({place}) against "
        f"<code>{_text(miss.winner_fact_id)}</code> (rank {miss.winner_rank})</h3>\n"
        f"{_table(('signal', '#expected', '#winner', '#gap', ''), rows, classes) if rows else ''}{keep}"
    )


# -------------------------------------------------------------------------------------------------------------- pieces


def _text(text: str) -> str:
    """A stored text made safe and escaped, for elements and for attributes in double quotes."""
    return escape(safe(text))


def _words(text: str, newlines: bool = False) -> str:
    """A stored text of any length, safe, escaped, and set apart from the direction of what stands around it."""
    return f"<bdi>{escape(safe(shortened(text, _LIMIT), newlines=newlines))}</bdi>" if text else ""


def _bar(share: float | None) -> str:
    return "" if share is None else f'<span class="bar" style="width:{100 * share:.0f}%"></span>'


def _list(pairs: Sequence[tuple[str, str]], ready: bool = False) -> str:
    """Labels and values; ``ready`` values are HTML already."""
    rows = "".join(f"<dt>{label}</dt><dd>{value if ready else _text(value)}</dd>\n" for label, value in pairs)
    return f"<dl>\n{rows}</dl>\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    """A table of ready HTML; a name that begins with ``#`` heads a column of numbers, no name one of bars."""
    heads = "".join(f'<th scope="col"{_kind(name)}>{name.lstrip("#")}</th>' for name in header)
    body = []
    for number, row in enumerate(rows):
        kind = f' class="{classes[number]}"' if classes and classes[number] else ""
        cells = "".join(f"<td{_kind(name)}>{cell}</td>" for name, cell in zip(header, row, strict=True))
        body.append(f"<tr{kind}>{cells}</tr>\n")
    head = f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n'
    return f"{head}<tbody>\n{''.join(body)}</tbody>\n</table></div>\n"


def _kind(name: str) -> str:
    return ' class="n"' if name.startswith("#") else "" if name else ' class="track"'
