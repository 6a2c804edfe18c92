"""One opened ``Memory`` of mem0's library, watched: what it would leave out without a word is known."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memx.adapters.system_models import ReplyParsingError, embedder, llm_address, llm_key, vectors
from memx.adapters.systems.mem0_rows import Addition

_FIRST_PAGE = 1000
_SAID_ON = "The new messages were written on {date}: that is the Observation Date, whatever stands above."


class Kept:
    """The stores that lie in folders, each opened once in this process: whoever opens one locks it.

    Instances of the adapter share a store, and the last one that lets it go closes it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: dict[Path, tuple[Store, int]] = {}

    def take(self, folder: Path, make: Callable[[], Store]) -> Store:
        """The store of a folder, made if nobody has it open."""
        with self._guard:
            store, users = self._open[folder] if folder in self._open else (make(), 0)
            self._open[folder] = store, users + 1
            return store

    def let_go(self, folder: Path, *, all_users: bool = False) -> None:
        """One user less, or none any more."""
        with self._guard:
            store, users = self._open.pop(folder, (None, 0))
            if store is None:
                return
            if users > 1 and not all_users:
                self._open[folder] = store, users - 1
            else:
                store.close()


class Store:
    """One opened ``Memory``.

    Attributes:
        lost: what the last add() left out silently, by id or text, with the error.
    """

    def __init__(self, memory: Any, options: Mapping[str, Any], own: bool) -> None:
        self.memory = memory
        self.lost: dict[str, Exception] = {}
        self._own = own
        if own:
            memory.embedding_model = _Embedding(options)
            memory.llm.client = _client(options)
        memory.llm = _Model(memory.llm, options["llm_retries"])
        self._watch(memory.embedding_model, "embed", lambda text, *rest, **named: [text])
        self._watch(memory.vector_store, "insert", lambda *rest, **named: named.get("ids") or ["a fact"])

    def add(self, addition: Addition, entity_id: str, infer: bool) -> Sequence[Mapping[str, Any]]:
        """The memories that one add() brought."""
        self.lost.clear()
        metadata, at = addition.metadata, addition.at
        prompt = self.memory.custom_instructions or ""
        if at is not None:
            metadata = {**metadata, "created_at": at.isoformat()}
            prompt = f"{prompt}\n{_SAID_ON.format(date=at.date())}".strip()
        added = self.memory.add(
            addition.messages, user_id=entity_id, metadata=metadata, infer=infer, prompt=prompt or None
        )
        rows: Sequence[Mapping[str, Any]] = added["results"]
        return rows

    def rows(self, entity_id: str) -> list[Mapping[str, Any]]:
        """Every memory; mem0's listing has no cursor, so it is asked for more until it gives less."""
        size = _FIRST_PAGE
        while True:
            listed = self.memory.get_all(filters={"user_id": entity_id}, top_k=size, show_expired=True)
            found: list[Mapping[str, Any]] = listed["results"]
            if len(found) < size:
                return found
            size *= 4

    def ids_of_history(self) -> list[str]:
        """Every id that the history of this store names; none where the history holds other users' memories too."""
        if not self._own:
            return []
        rows = self.memory.db.connection.execute("SELECT memory_id FROM history ORDER BY rowid").fetchall()
        return [str(row[0]) for row in rows]

    def history(self, memory_id: str) -> list[Mapping[str, Any]]:
        """The changes of a memory in their order."""
        rows: list[Mapping[str, Any]] = self.memory.history(memory_id)
        return rows

    def close(self) -> None:
        """Release the store."""
        with contextlib.suppress(Exception):
            self.memory.close()
            self.memory.vector_store.client.close()

    def _watch(self, owner: Any, method: str, keys: Callable[..., Sequence[str]]) -> None:
        """Remember what a method failed for; what it does in a later attempt is no longer lost."""
        inner = getattr(owner, method)

        def watched(*args: Any, **named: Any) -> Any:
            about = keys(*args, **named)
            try:
                done = inner(*args, **named)
            except Exception as error:
                self.lost.update(dict.fromkeys(about, error))
                raise
            for key in about:
                self.lost.pop(key, None)
            return done

        setattr(owner, method, watched)


class _Embedding:
    """memx's embedder with the methods that mem0 calls."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._model = embedder(options)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return vectors(self._model, [text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return vectors(self._model, texts)


class _Model:
    """mem0's chat model, asked again while its reply holds no list: mem0 would take that for "nothing to store"."""

    def __init__(self, inner: Any, retries: int) -> None:
        self._inner = inner
        self._retries = retries

    def generate_response(self, *args: Any, **named: Any) -> Any:
        for left in range(self._retries, -1, -1):
            try:
                reply = self._inner.generate_response(*args, **named)
            except json.JSONDecodeError:  # of the answer itself, before there is a reply in it
                if not left:
                    raise
                continue
            if reply and (not isinstance(reply, str) or _holds_memories(reply)):
                return reply
            if not left:
                raise ReplyParsingError(f"the model that extracts replied {str(reply or '')[:120]!r}")
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _client(options: Mapping[str, Any]) -> Any:
    import openai

    return openai.OpenAI(
        api_key=llm_key(options),
        base_url=llm_address(options),
        timeout=options["llm_timeout"],
        max_retries=options["llm_retries"],
    )


def _holds_memories(reply: str) -> bool:
    """Whether mem0 can read it: an object whose ``memory`` is a list of objects, with any text around it."""
    try:
        found = json.loads(reply[reply.find("{") : reply.rfind("}") + 1], strict=False)
    except ValueError:
        return False
    memories = found.get("memory") if isinstance(found, dict) else None
    return isinstance(memories, list) and all(isinstance(memory, dict) for memory in memories)
