"""Checks on what an adapter returned: one clear error that names the method, instead of a crash later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memx.errors import AdapterError
from memx.model import Fact, QueryResult, Retrieved, Snapshot
from memx.text.gate import clean


def checked_result(result: Any, adapter: str, depth: int | None) -> QueryResult:
    """The result of ``query`` with scores as floats, cut to ``depth`` facts (None: all of them).

    Raises:
        AdapterError: it is no ``QueryResult``, or holds something else than ``Retrieved``.
    """
    if not isinstance(result, QueryResult):
        raise AdapterError(f"{adapter}.query() returned {type(result).__name__}", "It must return a memx.QueryResult.")
    if result.answer is not None and not isinstance(result.answer, str):
        raise AdapterError(f"{adapter}.query() gave an answer that is {type(result.answer).__name__}, not text")
    facts = []
    for fact in result.facts if depth is None else result.facts[:depth]:
        if not isinstance(fact, Retrieved):
            raise AdapterError(
                f"{adapter}.query() returned a {type(fact).__name__} among its facts, not a memx.Retrieved"
            )
        score = _number(fact.score, adapter, fact.fact_id)
        signals = {str(name): _number(value, adapter, fact.fact_id) for name, value in _mapping(fact.signals).items()}
        known = {name: value for name, value in signals.items() if value is not None}
        metadata = _with_sources(_mapping(fact.metadata), adapter, fact.fact_id)
        facts.append(Retrieved(clean(fact.fact_id), fact.content, score, known, metadata))
    return QueryResult(tuple(facts), result.answer, _mapping(result.declared))


def checked_snapshot(snapshot: Any, adapter: str) -> tuple[Snapshot, list[str]]:
    """The snapshot with each fact id once, and a finding for each oddity. Of the rows that repeat an id, those that say
    something else are kept as ``ID#2`` and so on, with ``repeated_id`` in their metadata; the others are left out.

    Raises:
        AdapterError: it is no ``Snapshot``, or holds something else than ``Fact``.
    """
    if not isinstance(snapshot, Snapshot):
        raise AdapterError(
            f"{adapter}.export_state() returned {type(snapshot).__name__}", "It must return a memx.Snapshot."
        )
    for fact in snapshot.facts:
        if not isinstance(fact, Fact):
            raise AdapterError(
                f"{adapter}.export_state() returned a {type(fact).__name__} among its facts, not a memx.Fact"
            )
    once, renamed = _once([_storable(fact) for fact in snapshot.facts])
    findings = []
    repeated = len(snapshot.facts) - len(once) + renamed
    if repeated:
        findings.append(
            f"export_state repeats fact ids ({repeated} rows; {renamed} that say something else are kept as ID#2 ...)"
        )
    empty = sum(1 for fact in once.values() if not fact.content.strip())
    if empty:
        findings.append(f"export_state has {empty} facts with no text")
    dangling = sum(1 for fact in once.values() if any(old not in once for old in fact.supersedes))
    if dangling:
        findings.append(f"{dangling} facts supersede ids that the store does not have")
    return Snapshot(snapshot.entity_id, tuple(once.values()), snapshot.label), findings


def _once(facts: Sequence[Fact]) -> tuple[dict[str, Fact], int]:
    """The facts by an id of their own, and how many had to be given one."""
    taken = {fact.fact_id for fact in facts}
    once: dict[str, Fact] = {}
    said: dict[str, set[str]] = {}
    renamed = 0
    for fact in facts:
        texts = said.setdefault(fact.fact_id, set())
        if fact.fact_id not in once:
            once[fact.fact_id] = fact
        elif fact.content not in texts:
            number = len(texts) + 1
            while (own := f"{fact.fact_id}#{number}") in taken:
                number += 1
            taken.add(own)
            once[own] = replace(fact, fact_id=own, metadata={**fact.metadata, "repeated_id": fact.fact_id})
            renamed += 1
        texts.add(fact.content)
    return once, renamed


def _storable(fact: Fact) -> Fact:
    """The fact under the ids that the store of runs keeps it by."""
    ids = (fact.fact_id, *fact.supersedes)
    if all(map(str.isascii, ids)):
        return fact
    return replace(fact, fact_id=clean(fact.fact_id), supersedes=tuple(map(clean, fact.supersedes)))


def _with_sources(metadata: Mapping[str, Any], adapter: str, fact_id: str) -> Mapping[str, Any]:
    """The metadata with ``source_turn_ids``, which is read as provenance, as a list of texts."""
    given = metadata.get("source_turn_ids")
    if given is None:
        return metadata
    ids = [given] if isinstance(given, str) else given
    if not isinstance(ids, list | tuple | set | frozenset) or not all(isinstance(one, str | int) for one in ids):
        message = f"{adapter}.query() gave fact {fact_id} source_turn_ids that are no list of ids: {given!r:.80}"
        raise AdapterError(message)
    return {**metadata, "source_turn_ids": [str(one) for one in ids]}


def _number(value: Any, adapter: str, fact_id: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        message = f"{adapter}.query() gave fact {fact_id} a score that is no number: {value!r:.80}"
        raise AdapterError(message) from None
    return number if math.isfinite(number) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
