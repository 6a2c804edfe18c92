"""The JUnit export: one test case per question, for the dashboards of continuous integration.

It keeps to what the two schemas in use (Apache Ant's and Jenkins') have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, tostring

from memx.engine.record import Record, lost_at, records, trail
from memx.engine.store.marks import Mark, Marks, Triage
from memx.engine.store.reader import RunRow, Store, Where
from memx.model import Outcome
from memx.text.gate import safe, shortened

# The gate writes out controls and surrogates; these two are the other characters that XML 1.0 forbids.
_ILLEGAL = re.compile("[\ufffe\uffff]")
#: Characters of one text.
_LIMIT = 4_000


def junit_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """One suite with a test case per question: FAIL is a failure, ERROR an error, UNJUDGED is skipped."""
    run = store.run(run_id)
    triage = Marks(store).current(run)
    outcomes = store.facets(run_id, "outcome", where)
    kept = where or Where()
    seconds = store.query(
        "SELECT coalesce(sum(value), 0) / 1000.0 AS s FROM traces, json_each(timings) WHERE run_id = ? "
        f"AND traces.rowid IN (SELECT rowid FROM traces WHERE run_id = ? AND ({kept.sql}))",
        [run_id, run_id, *kept.params],
    )[0]["s"]
    suite = Element(
        "testsuite",
        {
            "name": _legal(f"{run.dataset} x {run.adapter}"),
            "package": "memx",
            "id": "0",
            "timestamp": f"{run.started_at:%Y-%m-%dT%H:%M:%S}",
            "hostname": _legal(run.host) or "localhost",
            "tests": str(sum(outcomes.values())),
            "failures": str(outcomes.get("FAIL", 0)),
            "errors": str(outcomes.get("ERROR", 0)),
            "skipped": str(outcomes.get("UNJUDGED", 0)),
            "time": f"{seconds:.3f}",
        },
    )
    head = tostring(suite, encoding="unicode").removesuffix(" />")
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}>\n{_properties(run)}\n'
    for record in records(store, run, where):
        case = _case(record, triage.get(record.key[1], Triage()))
        yield tostring(case, encoding="unicode") + "\n"
    yield "<system-out />\n<system-err />\n</testsuite>\n</testsuites>\n"


def _properties(run: RunRow) -> str:
    found = Element("properties")
    for name, value in (("run", run.run_id), ("judge", run.judge), ("dataset sha256", run.dataset_sha256)):
        SubElement(found, "property", {"name": name, "value": _legal(value)})
    return tostring(found, encoding="unicode")


def _case(record: Record, stands: Triage) -> Element:
    trace = record.trace
    question = trace.question
    case = Element(
        "testcase",
        {
            "classname": _legal(f"{record.run.dataset}.{trace.case_id}"),
            "name": _legal(question.question_id),
            "time": f"{sum(trace.timings_ms.values()) / 1000:.3f}",
        },
    )
    mark = "" if stands.mark is Mark.OPEN else f" [{stands.mark}]"
    if trace.verdict.outcome is Outcome.FAIL:
        why = trace.diagnosis.why if trace.diagnosis else trace.verdict.why
        kind = f"{trace.diagnosis.stage}.{trace.diagnosis.cause}" if trace.diagnosis else "undiagnosed"
        message = f"{lost_at(trace)}: {why}{mark}"
        SubElement(case, "failure", {"message": _legal(message), "type": kind}).text = _body(record, stands)
    elif trace.verdict.outcome is Outcome.ERROR and trace.error is not None:
        message = f"{trace.error.step}: {trace.error.message}{mark}"
        kind = _legal(trace.error.kind) or "error"
        SubElement(case, "error", {"message": _legal(message), "type": kind}).text = _body(record, stands)
    elif trace.verdict.outcome is Outcome.UNJUDGED:
        SubElement(case, "skipped", {"message": _legal(trace.verdict.why)})
    return case


def _body(record: Record, stands: Triage) -> str:
    trace = record.trace
    got = "(none)"
    if trace.candidate is not None:
        got = "(the retrieved texts)" if trace.candidate.source == "retrieved" else trace.candidate.text
    lines = [
        f"question: {trace.question.text}", f"gold: {trace.question.gold}", f"candidate: {got}",
        f"verdict: {trace.verdict.outcome} by {trace.verdict.decider}: {trace.verdict.why}",
    ]  # fmt: skip
    for piece in trace.diagnosis.evidence if trace.diagnosis else ():
        lines.append(f"evidence {piece.turn_id}: {trail(piece, record)}")
    if stands.mark is not Mark.OPEN:
        lines.append(f"mark: {stands.mark}")
    if stands.note:
        lines.append(f"note: {stands.note}")
    return "\n".join(_legal(line) for line in lines)


def _legal(text: str) -> str:
    """The text on one line, without what XML 1.0 forbids."""
    return _ILLEGAL.sub(lambda match: f"\\u{ord(match.group()):04x}", safe(shortened(text, _LIMIT)))
