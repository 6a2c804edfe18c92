"""The pages "verdict" and "evidence trail": what was asked and answered, and how far each piece of evidence came."""

from __future__ import annotations

from memx.engine.record import MEANING, TAG_MEANING, Record, trail
from memx.model import Diagnosis, EvidencePiece, Outcome, Trace
from memx.tui.document import Line, shortened

_LABEL = 12
OUTCOME_ROLE = {"PASS": "good", "FAIL": "bad", "ERROR": "bad", "UNJUDGED": "warn"}


def labelled(label: str, body: str, role: str = "text") -> Line:
    """A line with its label in the left column."""
    return Line(body, role, f"{label:<{_LABEL}}")


def verdict_page(record: Record, limit: int | None = None) -> list[Line]:
    """Question, gold, candidate, verdict and diagnosis; texts cut to ``limit`` characters when given."""
    trace = record.trace
    question, verdict = trace.question, trace.verdict
    lines = [
        labelled("question", shortened(question.text, limit), "head"),
        labelled("gold", shortened(question.gold, limit) or "(empty)"),
        _candidate(trace, limit),
        labelled("verdict", verdict.outcome, OUTCOME_ROLE[verdict.outcome]),
        labelled("", shortened(f"by {verdict.decider}{_graded(trace)}: {verdict.why}", limit), "dim"),
    ]
    if trace.error is not None:
        lines += [labelled("broke at", f"{trace.error.step}: {trace.error.message}", "bad")]
        if trace.error.hint:
            lines.append(labelled("way out", trace.error.hint))
    if trace.diagnosis is not None:
        lines += [Line(), *_diagnosis(trace.diagnosis, trace.top_k, limit)]
    lines += [Line(), labelled("category", question.category), labelled("case", trace.case_id)]
    if record.tag:
        lines.append(labelled("tag", f"{record.tag}: {TAG_MEANING[record.tag]}"))
    if question.asked_at is not None:
        lines.append(labelled("asked at", f"{question.asked_at:%Y-%m-%d %H:%M}"))
    if question.abstention:
        lines.append(labelled("", "the right answer is a refusal"))
    if question.metadata.get("trap"):
        lines.append(labelled("trap", str(question.metadata["trap"])))
    return lines


def _candidate(trace: Trace, limit: int | None) -> Line:
    if trace.candidate is None:
        return labelled("candidate", "(none)", "dim")
    text = trace.candidate.text
    if trace.candidate.source == "retrieved":
        # It repeats the facts of the page "retrieved" word for word.
        return labelled("candidate", f"(the retrieved texts) {shortened(text, min(limit or 300, 300))}")
    tokens = f", {trace.candidate.context_tokens:,} tokens of context" if trace.candidate.context_tokens else ""
    return labelled("candidate", f"{shortened(text, limit) or '(empty)'}  [{trace.candidate.source}{tokens}]")


def _graded(trace: Trace) -> str:
    return "" if trace.verdict.score is None else f", score {trace.verdict.score:.2f}"


def _diagnosis(diagnosis: Diagnosis, top_k: int, limit: int | None) -> list[Line]:
    sure = f"confidence {diagnosis.confidence:.2f}, decided by {diagnosis.decided_by}"
    if diagnosis.llm_calls:
        sure += f", {diagnosis.llm_calls} model calls"
    lines = [
        labelled("stage", f"{diagnosis.stage} > {diagnosis.cause}", "bad"),
        labelled("", MEANING[diagnosis.cause].format(k=top_k)),
        labelled("why", shortened(diagnosis.why, limit)),
        labelled("", sure, "dim"),
    ]
    return lines + [labelled("also", shortened(note, limit)) for note in diagnosis.notes]


def evidence_page(record: Record, limit: int | None = None) -> list[Line]:
    """The trail of each evidence turn: said, stored, active, ranked, inside the cut, used."""
    trace = record.trace
    if trace.diagnosis is None or not trace.diagnosis.evidence:
        return _cited(record, limit)
    pieces = trace.diagnosis.evidence
    lines: list[Line] = []
    for number, piece in enumerate(pieces, start=1):
        lines += [*_piece(record, piece, f"{number} of {len(pieces)}", limit), Line()]
    return lines[:-1]


def _cited(record: Record, limit: int | None) -> list[Line]:
    """The evidence turns of a question that was not diagnosed."""
    trace = record.trace
    if trace.verdict.outcome is Outcome.FAIL:
        note = "The diagnosis names no piece of evidence."
    else:
        note = f"Only FAILs are diagnosed; this is {trace.verdict.outcome}. The evidence the dataset names:"
    lines = [Line(note, "dim"), Line()]
    if not trace.question.evidence:
        lines.append(Line("The dataset names no evidence for this question.", "dim"))
    for turn_id in trace.question.evidence:
        turn = record.turns.get(turn_id)
        said = f"{turn.speaker}: {shortened(turn.content, limit)}" if turn else "(no such turn is stored)"
        lines.append(labelled(turn_id, said))
    return lines


def _piece(record: Record, piece: EvidencePiece, number: str, limit: int | None) -> list[Line]:
    turn = record.turns.get(piece.turn_id)
    speaker = f"  {turn.speaker}" if turn else ""
    when = f", {turn.at:%Y-%m-%d %H:%M}" if turn and turn.at else ""
    session = record.session_of.get(piece.turn_id)
    where = f"  session {session}" if session else ""
    lines = [
        Line(f"{piece.turn_id}{speaker}{when}{where}", "head", f"{number:<{_LABEL}}"),
        labelled("said", f'"{shortened(piece.text, limit)}"'),
        labelled("trail", trail(piece, record), "good" if piece.in_top_k else "bad"),
    ]
    for fact_id in piece.stored:
        fact = record.facts.get(fact_id)
        text = shortened(fact.content, limit) if fact else "(not in the last snapshot)"
        status = f"{fact.status}  " if fact else ""
        lines.append(Line(f"{fact_id}  {status}{text}", "text", f"{'carried by':<{_LABEL}}", key=fact_id))
    if piece.span:
        lines.append(labelled("matched", f'"{piece.span}"'))
    if piece.decided_by:
        lines.append(labelled("decided by", piece.decided_by, "dim"))
    if piece.note:
        lines.append(labelled("note", shortened(piece.note, limit), "warn"))
    return lines
