"""``oracle``: the control that is shown the gold. What fails with it is lost after retrieval."""

from __future__ import annotations

from memx.adapters.systems.controls import VerbatimControl
from memx.adapters.systems.verbatim import retrieved_of
from memx.model import QueryResult, Question


class Oracle(VerbatimControl):
    """Stores every turn verbatim and returns exactly the evidence turns of the question it was shown, in their order
    there, whatever ``top_k`` is. A question that was not shown, or that has no evidence, brings nothing back."""

    name = "oracle"
    sees_gold = True
    shares_entity_ids = True
    ignores_top_k = True

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._shown: Question | None = None

    def show_gold(self, question: Question) -> None:
        self._shown = question

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        shown = self._shown
        if shown is None or shown.text != query or shown.entity_id != entity_id:
            return QueryResult(())
        by_turn = {memory.metadata["turn_id"]: memory for memory in self.memories(entity_id)}
        wanted = [by_turn[turn] for turn in dict.fromkeys(shown.evidence) if turn in by_turn]
        return QueryResult(tuple(retrieved_of(memory, 1.0) for memory in wanted))
