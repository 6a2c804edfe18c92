"""``word-overlap``: the simplest retriever there is, as a floor for every other."""

from __future__ import annotations

from memx.adapters.systems.controls import VerbatimControl
from memx.adapters.systems.verbatim import retrieved_of
from memx.model import QueryResult, Session
from memx.text.words import stems


class WordOverlap(VerbatimControl):
    """Ranks turns by the share of the query's distinct word stems that they hold; the earlier wins a tie."""

    name = "word-overlap"

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._words: dict[str, list[frozenset[str]]] = {}

    def ingest_session(self, session: Session) -> None:
        before = len(self.memories(session.entity_id))
        super().ingest_session(session)
        added = self.memories(session.entity_id)[before:]
        self._words.setdefault(session.entity_id, []).extend(frozenset(stems(memory.text)) for memory in added)

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        asked = frozenset(stems(query))
        if not asked:
            return QueryResult(())
        shares = [len(asked & words) / len(asked) for words in self._words.get(entity_id, ())]
        order = sorted((i for i, share in enumerate(shares) if share), key=lambda i: -shares[i])[:top_k]
        memories = self.memories(entity_id)
        return QueryResult(tuple(retrieved_of(memories[i], shares[i]) for i in order))

    def reset(self, entity_id: str) -> None:
        super().reset(entity_id)
        self._words.pop(entity_id, None)
