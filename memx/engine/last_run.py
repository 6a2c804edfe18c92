"""``last_run.json``: the interface for scripts. Schema ``memx.run/1``, read from the store, written atomically."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memx.engine.store import codec
from memx.engine.store.marks import Triage
from memx.engine.store.reader import RunRow, Store, Where
from memx.engine.store.schema import store_error
from memx.engine.summary import Share
from memx.model import Diagnosis, RankMetrics, RetrievalMetrics, Trace

SCHEMA = "memx.run/1"
FILE_NAME = "last_run.json"


def run_head(run: RunRow) -> dict[str, Any]:
    """Everything of a run but its questions."""
    settings, manifest = run.settings, run.manifest
    dataset = manifest.get("dataset", {})
    return {
        "schema": SCHEMA,
        "run_id": run.run_id,
        "state": run.state,
        "started_at": codec.format_time(run.started_at),
        "finished_at": codec.format_time(run.finished_at),
        "dataset": {
            "name": run.dataset,
            "source": dataset.get("source", ""),
            "sha256": dataset.get("sha256", ""),
            "questions": run.question_total,
        },
        "adapter": {
            "name": run.adapter,
            "version": manifest.get("adapter", {}).get("version", ""),
            "options": settings.get("adapter_options", {}),
        },
        "judge": {
            "model": run.judge,
            "decider": manifest.get("judge", {}).get("decider", ""),
            "prompt_sha256": manifest.get("judge", {}).get("prompt_sha256", ""),
            "audit": _audit(run),
        },
        "answer": {"model": settings.get("answer_model", "none")},
        "sampling": {name: settings.get(name) for name in ("limit", "random", "seed")},
        "top_k": settings.get("top_k"),
        "manifest": dict(manifest),
        "summary": dict(run.summary),
    }


def _audit(run: RunRow) -> dict[str, Any] | None:
    """How often the judge was wrong on planted answers; None where it was not audited."""
    if run.judge_audit is None:
        return None
    dataset, (accepts, wrong, rejects, right) = run.judge_audit
    return {
        "dataset": dataset,
        "false_accepts": Share(accepts, wrong).as_dict(),
        "false_rejects": Share(rejects, right).as_dict(),
    }


def question_record(trace: Trace) -> dict[str, Any]:
    """One question as ``last_run.json`` shows it; ``retrieved`` holds at most the first ``top_k``."""
    question, candidate = trace.question, trace.candidate
    diff = trace.diff
    # A control that returns everything would make the file as large as questions times turns.
    shown = trace.top[:DEEPEST]
    return {
        "question_id": question.question_id,
        "case_id": trace.case_id,
        "category": question.category,
        "question": question.text,
        "gold": question.gold,
        "candidate": _candidate_text(trace),
        "candidate_source": str(candidate.source) if candidate else None,
        "verdict": str(trace.verdict.outcome),
        "verdict_why": trace.verdict.why,
        "decider": str(trace.verdict.decider),
        "retrieved": [
            {"rank": rank, "fact_id": r.fact_id, "content": r.content, "score": r.score, "signals": _short(r.signals)}
            for rank, r in enumerate(shown, start=1)
        ],
        "diff": None
        if diff is None
        else {"added": diff.added, "removed": diff.removed, "changed": diff.changed, "unchanged": diff.unchanged},
        "diagnosis": _diagnosis(trace.diagnosis),
        "metrics": metrics_json(trace.metrics),
        "timings_ms": {name: round(ms, 3) for name, ms in trace.timings_ms.items()},
        "error": None
        if trace.error is None
        else {
            "step": trace.error.step,
            "message": trace.error.message,
            "kind": trace.error.kind,
            "hint": trace.error.hint,
        },
    }


#: The most facts that a question's record lists.
DEEPEST = 50
#: A candidate that is the retrieved text repeats what ``retrieved`` holds, so the record keeps its beginning only.
_CANDIDATE_CHARS = 2_000


def json_chunks(
    store: Store, run_id: str, where: Where | None = None, triage: Mapping[str, Triage] | None = None
) -> Iterator[str]:
    """The text of ``last_run.json`` in pieces, one question at a time.

    Args:
        triage: marks and notes to add to their questions; ``last_run.json`` itself holds none.
    """
    head = codec.dumps(run_head(store.run(run_id)))
    yield head[:-1] + ',\n"questions":['
    separator = "\n"
    tags = store.tags(run_id)
    for trace in store.traces(run_id, where):
        record = question_record(trace)
        if tags:
            record["tag"] = tags.get(trace.question.question_id)
        stands = (triage or {}).get(trace.question.question_id)
        if stands is not None:
            record |= {"mark": str(stands.mark), "note": stands.note}
        yield separator + codec.dumps(record)
        separator = ",\n"
    yield "\n]}\n"


def write_last_run(store: Store, run_id: str) -> Path:
    """Write ``last_run.json`` beside the store: a temporary file, flushed to disk, then renamed over the old one."""
    target = store.directory / FILE_NAME
    write_atomically(target, json_chunks(store, run_id))
    return target


def write_atomically(target: Path, chunks: Iterator[str]) -> None:
    """Write a file so that a reader sees the old or the new one, whole.

    Raises:
        StoreError: the directory cannot be written or the disk is full; the old file is untouched.
    """
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as stream:
            temporary = Path(stream.name)
            try:
                stream.writelines(chunks)
                stream.flush()
                os.fsync(stream.fileno())
                temporary.chmod(0o644)
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise store_error(error, target) from error


def _candidate_text(trace: Trace) -> str | None:
    if trace.candidate is None:
        return None
    text = trace.candidate.text
    if trace.candidate.source == "retrieved" and len(text) > _CANDIDATE_CHARS:
        return text[:_CANDIDATE_CHARS] + "…"
    return text


def _diagnosis(diagnosis: Diagnosis | None) -> dict[str, Any] | None:
    if diagnosis is None:
        return None
    return {
        "stage": str(diagnosis.stage),
        "cause": str(diagnosis.cause),
        "confidence": round(diagnosis.confidence, 3),
        "why": diagnosis.why,
        "decided_by": str(diagnosis.decided_by),
        "llm_calls": diagnosis.llm_calls,
        "evidence": [
            {
                "turn_id": piece.turn_id,
                "text": piece.text,
                "stored": list(piece.stored),
                "status": None if piece.status is None else str(piece.status),
                "rank": piece.rank,
                "in_top_k": piece.in_top_k,
                "used": piece.used,
            }
            for piece in diagnosis.evidence
        ],
        "facts": [
            {"fact_id": fact.fact_id, "content": fact.content, "status": str(fact.status), "role": fact.role}
            for fact in diagnosis.facts
        ],
        "notes": list(diagnosis.notes),
    }


def metrics_json(metrics: RetrievalMetrics | None) -> dict[str, Any] | None:
    """Turn and session level, each metric by K as text; None where there are none."""
    if metrics is None:
        return None

    def level(values: RankMetrics) -> dict[str, Any]:
        return {
            "recall_any": {str(k): v for k, v in values.recall_any.items()},
            "recall_all": {str(k): v for k, v in values.recall_all.items()},
            "ndcg_any": {str(k): round(v, 4) for k, v in values.ndcg_any.items()},
            "mrr": round(values.mrr, 4),
        }

    return {"turn": level(metrics.turn), "session": level(metrics.session)}


def _short(signals: Any) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in signals.items()}
