"""``mem0``: the open source library run in process, or mem0's platform when its key is set."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Protocol

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, need, read_options
from memx.adapters.provenance import sendable
from memx.adapters.system_models import MODEL_OPTIONS, need_llm
from memx.model import QueryResult, Session, Snapshot


class Side(Protocol):
    """What the library and the platform both do for the adapter."""

    calls: Calls

    def describe(self) -> Mapping[str, Any]: ...
    def ingest_session(self, session: Session) -> None: ...
    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None: ...
    def query(self, query: str, entity_id: str, top_k: int, asked_at: datetime | None) -> QueryResult: ...
    def export_state(self, entity_id: str) -> Snapshot: ...
    def reset(self, entity_id: str) -> None: ...
    def close(self) -> None: ...


class Mem0(MemoryAdapter):
    """mem0 2.x: facts that a model extracts from each message, found by vectors.

    With a platform key (MEM0_API_KEY) it drives mem0's hosted platform, else the open source library in this process,
    with memx's own embedder and a local vector store, or as a file of mem0's own configuration says.
    """

    name = "mem0"
    exports = (
        "every memory with its time and the turn that was added",
        "library: deleted memories and older wordings, from mem0's history",
        "platform: memories that a newer one replaced or that were merged, with the link",
    )
    cannot_see = (
        "library: which memory took another's place (mem0 only adds, and keeps no link)",
        "turns from which nothing was extracted",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "mode": Option("auto", "the library or the platform", choices=("auto", "library", "platform")),
        "api_key": Option("", "a key of mem0's platform", env="MEM0_API_KEY", secret=True),
        "host": Option("https://api.mem0.ai", "address of the platform"),
        "unit": Option("turn", "what one add() holds", choices=("turn", "session")),
        "infer": Option(True, "extract facts; off stores each message as it is"),
        "threshold": Option(0.0, "lowest similarity that is returned", least=0),
        "latest_only": Option(False, "platform: search only what is current"),
        "page_size": Option(100, "platform: memories in one page", least=1),
        "timeout": Option(60.0, "platform: seconds that one request may take", least=0.1),
        "config": Option("", "library: a JSON file with mem0's own configuration"),
        "path": Option("", "library: a folder to keep the local store in; empty keeps it in memory"),
        **MODEL_OPTIONS,
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        mode = self.options["mode"]
        if mode == "platform" or (mode == "auto" and self.options["api_key"]):
            from memx.adapters.systems.mem0_platform import Mem0Platform

            need(self.name, self.OPTIONS, self.options, "api_key")
            self._side: Side = Mem0Platform(self.options, self.note)
            self.deep_query = False
            self.keeps_data = True
        else:
            from memx.adapters.systems.mem0_library import Mem0Library

            self._side = Mem0Library(self.options, self.note)
            if self.options["infer"] and not self.options["config"]:
                need_llm(self.name, self.OPTIONS, self.options)
            self.keeps_data = bool(self.options["path"] or self.options["config"])

        self.calls = self._side.calls

    def describe(self) -> Mapping[str, Any]:
        """Which of the two, its version and its models."""
        return self._side.describe()

    def ingest_session(self, session: Session) -> None:
        self._side.ingest_session(session)

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:
        self._side.wait_until_ready(entity_id, timeout_s)

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return self._side.query(sendable(query), entity_id, top_k, self.asked_at)

    def export_state(self, entity_id: str) -> Snapshot:
        return self._side.export_state(entity_id)

    def reset(self, entity_id: str) -> None:
        self._side.reset(entity_id)

    def close(self) -> None:
        self._side.close()
