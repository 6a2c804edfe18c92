"""Model objects to JSON texts and back, for the columns of the store and for ``last_run.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memx.model import (
    DiagnosedFact,
    Diagnosis,
    DiffCounts,
    EvidencePiece,
    Fact,
    NearMiss,
    RankMetrics,
    RetrievalMetrics,
    Retrieved,
    Session,
    SignalGap,
    StepFailure,
    Turn,
)
from memx.text.gate import clean as clean


def dumps(value: Any) -> str:
    """Compact JSON; what JSON has no form for becomes its text, lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=_plain)
    return text


def loads(text: str | None, default: Any = None) -> Any:
    """The value of a JSON column; ``default`` where the column is NULL."""
    return default if text is None else json.loads(text)


def fact_key(fact: Fact) -> str:
    """Content address of a fact: the same id, content, status and links give the same key."""
    return content_key(dumps(fact))


def content_key(text: str) -> str:
    """Content address of a text: 24 hexadecimal digits of BLAKE2b."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def fact_row(run_id: str, key: str, fact: Fact) -> dict[str, Any]:
    """The row of table ``facts``."""
    return {
        "run_id": run_id,
        "fact_key": key,
        "fact_id": clean(fact.fact_id),
        "content": clean(fact.content),
        "status": str(fact.status),
        "supersedes": dumps(fact.supersedes) if fact.supersedes else None,
        "source_turn_ids": dumps(fact.source_turn_ids) if fact.source_turn_ids else None,
        "created_at": _iso(fact.created_at),
        "metadata": dumps(fact.metadata) if fact.metadata else None,
    }


def fact_of(row: Mapping[str, Any]) -> Fact:
    """The fact of a row of table ``facts``."""
    return Fact(
        fact_id=row["fact_id"],
        content=row["content"],
        status=row["status"],
        supersedes=tuple(loads(row["supersedes"], [])),
        source_turn_ids=tuple(loads(row["source_turn_ids"], [])),
        created_at=_when(row["created_at"]),
        metadata=loads(row["metadata"], {}),
    )


def session_payload(session: Session) -> str:
    """A session as stored once for all runs; its entity id, which differs between runs, is left out."""
    turns = [[t.turn_id, t.speaker, t.role, t.content, _iso(t.at), dict(t.metadata)] for t in session.turns]
    return dumps({"id": session.session_id, "at": _iso(session.at), "turns": turns})


def session_of(payload: str, entity_id: str) -> Session:
    """The session of a stored payload."""
    data = json.loads(payload)
    turns = tuple(
        Turn(i, speaker, role, content, _when(at), meta) for i, speaker, role, content, at, meta in data["turns"]
    )
    return Session(data["id"], entity_id, turns, _when(data["at"]))


def retrieved_json(retrieved: Sequence[Retrieved], facts: Mapping[str, Fact]) -> str:
    """Retrieved facts as one compact table; of content and metadata only what the snapshot's fact does not say."""
    names = sorted({name for item in retrieved for name in item.signals})
    rows = []
    for item in retrieved:
        fact = facts.get(item.fact_id)
        own = None if fact is not None and fact.content == item.content else item.content
        signals = [_rounded(item.signals.get(name)) for name in names]
        rows.append([item.fact_id, _rounded(item.score), signals, own, _own_metadata(item.metadata, fact)])
    return dumps({"signals": names, "rows": rows})


def retrieved_of(text: str | None, facts: Mapping[str, Fact]) -> tuple[Retrieved, ...]:
    """The retrieved facts of a stored table; ``facts`` gives the snapshot's by id."""
    if text is None:
        return ()
    data = json.loads(text)
    found = []
    for fact_id, score, values, own, metadata in data["rows"]:
        fact = facts.get(fact_id)
        content = own if own is not None else fact.content if fact else ""
        signals = {name: v for name, v in zip(data["signals"], values, strict=True) if v is not None}
        if isinstance(metadata, list):
            metadata = {**(fact.metadata if fact else {}), **metadata[0]}
        found.append(Retrieved(fact_id, content, score, signals, metadata or {}))
    return tuple(found)


def _own_metadata(metadata: Mapping[str, Any], fact: Fact | None) -> dict[str, Any] | list[dict[str, Any]] | None:
    """None for no metadata; a list of one mapping for what comes on top of the fact's own; else all of it."""
    if not metadata:
        return None
    if fact is None or not fact.metadata or not fact.metadata.keys() <= metadata.keys():
        return dict(metadata)
    return [{name: value for name, value in metadata.items() if fact.metadata.get(name, _MISSING) != value}]


_MISSING = object()


def diagnosis_of(text: str | None) -> Diagnosis | None:
    """The diagnosis of a stored JSON text."""
    if text is None:
        return None
    data = json.loads(text)
    data["evidence"] = [EvidencePiece(**piece) for piece in data["evidence"]]
    data["facts"] = [DiagnosedFact(**fact) for fact in data["facts"]]
    data["near_misses"] = [
        NearMiss(
            **{
                **miss,
                "signals": tuple(SignalGap(**gap) for gap in miss["signals"]),
                "would_keep": tuple(miss["would_keep"]),
            }
        )
        for miss in data["near_misses"]
    ]
    return Diagnosis(**data)


def metrics_of(text: str | None) -> RetrievalMetrics | None:
    """The retrieval metrics of a stored JSON text, K as integers again."""
    if text is None:
        return None
    data = json.loads(text)

    def level(raw: dict[str, Any]) -> RankMetrics:
        by_k = {name: {int(k): v for k, v in raw[name].items()} for name in ("recall_any", "recall_all", "ndcg_any")}
        return RankMetrics(mrr=raw["mrr"], **by_k)

    return RetrievalMetrics(turn=level(data["turn"]), session=level(data["session"]))


def failure_of(text: str | None) -> StepFailure | None:
    """The failure of a stored JSON text."""
    return None if text is None else StepFailure(**json.loads(text))


def diff_of(text: str | None) -> DiffCounts | None:
    """The counts of a stored JSON text."""
    return None if text is None else DiffCounts(**json.loads(text))


def as_json(value: Any) -> str | None:
    """A frozen dataclass (or None) as a JSON column."""
    return None if value is None else dumps(value)


def parse_time(text: str | None) -> datetime | None:
    """A stored time; None stays None."""
    return _when(text)


def format_time(value: datetime | None) -> str | None:
    """A time as it is stored: ISO 8601, with the offset when it is aware."""
    return _iso(value)


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _when(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _rounded(value: float | None) -> float | None:
    # Six significant digits tell any two facts apart and keep a run of thousands of questions small.
    return None if value is None else float(f"{value:.6g}")


def _plain(value: Any) -> Any:
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, (bytes, Path)):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    return str(value)
