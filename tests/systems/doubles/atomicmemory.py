"""A double of an AtomicMemory core, API v1: memories, claims with versions, an audit trail.

A claim that contradicts an older one supersedes it: the old memory is no longer listed, and both versions stay in the
audit trail. The same sentence told again updates the memory in place.
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
_SAID = re.compile(r"(?:\[[^\]]*\] )?(?:(\w+): )?(.*)", re.DOTALL)


class AtomicMemoryDouble(Double):
    """``pending``: an ingest is accepted (202) without a result; ``most_recent``: rows of the audit at once."""

    prefix = "/v1"

    def __init__(self, *, key: str = "", pending: bool = False, most_recent: int = 1000) -> None:
        super().__init__()
        self.key, self.pending, self.most_recent = key, pending, most_recent
        self.memories: list[Row] = []
        self.versions: list[Row] = []
        self._claims: dict[str, Claim] = {}
        self._numbers = count(1)
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)

    @property
    def url(self) -> str:
        return super().url.removesuffix(self.prefix)

    def allowed(self, call: Call) -> bool:
        return call.headers.get("authorization", "") == (f"Bearer {self.key}" if self.key else "")

    def answer(self, call: Call) -> Any:
        path = call.path.removeprefix("/memories")
        if path == "/ingest":
            stored = self._ingest(call.body)
            return (202, {"status": "accepted"}) if self.pending else stored
        if path == "/search/fast":
            return self._search(call.body)
        if path == "/reset-source":
            gone = [row for row in self.memories if row["user_id"] == call.body["user_id"]]
            self.memories = [row for row in self.memories if row not in gone]
            self.versions = [row for row in self.versions if row["user_id"] != call.body["user_id"]]
            return {"success": True, "deleted_memories": len(gone), "deleted_episodes": len(gone)}
        user = call.query.get("user_id", "")
        if path == "/list":
            rows = [row for row in self.memories if row["user_id"] == user]
            offset, limit = int(call.query["offset"]), int(call.query["limit"])
            return {"memories": rows[offset : offset + limit], "count": len(rows)}
        versions = [row for row in self.versions if row["user_id"] == user]
        if path == "/audit/summary":
            counts = {"active_versions": 0, "superseded_versions": 0, "total_claims": 0, "by_mutation_type": {}}
            return {**counts, "total_versions": len(versions)}
        if path == "/audit/recent":
            recent = versions[::-1][: min(int(call.query["limit"]), self.most_recent)]
            return {"mutations": recent, "count": len(recent)}
        if found := re.fullmatch("/([^/]+)/audit", path):
            claims = {row["claim_id"] for row in versions if row["memory_id"] == found.group(1)}
            trail = [{**row, "version_id": row["id"]} for row in versions if row["claim_id"] in claims]
            return {"memory_id": found.group(1), "trail": trail, "version_count": len(trail)}
        raise Refusal(404, f"no route {call.method} {call.path}")

    def _now(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat().replace("+00:00", "Z")

    def _ingest(self, body: Row) -> Row:
        if body.get("content_class") in (None, "raw"):
            raise Refusal(422, "raw content is refused by policy")
        said = _SAID.fullmatch(body["conversation"])
        assert said is not None
        stored: list[str] = []
        updated: list[str] = []
        for claim in told(said.group(1) or "User", said.group(2)):
            known = next((row for row in self._of(body) if row["content"] == claim.sentence), None)
            if known is not None:
                updated.append(known["id"])
                continue
            memory = {"id": stable_id("memory", next(self._numbers)), "content": claim.sentence}
            memory |= {name: body[name] for name in ("user_id", "source_site", "source_url")}
            self.memories.append({**memory, "created_at": self._now(), "importance": 0.5, "episode_id": "e1"})
            self._supersede(body, memory, claim)
            stored.append(memory["id"])
        counts = {"facts_extracted": len(stored), "memories_stored": len(stored), "memories_updated": len(updated)}
        return {**counts, "stored_memory_ids": stored, "updated_memory_ids": updated}

    def _of(self, body: Row) -> list[Row]:
        return [row for row in self.memories if row["user_id"] == body["user_id"]]

    def _supersede(self, body: Row, memory: Row, claim: Claim) -> None:
        at = self._now()
        version: Row = {
            "id": stable_id("version", next(self._numbers)),
            "claim_id": stable_id("claim", next(self._numbers)),
            "user_id": body["user_id"],
            "memory_id": memory["id"],
            "content": claim.sentence,
            "mutation_type": "add",
            "mutation_reason": None,
            "actor_model": "rules",
            "contradiction_confidence": None,
            "previous_version_id": None,
            "superseded_by_version_id": None,
            "valid_from": at,
            "valid_to": None,
            "created_at": at,
        }
        for old in self.versions:
            open_ = old["user_id"] == body["user_id"] and old["valid_to"] is None
            if open_ and claim.contradicts(self._claims[old["id"]]):
                old |= {"superseded_by_version_id": version["id"], "valid_to": at}
                reason = {"mutation_type": "supersede", "mutation_reason": "another value"}
                version |= {**reason, "previous_version_id": old["id"], "claim_id": old["claim_id"]}
                self.memories = [row for row in self.memories if row["id"] != old["memory_id"]]
        self._claims[version["id"]] = claim
        self.versions.append(version)

    def _search(self, body: Row) -> Row:
        rows = sorted(self._of(body), key=lambda row: -overlap(body["query"], row["content"]))[: body.get("limit", 10)]
        found = []
        for row in rows:
            score = overlap(body["query"], row["content"])
            found.append({**row, "semantic_similarity": score, "ranking_score": score / 2, "version_id": None})
        receipt = {"embedding_model": "rules", "embedding_model_version": "1", "embedding_dimensions": 3}
        receipt |= {"query_text": body["query"], "candidate_ids": [row["id"] for row in rows], "trace_id": "trace-1"}
        return {"memories": found, "count": len(found), "retrieval": receipt}
