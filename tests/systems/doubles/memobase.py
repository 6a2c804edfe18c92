"""A double of the Memobase API: users, chat blobs in a buffer, profile slots, events.

A flush works the buffer off after ``polls`` looks: each claim goes into the slot of its matter, whose content it
replaces, and an event logs the change.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from tests.systems.doubles.extraction import overlap, stable_id, told
from tests.systems.doubles.server import Call, Double

Row = dict[str, Any]
_UUID = re.compile(r"[0-9a-f-]{36}")


class _NotFound(Exception):
    pass


class MemobaseDouble(Double):
    """``fails``: blobs cannot be processed."""

    prefix = "/api/v1"

    def __init__(self, *, polls: int = 0) -> None:
        super().__init__()
        self.polls, self.fails = polls, False
        self.users: dict[str, Row] = {}
        self._numbers = count(1)
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)

    def error_body(self, status: int, message: str) -> Any:
        return {"data": None, "errno": status, "errmsg": message}

    def answer(self, call: Call) -> Any:
        try:
            return {"data": self._data(call), "errno": 0, "errmsg": ""}
        except _NotFound as error:
            return {"data": None, "errno": 404, "errmsg": f"User {error} not found"}

    def _data(self, call: Call) -> Any:
        if (call.method, call.path) == ("POST", "/users"):
            user = {"slots": [], "events": [], "idle": [], "processing": [], "done": [], "failed": [], "left": 0}
            self.users[call.body["id"]] = user
            return {"id": call.body["id"]}
        user_id = _UUID.findall(call.path)[0]
        user = self.users.get(user_id)
        if user is None:
            raise _NotFound(user_id)
        if call.method == "DELETE":
            del self.users[user_id]
            return None
        if call.path.startswith("/blobs/insert"):
            user["idle"].append({"id": stable_id("blob", next(self._numbers)), **call.body})
            return {"id": user["idle"][-1]["id"]}
        if call.method == "POST" and call.path.startswith("/users/buffer"):
            user["processing"], user["idle"], user["left"] = user["processing"] + user["idle"], [], self.polls
            return {}
        if call.path.startswith("/users/buffer/capacity"):
            return {"ids": [blob["id"] for blob in self._buffer(user, call.query["status"])]}
        if call.path.startswith("/users/profile"):
            return {"profiles": user["slots"]}
        if call.path.startswith("/users/event/search"):
            found = [{**event, "similarity": self._likeness(call.query["query"], event)} for event in user["events"]]
            found.sort(key=lambda event: -event["similarity"])
            return {"events": found[: int(call.query["topk"])]}
        if call.path.startswith("/users/event"):
            return {"events": user["events"][::-1][: int(call.query["topk"])]}
        return {"data": {"memx": True}}

    def _likeness(self, query: str, event: Row) -> float:
        return overlap(query, event["event_data"]["event_tip"])

    def _buffer(self, user: Row, state: str) -> list[Row]:
        if state == "processing":
            user["left"] -= 1
            if user["left"] < 0:
                for blob in user["processing"]:
                    user["failed" if self.fails else "done"].append(blob)
                    if not self.fails:
                        self._extract(user, blob)
                user["processing"] = []
        found: list[Row] = user[state]
        return found

    def _extract(self, user: Row, blob: Row) -> None:
        for message in blob["blob_data"]["messages"]:
            for claim in told(message.get("alias") or message["role"], message["content"]):
                self._clock += timedelta(seconds=1)
                now = self._clock.isoformat()
                attributes = {"topic": claim.subject, "sub_topic": claim.relation or claim.sentence}
                slot = next((s for s in user["slots"] if s["attributes"] == attributes), None)
                if slot is None:
                    slot = {"id": stable_id("slot", next(self._numbers)), "attributes": attributes, "created_at": now}
                    user["slots"].append(slot)
                content = f"{claim.sentence} [mentioned on {message.get('created_at')}]"
                slot |= {"content": content, "updated_at": now}
                delta = {"content": content, "attributes": attributes}
                data = {"profile_delta": [delta], "event_tip": content}
                event = {"id": stable_id("event", next(self._numbers)), "event_data": data}
                user["events"].append({**event, "created_at": now, "updated_at": now})
