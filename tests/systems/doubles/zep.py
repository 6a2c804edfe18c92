"""A double of Zep Cloud's API v4: users, threads, messages, tasks, episodes, edges, ingestion traces.

Each message becomes an episode and, once its task has been polled ``polls`` times, edges; an edge that contradicts an
older one sets its ``invalid_at`` and ``expired_at``, as Zep does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from tests.fact_rules import Claim
from tests.systems.doubles.extraction import overlap, stable_id, told
from tests.systems.doubles.server import Call, Double, Refusal


class ZepDouble(Double):
    """``tracing``: whether ingestion traces are kept; ``polls``: how often a task answers "processing" first."""

    prefix = "/api/v4"

    def __init__(self, *, tracing: bool = False, polls: int = 1, page_size: int = 50, most_messages: int = 30) -> None:
        super().__init__()
        self.tracing, self.polls, self.page_size, self.most_messages = tracing, polls, page_size, most_messages
        self.task_end = "succeeded"
        self.repeat_cursor = False
        self.extracts = True
        self.accepts: int | None = None
        self.users: dict[str, dict[str, Any]] = {}
        self.threads: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.episodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.traces: dict[str, list[dict[str, Any]]] = {}
        self._claims: list[tuple[dict[str, Any], Claim]] = []
        self._answers: dict[str, Any] = {}
        self._numbers = count(1)
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)

    def error_body(self, status: int, message: str) -> Any:
        return {"error": {"code": f"e{status}", "message": message, "request_id": "req-1"}}

    def answer(self, call: Call) -> Any:
        key = call.headers.get("idempotency-key", "")
        if call.method == "POST" and key in self._answers:
            return self._answers[key]
        for method, pattern, act in self._routes():
            found = re.fullmatch(pattern, call.path)
            if call.method == method and found:
                body = act(call, *found.groups())
                if key:
                    self._answers[key] = body
                return body
        raise Refusal(404, f"no route {call.method} {call.path}")

    def _routes(self) -> list[tuple[str, str, Callable[..., Any]]]:
        return [
            ("POST", "/users", self._create_user),
            ("POST", "/users/lookup", self._lookup_user),
            ("DELETE", "/users/([^/]+)", self._delete_user),
            ("POST", "/threads", self._create_thread),
            ("POST", "/threads/([^/]+)/messages", self._add_messages),
            ("GET", "/tasks/([^/]+)", self._task),
            ("POST", "/graphs/([^/]+)/episodes/list", self._list_episodes),
            ("POST", "/graphs/([^/]+)/edges/list", self._list_edges),
            ("POST", "/graphs/([^/]+)/search/edges", self._search_edges),
            ("GET", "/graphs/([^/]+)/episodes/([^/]+)/ingestion-traces", self._traces),
        ]

    def _now(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat().replace("+00:00", "Z")

    def _new_id(self, kind: str) -> str:
        return stable_id(kind, next(self._numbers))

    def _create_user(self, call: Call) -> Any:
        user_id = call.body.get("user_id")
        if any(user["user_id"] == user_id for user in self.users.values()):
            raise Refusal(400, f"user with user_id {user_id} exists")
        user = {"uuid": self._new_id("user"), "graph_uuid": self._new_id("graph"), "user_id": user_id}
        self.users[user["uuid"]] = user
        return 201, user

    def _lookup_user(self, call: Call) -> Any:
        for user in self.users.values():
            if user["user_id"] == call.body.get("user_id"):
                return user
        raise Refusal(404, "user not found")

    def _delete_user(self, call: Call, user_uuid: str) -> Any:
        user = self.users.pop(user_uuid, None)
        if user is None:
            raise Refusal(404, "user not found")
        graph = user["graph_uuid"]
        self.episodes = [episode for episode in self.episodes if episode["graph_uuid"] != graph]
        self.edges = [edge for edge in self.edges if edge["graph_uuid"] != graph]
        return 202, {"task": self._new_task([])}

    def _create_thread(self, call: Call) -> Any:
        user = self.users.get(call.body["user_uuid"])
        if user is None:
            raise Refusal(400, "invalid_identifier")
        thread = {"uuid": self._new_id("thread"), "user_uuid": user["uuid"], "graph_uuid": user["graph_uuid"]}
        self.threads[thread["uuid"]] = thread
        return 201, thread

    def _new_task(self, episodes: list[dict[str, Any]]) -> dict[str, Any]:
        task = {"uuid": self._new_id("task"), "status": "pending", "type": "add_messages"}
        self.tasks[task["uuid"]] = {"task": task, "left": self.polls, "episodes": episodes}
        return dict(task)

    def _add_messages(self, call: Call, thread_uuid: str) -> Any:
        thread, messages = self.threads[thread_uuid], call.body["messages"]
        if len(messages) > self.most_messages:
            raise Refusal(400, f"at most {self.most_messages} messages")
        stored, episodes = [], []
        for message in messages:
            if "uuid" in message or len(message["content"]) > 2500 or len(message.get("metadata") or {}) > 10:
                raise Refusal(400, "message too long, or with what must be left unset")
            uuid = self._new_id("episode")
            stored.append({**message, "uuid": uuid, "thread_uuid": thread_uuid, "processed": False})
            episode = {
                "uuid": uuid,
                "content": message["content"],
                "metadata": message.get("metadata"),
                "role": message["role"],
                "role_name": message.get("name"),
                "reference_time": message.get("reference_time"),
                "created_at": self._now(),
                "graph_uuid": thread["graph_uuid"],
                "thread_uuid": thread_uuid,
                "source": "message",
                "processed": False,
            }
            self.episodes.append(episode)
            episodes.append(episode)
        return 202, {"messages": stored[: self.accepts], "task": self._new_task(episodes)}

    def _task(self, call: Call, task_uuid: str) -> Any:
        record = self.tasks[task_uuid]
        if record["task"]["status"] not in ("pending", "processing"):
            return record["task"]
        if record["left"] > 0:
            record["left"] -= 1
            record["task"]["status"] = "processing"
            return record["task"]
        record["task"]["status"] = self.task_end
        if self.task_end == "failed":
            record["task"]["error"] = {"code": "extraction_failed", "message": "the model refused"}
        else:
            for episode in record["episodes"] if self.extracts else []:
                self._extract(episode)
        for episode in record["episodes"]:
            episode["processed"] = True
        return record["task"]

    def _extract(self, episode: dict[str, Any]) -> None:
        graph, added, ended = episode["graph_uuid"], [], []
        for claim in told(episode["role_name"] or episode["role"], episode["content"]):
            edge = {
                "uuid": self._new_id("edge"),
                "graph_uuid": graph,
                "fact": claim.sentence,
                "name": claim.relation or "SAID",
                "source_node_uuid": stable_id(graph, claim.subject),
                "target_node_uuid": stable_id(graph, claim.target or claim.sentence),
                "source_node_name": claim.subject,
                "episode_uuids": [episode["uuid"]],
                "created_at": self._now(),
                "valid_at": episode["reference_time"],
            }
            for old, older in self._claims:
                if old["graph_uuid"] == graph and not old.get("expired_at") and claim.contradicts(older):
                    old["invalid_at"], old["expired_at"] = edge["valid_at"], self._now()
                    reference = {"uuid": edge["uuid"], "explanation": "another value"}
                    ended.append({"invalidated_edge_uuid": old["uuid"], "invalidating_edges": [reference]})
            self._claims.append((edge, claim))
            added.append(edge)
        self.edges += added
        if self.tracing:
            output = {"new_edges": added, "edge_invalidations": ended}
            trace = {"uuid": self._new_id("trace"), "step": "resolve_edges", "status": "recorded", "output": output}
            self.traces[episode["uuid"]] = [trace]

    def _page(self, call: Call, rows: Iterable[dict[str, Any]]) -> Any:
        size = min(int(call.query.get("page_size", self.page_size)), self.page_size)
        start = int(call.query.get("cursor") or 0)
        all_rows = list(rows)
        page: dict[str, Any] = {"items": all_rows[start : start + size]}
        if start + size < len(all_rows):
            page["next_cursor"] = str(size if self.repeat_cursor else start + size)
        return page

    def _of(self, graph: str) -> str:
        known = {user["graph_uuid"] for user in self.users.values()}
        if graph not in known:
            raise Refusal(404, "graph not found")
        return graph

    def _list_episodes(self, call: Call, graph: str) -> Any:
        return self._page(call, (row for row in self.episodes if row["graph_uuid"] == self._of(graph)))

    def _list_edges(self, call: Call, graph: str) -> Any:
        self._of(graph)
        return self._page(call, (row for row in self.edges if row["graph_uuid"] == graph))

    def _search_edges(self, call: Call, graph: str) -> Any:
        query = call.body["query"]
        found = [
            {**edge, "score": overlap(query, edge["fact"])}
            for edge in self.edges
            if edge["graph_uuid"] == self._of(graph)
        ]
        return self._page(call, sorted(found, key=lambda edge: -edge["score"]))

    def _traces(self, call: Call, graph: str, episode: str) -> Any:
        return self._page(call, self.traces.get(episode, []))
