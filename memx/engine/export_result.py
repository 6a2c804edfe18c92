"""The ``result`` export: one record per question in the shape that analysis scripts of memory benchmarks read, and the
manifest that stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memx.engine.last_run import metrics_json
from memx.engine.measures.retrieval import KS
from memx.engine.record import Record, records
from memx.engine.store import codec
from memx.engine.store.marks import Marks, Triage
from memx.engine.store.reader import RunRow, Store, Where
from memx.model import Retrieved

#: Names of the retrieval metrics of each level, at every K.
METRICS = ("recall_any", "recall_all", "ndcg_any")


def result_chunks(store: Store, run_id: str, where: Where | None = None) -> Iterator[str]:
    """The result file in pieces, one question at a time.

    ``retrieval_evaluable`` counts questions with retrieval metrics; abstentions have ``metrics: null`` and are counted
    as excluded.
    """
    run = store.run(run_id)
    triage = Marks(store).current(run)
    head = _head(store, run, where)
    tail = {name: head.pop(name) for name in list(head) if name not in _FIRST}
    yield codec.dumps(head)[:-1] + ',\n"records":['
    separator = "\n"
    for record in records(store, run, where):
        yield separator + codec.dumps(_record(record, triage.get(record.key[1], Triage())))
        separator = ",\n"
    yield "\n]," + codec.dumps(tail)[1:] + "\n"


def result_manifest(store: Store, run_id: str) -> str:
    """The manifest beside a result file: all that is needed to repeat the run, and what was evaluated."""
    run = store.run(run_id)
    manifest = run.manifest
    adapter, settings = manifest.get("adapter", {}), manifest.get("settings", {})
    found = {
        "dataset": {"path": manifest.get("dataset", {}).get("source", ""), "sha256": run.dataset_sha256},
        "arguments": settings,
        "command": " ".join(manifest.get("command", [])),
        "commit": manifest.get("git", {}).get("commit"),
        "adapter": adapter,
        "retrieval": {
            "mode": adapter.get("retrieval_mode"),
            "sources": adapter.get("sources"),
            "candidate_limit": run.settings.get("top_k"),
        },
        "ranking": {"enabled": adapter.get("ranking"), "mmr": adapter.get("ranking")},
        "cache": {"signature": _signature(adapter)},
        "evaluation": {
            "k_values": list(KS),
            "abstentions": store.count(run_id, Where("abstention")),
            "evaluable": store.count(run_id, Where("metrics IS NOT NULL")),
            "metrics": [f"{level}.{name}" for level in ("session", "turn") for name in METRICS],
        },
        "settings": manifest.get("settings", {}),
        "packages": manifest.get("packages", {}),
        "publishable": manifest.get("publishable"),
        "not_publishable_because": manifest.get("not_publishable_because", []),
    }
    return codec.dumps(found) + "\n"


_FIRST = ("benchmark", "question_count", "retrieval_evaluable", "abstentions_excluded")


def _head(store: Store, run: RunRow, where: Where | None) -> dict[str, Any]:
    kept = (where or Where()).sql
    params = (where or Where()).params
    adapter = run.manifest.get("adapter", {})
    signature = _signature(adapter)
    elapsed = (run.finished_at - run.started_at).total_seconds() if run.finished_at else None
    return {
        "benchmark": run.dataset,
        "question_count": store.count(run.run_id, where),
        "retrieval_evaluable": store.count(run.run_id, Where(f"({kept}) AND metrics IS NOT NULL", params)),
        "abstentions_excluded": store.count(run.run_id, Where(f"({kept}) AND abstention", params)),
        "dataset_checksum": run.dataset_sha256,
        "embedder": signature["embedding_model"],
        "embedding_dimension": signature["embedding_dimension"],
        "commit": run.manifest.get("git", {}).get("commit"),
        "retrieval_mode": adapter.get("retrieval_mode"),
        "settings": dict(run.settings),
        "command": " ".join(run.manifest.get("command", [])),
        "elapsed_seconds": elapsed,
        "run_id": run.run_id,
    }


def _signature(adapter: Mapping[str, Any]) -> dict[str, Any]:
    return {"embedding_model": adapter.get("embedder"), "embedding_dimension": adapter.get("embedding_dimension")}


def _record(record: Record, stands: Triage) -> dict[str, Any]:
    trace = record.trace
    question, diagnosis = trace.question, trace.diagnosis
    rank = _expected_rank(record)
    found: dict[str, Any] = {
        "question_id": question.question_id,
        "query": question.text,
        "expected": question.gold,
        "expected_ids": list(question.evidence_sessions),
        "expected_turns": list(question.evidence),
        "expected_rank": rank,
        "retrieved": rank is not None,
        "candidates": [_candidate(place, item) for place, item in enumerate(trace.retrieved, start=1)],
        "runtime_ms": round(sum(trace.timings_ms.values()), 3),
        "diagnostics": {**trace.declared, "timings_ms": {name: round(ms, 3) for name, ms in trace.timings_ms.items()}},
        "metrics": metrics_json(trace.metrics),
        "abstention": question.abstention,
        "category": question.category,
        "answer": trace.candidate.text if trace.candidate and trace.candidate.source != "retrieved" else None,
        "verdict": str(trace.verdict.outcome),
        "decider": str(trace.verdict.decider),
        "stage": str(diagnosis.stage) if diagnosis else None,
        "cause": str(diagnosis.cause) if diagnosis else None,
        "why": diagnosis.why if diagnosis else trace.verdict.why,
        "error": {"step": trace.error.step, "message": trace.error.message} if trace.error else None,
    }
    return found | {"mark": str(stands.mark), "note": stands.note}


def _candidate(rank: int, item: Retrieved) -> dict[str, Any]:
    return {
        "rank": rank,
        "id": item.fact_id,
        "text": item.content,
        "metadata": dict(item.metadata),
        "score": item.score,
        "final_score": item.signals.get("final_score", item.score),
        "diagnostics": dict(item.signals),
    }


def _expected_rank(record: Record) -> int | None:
    """The first rank at which an evidence turn came back, as far as the memory system tells where facts come from."""
    wanted = set(record.trace.question.evidence)
    for rank, item in enumerate(record.trace.retrieved, start=1):
        fact = record.facts.get(item.fact_id)
        turns = (fact.source_turn_ids if fact else ()) or item.metadata.get("source_turn_ids") or ()
        if wanted & set(turns):
            return rank
    return None
