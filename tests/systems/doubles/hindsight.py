"""A double of the Hindsight server 1.1: banks, documents, operations, facts, observations with a history.

Retaining is an operation that ends after ``polls`` looks, and consolidation ends after as many more: it draws one
observation from the facts about the same matter, and rewrites it in place when a newer fact says otherwise.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from tests.fact_rules import Claim
from tests.systems.doubles.extraction import overlap, stable_id, told
from tests.systems.doubles.server import Call, Double, Refusal

Row = dict[str, Any]
_BANKS = "/v1/default/banks"
_FEATURES = [
    "observations",
    "mcp",
    "worker",
    "bank_config_api",
    "bank_llm_health",
    "file_upload_api",
    "document_export_api",
    "document_import_api",
    "audit_log",
    "llm_trace",
    "store_document_text",
]


class _Bank:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.claims: dict[str, Claim] = {}
        self.operations: dict[str, Row] = {}
        self.history: dict[str, list[Row]] = {}
        self.unconsolidated: list[Row] = []
        self.wait = 0


class HindsightDouble(Double):
    """``fails``: operations end as failed; ``key``: the key it wants, empty for none."""

    def __init__(self, *, polls: int = 1, key: str = "") -> None:
        super().__init__()
        self.polls, self.key = polls, key
        self.fails = False
        self.promised = 0
        self.banks: dict[str, _Bank] = {}
        self._numbers = count(1)
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)

    def allowed(self, call: Call) -> bool:
        return call.headers.get("authorization", "") == (f"Bearer {self.key}" if self.key else "")

    def error_body(self, status: int, message: str) -> Any:
        return {"detail": message}

    def answer(self, call: Call) -> Any:
        if call.path == "/version":
            return {"api_version": "1.1.0", "features": dict.fromkeys(_FEATURES, True)}
        found = re.fullmatch(rf"{_BANKS}/([^/]+)(/.*)?", call.path)
        if not found:
            raise Refusal(404, "Not Found")
        bank_id, rest = found.group(1), found.group(2) or ""
        if (call.method, rest) == ("POST", "/memories"):
            return self._retain(bank_id, call.body)
        if (call.method, rest) == ("DELETE", ""):
            self.banks.pop(bank_id, None)
            return {"success": True, "message": "deleted", "deleted_count": 0}
        bank = self.banks.get(bank_id)
        if bank is None:
            raise Refusal(404, f"Bank '{bank_id}' not found")
        if rest.startswith("/operations/"):
            return self._operation(bank, rest.removeprefix("/operations/"))
        if rest == "/stats":
            return self._stats(bank, bank_id)
        if rest == "/memories/list":
            return self._list(bank, call)
        if rest == "/memories/recall":
            return self._recall(bank, call.body)
        if history := re.fullmatch(r"/memories/([^/]+)/history", rest):
            return bank.history.get(history.group(1), [])
        raise Refusal(404, f"no route {call.method} {rest}")

    def _now(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat()

    def _retain(self, bank_id: str, body: Row) -> Row:
        bank = self.banks.setdefault(bank_id, _Bank())
        operation_id = body.get("operation_id") or stable_id("operation", next(self._numbers))
        if operation_id not in bank.operations:
            bank.operations[operation_id] = {"status": "pending", "left": self.polls, "items": body["items"]}
        accepted = {"success": True, "bank_id": bank_id, "items_count": len(body["items"]), "async": body["async"]}
        return {**accepted, "operation_id": operation_id, "operation_ids": None, "usage": None}

    def _operation(self, bank: _Bank, operation_id: str) -> Row:
        operation = bank.operations.get(operation_id)
        if operation is None:
            return {"operation_id": operation_id, "status": "not_found"}
        if operation["status"] in ("pending", "processing"):
            operation["left"] -= 1
            if operation["left"] >= 0:
                operation["status"] = "processing"
            elif self.fails:
                operation |= {"status": "failed", "error_message": "AuthenticationError: no key"}
            else:
                operation["status"] = "completed"
                for item in operation["items"]:
                    self._extract(bank, item)
        return {"operation_id": operation_id, **{n: operation.get(n) for n in ("status", "error_message")}}

    def _row(self, kind: str, text: str, at: str | None, **more: Any) -> Row:
        row_id = stable_id(kind, next(self._numbers))
        row = {"id": row_id, "text": text, "fact_type": kind, "state": "valid", "mentioned_at": at, "metadata": {}}
        return {**row, "date": self._now(), "tags": [], "proof_count": 1, **more}

    def _extract(self, bank: _Bank, item: Row) -> None:
        speaker, _, text = item["content"].partition(": ")
        for claim in told(speaker, text):
            row = self._row("world", claim.sentence, item.get("timestamp"), document_id=item["document_id"])
            bank.claims[row["id"]] = claim
            bank.rows.append(row)
            bank.unconsolidated.append(row)
            bank.wait = self.polls

    def _consolidate(self, bank: _Bank) -> None:
        for fact in bank.unconsolidated:
            claim = bank.claims[fact["id"]]
            older = next(
                (r for r in bank.rows if r["fact_type"] == "observation" and claim.contradicts(bank.claims[r["id"]])),
                None,
            )
            if older is None:
                row = self._row("observation", claim.sentence, fact["mentioned_at"], source_memory_ids=[fact["id"]])
                bank.rows.append(row)
                bank.claims[row["id"]] = claim
                continue
            entry = {"previous_text": older["text"], "changed_at": self._now(), "new_source_memory_ids": [fact["id"]]}
            bank.history.setdefault(older["id"], []).append(entry)
            older["text"] = f"{claim.sentence} Before: {older['text']}"
            older["source_memory_ids"].append(fact["id"])
            bank.claims[older["id"]] = claim
        bank.unconsolidated = []

    def _stats(self, bank: _Bank, bank_id: str) -> Row:
        bank.wait -= 1
        if bank.wait < 0:
            self._consolidate(bank)
        states = [operation["status"] for operation in bank.operations.values()]
        numbers = {"total_nodes": len(bank.rows), "total_links": 0, "total_documents": 0, "pending_operations": 0}
        empty: Row = {
            n: {} for n in ("nodes_by_fact_type", "links_by_link_type", "links_by_fact_type", "links_breakdown")
        }
        return {
            "bank_id": bank_id,
            **numbers,
            **empty,
            "failed_operations": states.count("failed"),
            "operations_by_status": {state: states.count(state) for state in set(states)},
            "pending_consolidation": len(bank.unconsolidated),
            "failed_consolidation": 0,
        }

    def _list(self, bank: _Bank, call: Call) -> Row:
        rows = [row for row in bank.rows if row["state"] == call.query.get("state", "valid")]
        limit, offset = int(call.query.get("limit", 100)), int(call.query.get("offset", 0))
        total = len(rows) + self.promised
        return {"items": rows[offset : offset + limit], "total": total, "limit": limit, "offset": offset}

    def _recall(self, bank: _Bank, body: Row) -> Row:
        results = []
        for row in bank.rows:
            if row["state"] == "valid":
                score = overlap(body["query"], row["text"])
                scores = {"final": score + 1, "semantic": score, "keyword": score, "reranker": None}
                shown = {n: row.get(n) for n in ("id", "text", "mentioned_at", "document_id", "metadata", "tags")}
                results.append({**shown, "type": row["fact_type"], "source_fact_ids": None, "scores": scores})
        return {"results": sorted(results, key=lambda row: -row["scores"]["final"])}
