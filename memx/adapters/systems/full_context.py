"""``full-context``: the control without retrieval. What fails with it is not the retriever's fault."""

from __future__ import annotations

from memx.adapters.systems.controls import VerbatimControl
from memx.adapters.systems.verbatim import retrieved_of
from memx.model import QueryResult


class FullContext(VerbatimControl):
    """Returns everything stored, first said first, whatever is asked and whatever ``top_k`` is."""

    name = "full-context"
    ignores_top_k = True

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return QueryResult(tuple(retrieved_of(memory) for memory in self.memories(entity_id)))
