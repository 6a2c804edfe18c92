"""The messages of the memory service contract, version 1: what ``http`` and ``command`` send, and how replies are read.

``memory_service.openapi.json`` beside this file states the same for people and for other languages. Fields that are
not known are ignored, so that a service may say more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memx.adapters.paging import Page
from memx.adapters.provenance import parse_time
from memx.errors import AdapterError
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session

PROTOCOL = "memx.memory/1"
T = TypeVar("T")


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as one line of JSON in UTF-8."""
    import orjson

    try:
        return orjson.dumps(message)
    except TypeError:
        # A lone surrogate is in some datasets and in no UTF-8; it arrives as a question mark rather than not at all.
        return orjson.dumps(_encodable(message))


def decoded(text: bytes) -> Mapping[str, Any]:
    """The JSON object that a reply is.

    Raises:
        json.JSONDecodeError: it is cut off, no JSON, or no object.
    """
    import orjson

    data = orjson.loads(text)
    if not isinstance(data, Mapping):
        raise json.JSONDecodeError(f"a {type(data).__name__} instead of an object", text.decode()[:200], 0)
    return data


def ingest(session: Session) -> dict[str, Any]:
    """The parameters of ``ingest``: a whole session, its turns in order. Nothing of the questions is in it."""
    return {
        "entity_id": session.entity_id,
        "session_id": session.session_id,
        "at": _time(session.at),
        "turns": [
            {"turn_id": t.turn_id, "speaker": t.speaker, "role": t.role, "content": t.content, "at": _time(t.at)}
            for t in session.turns
        ],
    }


def query(text: str, entity_id: str, top_k: int, asked_at: datetime | None) -> dict[str, Any]:
    """The parameters of ``query``."""
    return {"entity_id": entity_id, "query": text, "top_k": top_k, "asked_at": _time(asked_at)}


def read_result(reply: Mapping[str, Any], system: str) -> QueryResult:
    """The reply of ``query``.

    Raises:
        AdapterError: a field is missing or of the wrong kind; names it.
    """
    reader = Reader(system, "query", reply)
    rows = reader.rows("facts", lambda row: _retrieved(row))
    answer = reply.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise reader.wrong("answer", "a text or null", answer)
    return QueryResult(tuple(rows), answer, reader.mapping("declared"))


def read_facts(reply: Mapping[str, Any], system: str) -> Page[Fact]:
    """One page of ``export``.

    Raises:
        AdapterError: a field is missing or of the wrong kind; names it.
    """
    reader = Reader(system, "export", reply)
    total = reply.get("total")
    if total is not None and (not isinstance(total, int) or isinstance(total, bool)):
        raise reader.wrong("total", "a whole number or null", total)
    after = reply.get("next")
    if after is not None and not isinstance(after, str | int):
        raise reader.wrong("next", "a cursor or null", after)
    return Page(reader.rows("facts", lambda row: _fact(row)), after, total)


class Reader:
    """One JSON object of a reply, read field by field; what is wrong is an error that names the field.

    Args:
        system: the adapter's name.
        path: where in the reply the object stands, for messages.
    """

    def __init__(self, system: str, path: str, data: Any) -> None:
        self._system = system
        self._path = path
        if not isinstance(data, Mapping):
            raise AdapterError(f"{system}: {path} is {type(data).__name__}, not an object", _HINT)
        self._data = data

    def text(self, name: str, default: str | None = None, *, empty: bool = False) -> str:
        """A text; one that must not be empty unless ``empty``."""
        value = self._data.get(name, default)
        # An id that is a number is taken as it is written.
        if isinstance(value, int) and not isinstance(value, bool) and name.endswith("_id"):
            return str(value)
        if not isinstance(value, str) or (not value and not empty):
            raise self.wrong(name, "a text" if empty else "a text that is not empty", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; absent or null is none."""
        value = self._data.get(name) or ()
        if not isinstance(value, list | tuple) or not all(isinstance(item, str | int) for item in value):
            raise self.wrong(name, "a list of ids", value)
        return tuple(str(item) for item in value)

    def number(self, name: str) -> float | None:
        """A number; absent or null is None."""
        value = self._data.get(name)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise self.wrong(name, "a number or null", value)
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """An object; absent or null is empty."""
        value = self._data.get(name) or {}
        if not isinstance(value, Mapping):
            raise self.wrong(name, "an object", value)
        return dict(value)

    def time(self, name: str) -> datetime | None:
        """An ISO 8601 time or Unix seconds; absent or null is None."""
        value = self._data.get(name)
        found = parse_time(value)
        if value and found is None:
            raise self.wrong(name, "an ISO 8601 time", value)
        return found

    def rows(self, name: str, read: Callable[[Reader], T]) -> list[T]:
        """A list of objects, each read by ``read``."""
        value = self._data.get(name)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self.wrong(name, "a list", value)
        return [read(Reader(self._system, f"{self._path}: {name}[{n}]", row)) for n, row in enumerate(value)]

    def wrong(self, name: str, wanted: str, value: Any) -> AdapterError:
        """The error for a field, not raised."""
        shown = "missing" if value is None and name not in self._data else repr(value)[:80]
        return AdapterError(f"{self._system}: {self._path}: {name} is {shown}; it should be {wanted}", _HINT)


_HINT = "The contract is memory_service.openapi.json; memx adapters check runs all of it."


def _fact(row: Reader) -> Fact:
    status = row.text("status", "active")
    if status not in set(FactStatus):
        raise row.wrong("status", "active, superseded, invalidated or deleted", status)
    return Fact(
        row.text("fact_id"),
        row.text("content", empty=True),
        FactStatus(status),
        row.texts("supersedes"),
        row.texts("source_turn_ids"),
        row.time("created_at"),
        row.mapping("metadata"),
    )


def _retrieved(row: Reader) -> Retrieved:
    metadata = row.mapping("metadata")
    if sources := row.texts("source_turn_ids"):
        metadata["source_turn_ids"] = list(sources)
    return Retrieved(
        row.text("fact_id"),
        row.text("content", empty=True),
        row.number("score"),
        row.mapping("signals"),
        metadata,
    )


def _time(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _encodable(value: Any) -> Any:
    """The value with texts that UTF-8 can carry."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {name: _encodable(item) for name, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value
