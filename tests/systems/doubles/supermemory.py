"""A double of Supermemory's API v5: namespaces, documents, chunks, memories with versions.

A document is indexed after ``polls`` listings and dreamt after as many more; a memory that contradicts an older one
becomes its next version, as Supermemory does.
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


class SupermemoryDouble(Double):
    """``refuses``: a text that no document may hold; ``fails``: one that no document with it can be processed."""

    def __init__(self, *, polls: int = 1, most: int = 100) -> None:
        super().__init__()
        self.polls, self.most = polls, most
        self.refuses = self.fails = "\0"
        self.promised = 0
        self.derives_metadata = True
        self.namespaces: dict[str, dict[str, list[Row]]] = {}
        self._claims: dict[str, Claim] = {}
        self._numbers = count(1)
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)

    def answer(self, call: Call) -> Any:
        found = re.fullmatch(r"/ns/([^/]+)(/.*)?", call.path)
        if not found:
            raise Refusal(404, "not found")
        name, rest = found.group(1), found.group(2) or ""
        if (call.method, rest) == ("POST", "/document/batch"):
            return self._add(name, call.body["documents"])
        space = self.namespaces.get(name)
        if space is None:
            raise Refusal(404, f"namespace {name} not found")
        if (call.method, rest) == ("DELETE", ""):
            del self.namespaces[name]
            counts = {"deletedDocumentsCount": len(space["documents"]), "deletedMemoriesCount": len(space["memories"])}
            return {"status": "deleted", "namespace": name, **counts}
        if (call.method, rest) == ("POST", "/search"):
            return self._search(space, call.body)
        if call.method == "POST" and rest.startswith("/list/"):
            return self._list(space, rest.removeprefix("/list/"), call)
        if call.method == "GET" and rest.startswith("/memories/"):
            return self._memory(space, rest.removeprefix("/memories/"))
        raise Refusal(404, f"no route {call.method} {rest}")

    def _now(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat().replace("+00:00", "Z")

    def _add(self, name: str, documents: list[Row]) -> Row:
        space = self.namespaces.setdefault(name, {"documents": [], "chunks": [], "memories": []})
        accepted, refused = [], []
        for given in documents:
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", given["id"]) or self.refuses in given["content"]:
                refused.append({"id": given["id"], "status": "error", "error": "content not allowed"})
                continue
            known = next((row for row in space["documents"] if row["id"] == given["id"]), None)
            if known is None:
                at = self._now()
                system = {"status": "queued", "dreamingStatus": "dreaming", "createdAt": at, "updatedAt": at}
                row = {"id": given["id"], "type": "text", "metadata": given.get("metadata") or {}, "system": system}
                known = {**row, "content": given["content"], "date": given.get("date"), "left": 2 * self.polls}
                space["documents"].append(known)
            elif known["content"] != given["content"]:
                known["content"] += "\n" + given["content"]
            accepted.append({"id": given["id"], "status": known["system"]["status"]})
        return {"results": accepted + refused, "count": len(accepted), "failed": len(refused)}

    def _step(self, space: dict[str, list[Row]]) -> None:
        for row in space["documents"]:
            row["left"] -= 1
            system = row["system"]
            if self.fails in row["content"]:
                system["status"] = "failed"
                continue
            if row["left"] <= self.polls and system["status"] != "done":
                system["status"] = "done"
                at = {"createdAt": self._now()}
                chunk = {"id": stable_id("chunk", row["id"]), "position": 0, "content": row["content"], "type": "text"}
                space["chunks"].append({**chunk, "metadata": {}, "system": at, "documentId": row["id"]})
            if row["left"] <= 0 and system["dreamingStatus"] != "done":
                system["dreamingStatus"] = "done"
                self._dream(space, row)

    def _dream(self, space: dict[str, list[Row]], document: Row) -> None:
        speaker, _, text = document["content"].partition(": ")
        for claim in told(speaker, text):
            at = self._now()
            memory: Row = {
                "id": stable_id("memory", next(self._numbers)),
                "memory": claim.sentence,
                "metadata": dict(document["metadata"]) if self.derives_metadata else {},
                "isStatic": False,
                "isInference": False,
                "isLatest": True,
                "isForgotten": False,
                "version": 1,
                "system": {"createdAt": at, "updatedAt": at},
                "document": document["id"],
                "parent": None,
            }
            for old in space["memories"]:
                if old["isLatest"] and claim.contradicts(self._claims[old["id"]]):
                    old["isLatest"] = False
                    memory |= {"version": old["version"] + 1, "parent": old["id"]}
            self._claims[memory["id"]] = claim
            space["memories"].append(memory)

    def _list(self, space: dict[str, list[Row]], what: str, call: Call) -> Row:
        if what == "documents" and call.query.get("page", "1") == "1":
            self._step(space)
        rows = space[what]
        if what == "memories" and not (call.body.get("include") or {}).get("forgotten"):
            rows = [row for row in rows if not row["isForgotten"]]
        page, limit = int(call.query.get("page", 1)), int(call.query.get("limit", 10))
        if limit > self.most:
            raise Refusal(400, "limit too large")
        empty: Row = {"documents": [], "chunks": [], "memories": []}
        total = len(rows) + self.promised
        told_pages = {"currentPage": page, "limit": limit, "totalItems": total, "totalPages": -(-len(rows) // limit)}
        return {**empty, what: rows[(page - 1) * limit : page * limit], "pagination": told_pages}

    def _memory(self, space: dict[str, list[Row]], memory_id: str) -> Row:
        rows = {row["id"]: row for row in space["memories"]}
        if memory_id not in rows:
            raise Refusal(404, "memory not found")
        row = rows[memory_id]
        parents = [{**rows[row["parent"]], "relation": "updates"}] if row["parent"] else []
        document = next(d for d in space["documents"] if d["id"] == row["document"])
        included = {"related": {"parents": parents, "children": [], "siblings": []}, "document": document}
        return {**row, "included": included}

    def _search(self, space: dict[str, list[Row]], body: Row) -> Row:
        mode, found = body.get("searchMode", "hybrid"), []
        for kind, text, wanted in (("memories", "memory", "chunks"), ("chunks", "content", "memories")):
            for row in space[kind]:
                if mode == wanted or row.get("isForgotten") or row.get("isLatest") is False:
                    continue
                score = overlap(body["query"], row[text])
                told_as = {"memory" if kind == "memories" else "chunk": row[text]}
                at = {"updatedAt": row["system"]["createdAt"]}
                flags = {"isLatest": True, "isInference": False}
                metadata = row["metadata"]
                found.append(
                    {"id": row["id"], **told_as, "metadata": metadata, "similarity": score, **flags, "system": at}
                )
        found = [row for row in found if row["similarity"] >= body.get("threshold", 0.5)]
        found.sort(key=lambda row: -row["similarity"])
        return {"results": found[: body.get("limit", 10)], "searchTime": 3}
