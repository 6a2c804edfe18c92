"""``hindsight``: a Hindsight server; facts are extracted from documents, and observations are drawn from facts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import parse_time, said, said_at, with_zone
from memx.errors import AdapterError
from memx.model import Fact, FactStatus, QueryResult, Retrieved, Session, Snapshot, Turn

_PAGE = 100
_GOING = ("pending", "processing")


@dataclass
class _Bank:
    """What this process sent to a bank and read from it."""

    operations: dict[str, str] = field(default_factory=dict)  # unfinished: id -> the session it stores
    turns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # fact id -> turn ids


class Hindsight(MemoryAdapter):
    """Hindsight (server 1.x): one bank per case, one document per turn.

    Facts are what Hindsight calls world facts, experiences and observations. It never retires the first two by itself;
    an observation is rewritten in place when new facts come, and its older wordings stand in the fact's history.
    """

    name = "hindsight"
    version = "1"
    keeps_data = True
    exports = (
        "every world fact, experience and observation, invalidated ones too",
        "source turns: the document of a fact, and for an observation those of the facts it was drawn from",
        "older wordings of an observation, as metadata.history",
    )
    cannot_see = (
        "a link from a fact to the one that contradicts it: both stay, and only the observation says which holds",
        "chunks, entities, mental models and the knowledge base",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "base_url": Option("http://localhost:8888", "the address of the server", env="HINDSIGHT_BASE_URL"),
        "api_key": Option("", "its API key, where it wants one", env="HINDSIGHT_API_KEY", secret=True),
        "timeout_s": Option(300.0, "how long one request may take, in seconds", least=0.1),
        "budget": Option("mid", "how much a recall searches", choices=("low", "mid", "high")),
        "max_tokens": Option(4096, "a recall returns no more tokens of text than this", least=1),
        "types": Option("", "kinds of facts that a recall returns, separated by commas; empty leaves it to the server"),
        "consolidation": Option(True, "ready only when observations are drawn"),
        "history": Option(True, "read the older wordings of observations"),
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        package = load_package(self.name, "hindsight_client", "hindsight-client", ("1",))
        url = self.options["base_url"]
        self._client: Any = package.Hindsight(
            url, self.options["api_key"] or None, timeout=self.options["timeout_s"], max_attempts=1
        )
        # The client's own synchronous methods take the thread's event loop, and half of its API has none.
        self._loop = asyncio.new_event_loop()
        self.calls = Calls(self.name, key="HINDSIGHT_API_KEY", where=url)
        self._banks: dict[str, _Bank] = {}
        self._nonce = uuid.uuid4()

    def describe(self) -> Mapping[str, Any]:
        """The server's version and how a recall searches."""
        told = self.calls.read("read version", lambda: self._run(self._client.aget_version()))
        return {"server": told.api_version, "budget": self.options["budget"], "max_tokens": self.options["max_tokens"]}

    def close(self) -> None:
        if not self._loop.is_closed():
            self._run(self._client.aclose())
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    # ---------------------------------------------------------------------------------------------------------- ingest

    def ingest_session(self, session: Session) -> None:
        self.calls.begin(session)
        bank = self._banks.setdefault(session.entity_id, _Bank())
        # Hindsight does an operation once however often its id is sent.
        operation_id = str(uuid.uuid5(self._nonce, f"{session.entity_id}/{session.session_id}"))
        items = [_item(session, turn) for turn in session.turns]
        if items:
            result = self.calls.write(
                "retain",
                lambda: self._run(
                    self._client.aretain_batch(session.entity_id, items, retain_async=True, operation_id=operation_id)
                ),
                "always",
            )
            if not result.success or result.items_count != len(items):
                raise AdapterError(
                    f"hindsight: retain: {result.items_count} of {len(items)} turns of session {session.session_id} "
                    "were accepted",
                    "Look at the server's log.",
                )
            for started in result.operation_ids or ([result.operation_id] if result.operation_id else []):
                bank.operations[started] = session.session_id
        self.calls.stored(len(items))
        self.calls.end()

    # ------------------------------------------------------------------------------------------------------- readiness

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        bank = self._banks.setdefault(entity_id, _Bank())
        sent = len(bank.operations)

        def outstanding() -> str:
            for operation_id in list(bank.operations):
                if self._ended(entity_id, operation_id, bank.operations[operation_id]):
                    del bank.operations[operation_id]
            if bank.operations:
                return f"{len(bank.operations)} of {sent} retain operations are under way"
            return self._unsettled(entity_id)

        wait_until(self.name, outstanding, timeout_s, every_s=0.2)

    def _ended(self, bank_id: str, operation_id: str, session_id: str) -> bool:
        told = self._read(
            "look at operation", lambda: self._client.operations.get_operation_status(bank_id, operation_id)
        )
        if told is not None and told.status in ("failed", "cancelled"):
            why = told.error_message or "no reason given"
            raise AdapterError(f"hindsight: ingest of session {session_id} {told.status}: {why}", "See its log.")
        return told is None or told.status not in _GOING

    def _unsettled(self, bank_id: str) -> str:
        """What of the bank is not done yet, in words; the statistics are asked for anew, since they are cached."""
        stats = self._read("read statistics", lambda: self._client.banks.get_agent_stats(bank_id, refresh=True))
        if stats is None:
            return ""
        going = sum((stats.operations_by_status or {}).get(state, 0) for state in _GOING)
        if going:
            return f"{going} operations are under way"
        if self.options["consolidation"]:
            if stats.pending_consolidation:
                return f"{stats.pending_consolidation} facts wait to be consolidated"
            if stats.failed_consolidation:
                self.note(f"hindsight could not consolidate {stats.failed_consolidation} facts")
        return ""

    # --------------------------------------------------------------------------------------------------------- reading

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        types = [kind.strip() for kind in self.options["types"].split(",") if kind.strip()]
        found = self._read(
            "recall",
            lambda: self._client.arecall(
                entity_id,
                query,
                types=types or None,
                max_tokens=self.options["max_tokens"],
                budget=self.options["budget"],
                query_timestamp=with_zone(self.asked_at).isoformat() if self.asked_at else None,
            ),
        )
        if found is None:
            return QueryResult(())
        turns = self._banks.setdefault(entity_id, _Bank()).turns
        declared = {"results": len(found.results), "budget": self.options["budget"]}
        return QueryResult(tuple(_retrieved(row, turns) for row in found.results[:top_k]), declared=declared)

    def export_state(self, entity_id: str) -> Snapshot:
        rows = [*self._listed(entity_id, None), *self._listed(entity_id, "invalidated")]
        turns: dict[str, tuple[str, ...]] = {row.id: (row.document_id,) for row in rows if row.document_id}
        for row in rows:
            if row.id not in turns:
                drawn = (turn for source in row.source_memory_ids or () for turn in turns.get(source, ()))
                turns[row.id] = tuple(dict.fromkeys(drawn))
        self._banks.setdefault(entity_id, _Bank()).turns = turns
        facts = [_fact(row, turns[row.id], self._history(entity_id, row)) for row in rows]
        return Snapshot(entity_id, tuple(facts))

    def _history(self, bank_id: str, row: Any) -> list[dict[str, Any]]:
        """Older wordings of an observation, oldest first; only one drawn from several facts can have any."""
        if not self.options["history"] or row.fact_type != "observation" or len(row.source_memory_ids or ()) < 2:
            return []
        told = self._read("read history", lambda: self._client.memory.get_observation_history(bank_id, row.id))
        entries = told if isinstance(told, list) else (told or {}).get("history", [])
        found = [(str(entry.get("changed_at") or ""), entry.get("previous_text")) for entry in entries]
        return [{"content": text, "until": at} for at, text in sorted(found, key=lambda one: one[0]) if text]

    def _listed(self, bank_id: str, state: str | None) -> list[Any]:
        def page(offset: int) -> Page[Any]:
            found = self._read(
                "list memories",
                lambda: self._client.alist_memories(bank_id, limit=_PAGE, offset=offset, state=state),
            )
            if found is None:
                return Page([])
            end = offset + len(found.items)
            return Page(found.items, end if end < found.total and found.items else None, found.total)

        return list(pages(self.name, "memories", page, key=lambda row: row.id, first=0))

    def _read(self, step: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of a read; None where the bank or the row does not exist."""
        return self.calls.read_or_none(step, lambda: self._run(work()))

    def reset(self, entity_id: str) -> None:
        """Delete the bank with everything in it."""

        def delete() -> None:
            try:
                self._run(self._client.adelete_bank(entity_id))
            except Exception as error:
                if getattr(error, "status", None) != 404:
                    raise

        self.calls.write("delete bank", delete, "always")
        self._banks.pop(entity_id, None)


def _item(session: Session, turn: Turn) -> dict[str, Any]:
    """A turn as an item to retain. Its id is the document's, not metadata, since metadata goes into the prompt."""
    at = said_at(session, turn)
    item: dict[str, Any] = {"content": said(turn), "document_id": turn.turn_id}
    if at is not None:
        item["timestamp"] = with_zone(at)
    return item


def _fact(row: Any, turns: tuple[str, ...], history: list[dict[str, Any]]) -> Fact:
    shown = {
        "kind": row.fact_type,
        "occurred_start": row.occurred_start,
        "occurred_end": row.occurred_end,
        "proof_count": row.proof_count,
        "invalidated_at": row.invalidated_at,
        "invalidation_reason": row.invalidation_reason,
        "edited_at": row.edited_at,
        "drawn_from": row.source_memory_ids or None,
        "history": history or None,
    }
    return Fact(
        row.id,
        row.text or "",
        FactStatus.INVALIDATED if row.state == "invalidated" else FactStatus.ACTIVE,
        source_turn_ids=turns,
        created_at=parse_time(row.occurred_start or row.mentioned_at or row.var_date),
        metadata={name: value for name, value in shown.items() if value is not None},
    )


def _retrieved(row: Any, turns: Mapping[str, tuple[str, ...]]) -> Retrieved:
    scores = row.scores
    signals = {
        name: float(value)
        for name in ("semantic", "keyword", "reranker")
        if scores is not None and (value := getattr(scores, name)) is not None
    }
    drawn = [turn for source in row.source_fact_ids or () for turn in turns.get(source, ())]
    sources = [row.document_id] if row.document_id else list(dict.fromkeys([*turns.get(row.id, ()), *drawn]))
    shown = {"kind": row.type, "occurred_start": row.occurred_start, "mentioned_at": row.mentioned_at}
    metadata = {name: value for name, value in shown.items() if value is not None}
    score = float(scores.final) if scores is not None else None
    return Retrieved(row.id, row.text, score, signals, {**metadata, "source_turn_ids": sources})
