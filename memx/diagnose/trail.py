"""The evidence trail of one question: each piece from the store to the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memx.diagnose.carriers import Carriage
from memx.diagnose.details import held
from memx.diagnose.lexicon import Lexicon
from memx.diagnose.pieces import Piece
from memx.model import Candidate, CandidateSource, EvidencePiece, Fact, FactStatus, Retrieved

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")
_SPAN_CHARS = 240


@dataclass(frozen=True, slots=True)
class Trail:
    """One piece on its way.

    Attributes:
        rank: 1-based rank of the first active carrier among all that the query brought; None if none came.
        in_top_k: that rank is within k.
        in_budget: it also fitted into the context budget.
        retired_rank: rank of the first retired carrier.
        used: whether the answer uses it; None when that cannot be told.
    """

    piece: Piece
    carriage: Carriage
    rank: int | None
    in_top_k: bool
    in_budget: bool
    retired_rank: int | None
    used: bool | None

    @property
    def stored(self) -> bool:
        """Some fact carries it, active or not."""
        return bool(self.carriage.carriers)

    def as_evidence(self, lexicon: Lexicon) -> EvidencePiece:
        """The trail as the record of a diagnosis."""
        carriers = self.carriage.carriers
        note = ""
        if not carriers and self.carriage.lost:
            fact, holds = self.carriage.lost[0]
            gone = f"without {', '.join(holds.missing)}" if holds.missing else "in other words"
            note = f"{fact.fact_id} comes from here {gone}"
        elif self.in_top_k and not self.in_budget:
            note = "cut by the context budget"
        return EvidencePiece(
            turn_id=self.piece.turn_id,
            text=self.piece.text,
            stored=tuple(dict.fromkeys(fact.fact_id for fact in carriers)),
            status=carriers[0].status if carriers else None,
            rank=self.rank,
            in_top_k=self.in_top_k,
            used=self.used,
            decided_by=self.carriage.decided_by,
            span=span_of(carriers[0].content, self.piece, lexicon) if carriers else "",
            note=note,
        )


def follow(
    piece: Piece,
    carriage: Carriage,
    retrieved: Sequence[Retrieved],
    top_k: int,
    fitting: int,
    candidate: Candidate | None,
    lexicon: Lexicon,
) -> Trail:
    """Where the facts that carry a piece came in the retrieval, and whether the answer used them.

    Args:
        fitting: how many of the first facts fitted into the context.
    """
    active = _first_rank([fact for fact in carriage.carriers if fact.status is FactStatus.ACTIVE], retrieved, lexicon)
    retired = _first_rank([fact for fact in carriage.carriers if not fact.active], retrieved, lexicon)
    in_top_k = active is not None and active <= top_k
    return Trail(
        piece=piece,
        carriage=carriage,
        rank=active,
        in_top_k=in_top_k,
        in_budget=in_top_k and active is not None and active <= fitting,
        retired_rank=retired,
        used=uses(candidate, piece, lexicon),
    )


def uses(candidate: Candidate | None, piece: Piece, lexicon: Lexicon) -> bool | None:
    """Whether an answer holds what the piece states of the gold; None for retrieved text and inferred answers."""
    if candidate is None or candidate.source is CandidateSource.RETRIEVED or piece.detail.empty:
        return None
    at = piece.turn.at if piece.turn else None
    return held(piece.detail, candidate.text, lexicon, at).share >= 0.5


def fitting_facts(retrieved: Sequence[Retrieved], top_k: int, context_budget: int | None) -> int:
    """How many of the first ``top_k`` facts fit into the budget, counted in order; a fact's metadata
    ``in_context: False`` says so itself."""
    spent = 0
    for position, fact in enumerate(retrieved[:top_k]):
        if fact.metadata.get("in_context") is False:
            return position
        spent += rough_tokens(fact.content)
        if context_budget is not None and spent > context_budget:
            return position
    return top_k


def rough_tokens(text: str) -> int:
    """Tokens of an English text by the rule of thumb of four characters each, for when no tokenizer is at hand."""
    return (len(text) + 3) // 4


def span_of(content: str, piece: Piece, lexicon: Lexicon) -> str:
    """The sentence of a fact that carries the piece best."""
    wanted = piece.detail.terms or piece.detail.said.terms
    sentences = [match.group().strip() for match in _SENTENCE.finditer(content[:20_000]) if match.group().strip()]
    if not sentences:
        return content[:_SPAN_CHARS]
    best = max(sentences, key=lambda one: lexicon.weight(lexicon.read(one).terms & wanted))
    return best[:_SPAN_CHARS]


def _first_rank(facts: Sequence[Fact], retrieved: Sequence[Retrieved], lexicon: Lexicon) -> int | None:
    """The rank of the first retrieved row that is one of the facts, or says word for word the same."""
    ids = {fact.fact_id for fact in facts}
    texts = {lexicon.read(fact.content).plain for fact in facts} - {""}
    for rank, row in enumerate(retrieved, 1):
        if row.fact_id in ids or (row.content and lexicon.read(row.content).plain in texts):
            return rank
    return None


def ranks(retrieved: Sequence[Retrieved]) -> Mapping[str, int]:
    """The rank of each retrieved fact id, from 1; of a repeated id the first."""
    found: dict[str, int] = {}
    for rank, row in enumerate(retrieved, 1):
        found.setdefault(row.fact_id, rank)
    return found
