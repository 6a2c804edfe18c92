"""What the checks share: the adapter under test, the entities it was given, and what it showed of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memx.adapters.conformance.report import CheckFailed, NotApplicable
from memx.adapters.conformance.talk import Said, question_about, sessions, small_talk
from memx.adapters.contract import MemoryAdapter
from memx.adapters.returned import checked_result
from memx.model import Fact, Retrieved, Snapshot

#: How many facts are asked for where the number does not matter.
TOP_K = 10


@dataclass
class Bench:
    """One adapter on the bench.

    Attributes:
        make: builds an instance as a run would.
        timeout_s: how long the adapter may take to become ready, in seconds.
        entities: every namespace that was used, to be deleted at the end.
    """

    make: Callable[[], MemoryAdapter]
    timeout_s: float = 60.0
    prefix: str = field(default_factory=lambda: f"memx-check-{secrets.token_hex(4)}")
    entities: list[str] = field(default_factory=list)
    _adapter: MemoryAdapter | None = None
    _main: str = ""

    @property
    def adapter(self) -> MemoryAdapter:
        """The instance that most checks share."""
        if self._adapter is None:
            self._adapter = self.make()
        return self._adapter

    def entity(self, name: str) -> str:
        """A namespace of this bench alone."""
        entity_id = f"{self.prefix}-{name}"
        if entity_id not in self.entities:
            self.entities.append(entity_id)
        return entity_id

    def store(self, said: Sequence[Said], entity_id: str, adapter: MemoryAdapter | None = None) -> None:
        """Ingest what was said, and wait until it is ready, as a run does."""
        adapter = adapter or self.adapter
        for session in sessions(said, entity_id):
            adapter.ingest_session(session)
        adapter.wait_until_ready(entity_id, self.timeout_s)

    def main(self) -> tuple[str, list[Said]]:
        """The entity that holds the small talk, stored when it is asked for first."""
        said = small_talk()
        if not self._main:
            entity_id = self.entity("a")
            self.store(said, entity_id)
            self._main = entity_id
        return self._main, said

    def facts(self, entity_id: str, adapter: MemoryAdapter | None = None) -> tuple[Fact, ...]:
        """The exported facts of an entity."""
        snapshot: Any = (adapter or self.adapter).export_state(entity_id)
        if not isinstance(snapshot, Snapshot):
            raise CheckFailed(f"export_state returned {type(snapshot).__name__}, not a memx.Snapshot")
        return snapshot.facts

    def search(
        self, one: Said, entity_id: str, top_k: int = TOP_K, adapter: MemoryAdapter | None = None
    ) -> tuple[Retrieved, ...]:
        """What a search for something said brings back."""
        adapter = adapter or self.adapter
        question = question_about(one, entity_id)
        if adapter.sees_gold:
            adapter.show_gold(question)
        result = adapter.query(question.text, entity_id, top_k)
        return checked_result(result, adapter.name or type(adapter).__name__, None).facts

    def searched(self, one: Said, entity_id: str, top_k: int = TOP_K) -> tuple[Retrieved, ...]:
        """The same, of an adapter that retrieves at all.

        Raises:
            NotApplicable: it is a control that brings nothing back on purpose.
        """
        if not self.adapter.retrieves:
            raise NotApplicable("it brings nothing back on purpose")
        return self.search(one, entity_id, top_k)

    def verbatim(self) -> bool:
        """Whether the system keeps every turn word for word, so that nothing may be lost on the way."""
        entity_id, said = self.main()
        contents = [fact.content for fact in self.facts(entity_id)]
        return all(any(one.turn.content in content for content in contents) for one in said)


def carriers(one: Said, facts: Iterable[Fact]) -> list[Fact]:
    """The facts that hold the made-up name of a turn."""
    token = one.token.casefold()
    return [fact for fact in facts if token in fact.content.casefold()]


def everything(fact: Fact | Retrieved) -> str:
    """Content and metadata of a fact as one text."""
    return f"{fact.content} {dict(fact.metadata)}"
