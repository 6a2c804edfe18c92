"""A double of mem0's platform: additions that are queued as events, pages of memories, replaced and merged ones.

An addition is worked off once its event has been looked at ``polls`` times. A fact that contradicts an older one sets
the older one's ``replaced_by``; one that says the same again is kept as merged, and hidden unless it is asked for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import count
from typing import Any

from tests.fact_rules import Claim, claims
from tests.systems.doubles.extraction import overlap, stable_id
from tests.systems.doubles.server import Call, Double, Refusal


class Mem0Double(Double):
    """``polls``: how often an event answers PENDING or RUNNING first; ``fails``: events that end so."""

    def __init__(self, *, polls: int = 2) -> None:
        super().__init__()
        self.polls = polls
        self.fails = 0
        self.most_rows = 10**6
        self.events: dict[str, dict[str, Any]] = {}
        self.memories: list[dict[str, Any]] = []
        self._claims: dict[str, Claim] = {}
        self._numbers = count(1)

    def error_body(self, status: int, message: str) -> Any:
        return {"detail": message}

    def answer(self, call: Call) -> Any:
        for method, pattern, act in (
            ("GET", "/v1/ping/", lambda _: {"status": "ok", "org_id": "o", "project_id": "p", "user_email": "a@b.c"}),
            ("POST", "/v3/memories/add/", self._add),
            ("GET", "/v1/event/([^/]+)/", self._event),
            ("POST", "/v3/memories/", self._list),
            ("POST", "/v3/memories/search/", self._search),
            ("DELETE", "/v1/memories/", self._delete),
            ("DELETE", "/v2/entities/user/([^/]+)/", self._delete_user),
        ):
            found = re.fullmatch(pattern, call.path)
            if call.method == method and found:
                return act(call, *found.groups())  # type: ignore[operator]
        raise Refusal(404, "Not found.")

    def _add(self, call: Call) -> Any:
        body = call.body
        if not body.get("user_id"):
            raise Refusal(400, "One of the filters: app_id, user_id, agent_id, run_id is required!")
        if body.get("infer") is False:
            rows = [self._store(body, Claim(message["content"], "")) for message in body["messages"]]
            return {"results": [{"id": row["id"], "memory": row["memory"], "event": "ADD"} for row in rows]}
        event_id = stable_id("event", next(self._numbers))
        self.events[event_id] = {"left": self.polls, "body": body}
        return {"message": "Memory processing has been queued", "status": "PENDING", "event_id": event_id}

    def _event(self, call: Call, event_id: str) -> Any:
        event = self.events.get(event_id)
        if event is None:
            raise Refusal(404, "Event not found.")
        for waiting in self.events.values():  # time goes by for all of them, and they are worked off in turn
            waiting["left"] -= 1
        if event["left"] >= 0:
            return {"id": event_id, "status": "RUNNING" if event["left"] == 0 else "PENDING", "results": []}
        for due in self.events.values():
            if due["left"] < 0 and "status" not in due:
                self._work_off(due)
        return {"id": event_id, **{name: event.get(name) for name in ("status", "results", "error")}}

    def _work_off(self, event: dict[str, Any]) -> None:
        if self.fails:
            self.fails -= 1
            event["status"], event["error"] = "FAILED", "the model refused"
            return
        told = [claim for message in event["body"]["messages"] for claim in claims(message["content"])]
        event["results"] = [{"id": self._store(event["body"], claim)["id"]} for claim in told]
        event["status"] = "SUCCEEDED"

    def _store(self, body: dict[str, Any], claim: Claim) -> dict[str, Any]:
        said = (
            datetime.fromtimestamp(body["timestamp"], UTC) if "timestamp" in body else datetime(2026, 1, 1, tzinfo=UTC)
        )
        row = {
            "id": stable_id("memory", next(self._numbers)),
            "memory": claim.sentence,
            "user_id": body["user_id"],
            "metadata": body.get("metadata"),
            "categories": [],
            "replaced_by": None,
            "synthesized": False,
            "created_at": said.isoformat(),
            "updated_at": said.isoformat(),
            "_state": "active",
        }
        for older in self.memories:
            if older["user_id"] == row["user_id"] and older["_state"] == "active":
                if older["memory"] == row["memory"]:
                    row["_state"] = "merged"
                elif claim.contradicts(self._claims[older["id"]]):
                    older["_state"], older["replaced_by"] = "superseded", row["id"]
        self._claims[row["id"]] = claim
        self.memories.append(row)
        return row

    def _shown(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        states = {"active"} if body.get("latest_only") else {"active", "superseded"}
        if body.get("include_merged"):
            states.add("merged")
        user = body["filters"]["user_id"]
        return [row for row in self.memories if row["user_id"] == user and row["_state"] in states]

    def _list(self, call: Call) -> Any:
        page, size = int(call.query.get("page", 1)), min(int(call.query.get("page_size", 100)), 200)
        rows = self._shown(call.body)
        part = rows[(page - 1) * size : page * size][: self.most_rows]
        more = f"{self.url}/v3/memories/?page={page + 1}" if page * size < len(rows) else None
        return {"count": len(rows), "next": more, "previous": None, "results": [_public(row) for row in part]}

    def _search(self, call: Call) -> Any:
        scored = [(overlap(call.body["query"], row["memory"]), row) for row in self._shown(call.body)]
        scored.sort(key=lambda pair: -pair[0])
        return {
            "results": [
                {**_public(row), "score": score, "score_breakdown": {"semantic": score, "bm25": 0.0, "entity": 0.0}}
                for score, row in scored[: call.body.get("top_k", 10)]
            ]
        }

    def _delete(self, call: Call) -> Any:
        self.memories = [row for row in self.memories if row["user_id"] != call.query["user_id"]]
        return {"message": "Memories deleted successfully!"}

    def _delete_user(self, call: Call, user: str) -> Any:
        if user not in {event["body"]["user_id"] for event in self.events.values()}:
            raise Refusal(404, "Entity not found.")
        return {"message": "Entity deleted successfully!"}


def _public(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("_state", "user_id")}
