"""A double of a Letta server: agents, blocks, passages, archives, runs.

The agent of the double writes each claim as a line into its block "human" and rewrites the line that a claim
contradicts, as Letta's agents do; it files questions and small talk nowhere.
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
_SHOWN = re.compile(r"\[[^\]]*\] (\w+): (.*)")


class LettaDouble(Double):
    """``polls``: how often a run answers "running"; ``run_end``: how it ends."""

    def __init__(self, *, polls: int = 0) -> None:
        super().__init__()
        self.polls, self.run_end = polls, "completed"
        self.agents: dict[str, Row] = {}
        self.blocks: dict[str, list[Row]] = {}
        self.passages: dict[str, list[Row]] = {}
        self.archives: dict[str, Row] = {}
        self.runs: dict[str, Row] = {}
        self._claims: dict[str, list[Claim]] = {}
        self._numbers = count(1)
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)

    def error_body(self, status: int, message: str) -> Any:
        return {"detail": message}

    def answer(self, call: Call) -> Any:
        path = call.path.rstrip("/").removeprefix("/v1")
        if path == "/agents":
            return self._create(call.body) if call.method == "POST" else self._named(call.query.get("name"))
        if path == "/archives":
            return [row for row in self.archives.values() if row["agent"] == call.query.get("agent_id")]
        if found := re.fullmatch("/archives/(.+)", path):
            self.archives.pop(found.group(1))
            return {}
        if found := re.fullmatch("/runs/(.+)", path):
            return self._run(self.runs[found.group(1)])
        found = re.fullmatch("/agents/([^/]+)(/.*)?", path)
        agent_id, rest = (found.group(1), found.group(2) or "") if found else ("", "")
        if agent_id not in self.agents:
            raise Refusal(404, f"agent {agent_id} not found")
        if (call.method, rest) == ("DELETE", ""):
            del self.agents[agent_id]
            return {}
        if rest == "/core-memory/blocks":
            return self.blocks[agent_id]
        if (call.method, rest) == ("POST", "/archival-memory"):
            return self._file(agent_id, call.body)
        if rest == "/archival-memory":
            return self._listed(agent_id, call)
        if rest == "/archival-memory/search":
            return self._search(agent_id, call)
        if rest == "/messages/async":
            run = {"id": f"run-{next(self._numbers)}", "agent_id": agent_id, "status": "created", "left": self.polls}
            self.runs[run["id"]] = {**run, "text": call.body["messages"][0]["content"]}
            return run
        raise Refusal(404, f"no route {call.method} {rest}")

    def _now(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat()

    def _create(self, body: Row) -> Row:
        agent_id = f"agent-{stable_id(next(self._numbers))}"
        self.agents[agent_id] = {"id": agent_id, "name": body["name"], "tags": body.get("tags")}
        self.blocks[agent_id] = [{**b, "id": f"block-{next(self._numbers)}"} for b in body["memory_blocks"]]
        self.passages[agent_id], self._claims[agent_id] = [], []
        return self.agents[agent_id]

    def _named(self, name: str | None) -> list[Row]:
        return [row for row in self.agents.values() if row["name"] == name]

    def _file(self, agent_id: str, body: Row) -> list[Row]:
        if not self.passages[agent_id]:
            archive = f"archive-{next(self._numbers)}"
            self.archives[archive] = {"id": archive, "name": "made", "created_at": self._now(), "agent": agent_id}
        passage = {**body, "id": f"passage-{stable_id(next(self._numbers))}", "is_deleted": False}
        self.passages[agent_id].append({"created_at": self._now(), **passage})
        return [passage]

    def _listed(self, agent_id: str, call: Call) -> list[Row]:
        rows = self.passages[agent_id]
        ids = [row["id"] for row in rows]
        start = ids.index(call.query["after"]) + 1 if "after" in call.query else 0
        return rows[start : start + int(call.query.get("limit", 50))]

    def _search(self, agent_id: str, call: Call) -> Row:
        query = call.query["query"]
        rows = sorted(self.passages[agent_id], key=lambda row: -overlap(query, row["text"]))
        found = [
            {"id": row["id"], "content": row["text"], "timestamp": row["created_at"], "tags": row.get("tags")}
            for row in rows[: int(call.query.get("top_k", 10))]
        ]
        return {"results": found, "count": len(found)}

    def _run(self, run: Row) -> Row:
        if run["status"] in ("created", "running"):
            run["left"] -= 1
            run["status"] = "running" if run["left"] >= 0 else self.run_end
            if run["status"] == "completed":
                for speaker, text in _SHOWN.findall(run["text"]):
                    self._remember(run["agent_id"], told(speaker, text))
        return {n: run[n] for n in ("id", "agent_id", "status")} | {"stop_reason": "error"}

    def _remember(self, agent_id: str, claims: list[Claim]) -> None:
        known = self._claims[agent_id]
        for claim in claims:
            known[:] = [older for older in known if not claim.contradicts(older)] + [claim]
        human = next(block for block in self.blocks[agent_id] if block["label"] == "human")
        human["value"] = "\n".join(claim.sentence for claim in known)
