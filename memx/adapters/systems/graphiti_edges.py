"""Graphiti's edges as facts: what ended them, and which edge took their place.

An edge tells when it stopped being true and when Graphiti noticed, not through which other edge. That is derived: the
new edge begins at the moment the old one ends, and they share a person or thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memx.adapters.provenance import replaced, with_zone
from memx.adapters.validity import Validity, successors
from memx.model import Fact, FactStatus, Retrieved


def facts_of(edges: Sequence[Any], turn_of: Mapping[str, str]) -> list[Fact]:
    """The edges as facts, retired ones marked and linked to their successors, in the order they were said.

    Args:
        turn_of: the turn id of each episode, by the episode's uuid.
    """
    ordered = sorted(edges, key=lambda edge: (with_zone(edge.created_at), edge.uuid))
    successor_of = successors([_validity(edge) for edge in ordered])
    return replaced((_fact(edge, turn_of, edge.uuid in successor_of) for edge in ordered), successor_of)


def retrieved_of(
    edge: Any, score: float | None, reranker: str, validity: bool, turn_of: Mapping[str, str]
) -> Retrieved:
    """An edge as a search returns it.

    Args:
        validity: write since when and until when it is true behind the fact, for whoever answers from it.
    """
    content = edge.fact
    if validity and (edge.valid_at or edge.invalid_at):
        content = f"{content} (true {_day(edge.valid_at, 'before')} - {_day(edge.invalid_at, 'present')})"
    metadata = {**_metadata(edge), "source_turn_ids": _turns(edge, turn_of)}
    return Retrieved(edge.uuid, content, score, {} if score is None else {reranker: score}, metadata)


def _fact(edge: Any, turn_of: Mapping[str, str], succeeded: bool) -> Fact:
    said = edge.reference_time or edge.valid_at or edge.created_at
    turns = tuple(_turns(edge, turn_of))
    status = FactStatus.SUPERSEDED if succeeded else _validity(edge).status(datetime.now(UTC))
    return Fact(edge.uuid, edge.fact, status, (), turns, with_zone(said) if said else None, _metadata(edge))


def _turns(edge: Any, turn_of: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(turn_of[episode] for episode in edge.episodes if episode in turn_of))


def _metadata(edge: Any) -> dict[str, Any]:
    times = {name: getattr(edge, name) for name in ("valid_at", "invalid_at", "expired_at", "created_at")}
    return {
        "name": edge.name,
        **{name: with_zone(time).isoformat() for name, time in times.items() if time is not None},
        **({"attributes": dict(edge.attributes)} if edge.attributes else {}),
    }


def _validity(edge: Any) -> Validity:
    ends = (edge.source_node_uuid, edge.target_node_uuid)
    times = (edge.valid_at, edge.invalid_at, edge.created_at, edge.expired_at)
    return Validity(edge.uuid, edge.fact, ends, edge.name, *times)


def _day(time: datetime | None, otherwise: str) -> str:
    return otherwise if time is None else time.date().isoformat()


def turns_of(episodes: Iterable[Any]) -> dict[str, str]:
    """The turn id of each episode: its name."""
    return {episode.uuid: str(episode.name) for episode in episodes}
