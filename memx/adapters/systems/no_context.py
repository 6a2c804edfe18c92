"""``no-context``: the control that remembers and never tells. What passes with it needs no memory."""

from __future__ import annotations

from memx.adapters.systems.controls import VerbatimControl
from memx.model import QueryResult


class NoContext(VerbatimControl):
    """Stores everything, retrieves nothing."""

    name = "no-context"
    retrieves = False

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        return QueryResult(())
