"""Why a question failed: stages, causes, the evidence trail, near misses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from memx.model.checks import freeze_tuple
from memx.model.memory import FactStatus


class Stage(StrEnum):
    """The step of the memory pipeline that lost the fact."""

    EXTRACTION = "extraction"
    CONFLICT = "conflict"
    MUTATION = "mutation"
    RETRIEVAL = "retrieval"
    NONE = "none"


class Cause(StrEnum):
    """How a stage lost it; see ``CAUSES_OF`` for which belong together."""

    NEVER_STORED = "never_stored"
    PARTLY_STORED = "partly_stored"
    DISTORTED = "distorted"
    BOTH_ACTIVE = "both_active"
    OLD_STILL_ACTIVE = "old_still_active"
    CURRENT_RETIRED = "current_retired"
    ABSENT = "absent"
    RANKED_BELOW_K = "ranked_below_k"
    PARTLY_RETRIEVED = "partly_retrieved"
    STALE_OUTRANKED = "stale_outranked"
    OVER_BUDGET = "over_budget"
    SYNTHESIS = "synthesis"
    JUDGE_DOUBTFUL = "judge_doubtful"
    GOLD_DISPUTED = "gold_disputed"
    EVIDENCE_MISSING = "evidence_missing"


CAUSES_OF: Mapping[Stage, tuple[Cause, ...]] = {
    Stage.EXTRACTION: (Cause.NEVER_STORED, Cause.PARTLY_STORED, Cause.DISTORTED),
    Stage.CONFLICT: (Cause.BOTH_ACTIVE,),
    Stage.MUTATION: (Cause.OLD_STILL_ACTIVE, Cause.CURRENT_RETIRED),
    Stage.RETRIEVAL: (
        Cause.ABSENT,
        Cause.RANKED_BELOW_K,
        Cause.PARTLY_RETRIEVED,
        Cause.STALE_OUTRANKED,
        Cause.OVER_BUDGET,
    ),
    Stage.NONE: (Cause.SYNTHESIS, Cause.JUDGE_DOUBTFUL, Cause.GOLD_DISPUTED, Cause.EVIDENCE_MISSING),
}


class DecidedBy(StrEnum):
    """The rung of the relevance ladder that sufficed to say which fact carries an evidence turn."""

    PROVENANCE = "provenance"
    TEXT = "text"
    EMBEDDING = "embedding"
    MODEL = "model"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class EvidencePiece:
    """The trail of one evidence turn through the memory.

    Attributes:
        text: what the turn said.
        stored: ids of the facts that carry it, active ones first.
        status: of the best of them; None when nothing carries it.
        rank: 1-based rank of the first carrying fact among all candidates, beyond ``top_k`` too; None if absent.
        used: whether the candidate answer uses it; None when that cannot be told.
    """

    turn_id: str
    text: str
    stored: tuple[str, ...] = ()
    status: FactStatus | None = None
    rank: int | None = None
    in_top_k: bool = False
    used: bool | None = None
    decided_by: DecidedBy | None = None
    span: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        freeze_tuple(self, "stored")
        if self.rank is not None and self.rank < 1:
            raise ValueError(f"rank counts from 1, not {self.rank}")
        if self.in_top_k and self.rank is None:
            raise ValueError("a piece inside the top k has a rank")


@dataclass(frozen=True, slots=True)
class DiagnosedFact:
    """A fact that matters to a diagnosis. ``role``: ``expected``, ``stale``, ``conflicting`` or ``winner``."""

    fact_id: str
    content: str
    status: FactStatus
    role: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", FactStatus(self.status))


@dataclass(frozen=True, slots=True)
class SignalGap:
    """One signal of a near miss: the expected fact's value, the winner's, and expected minus winner."""

    name: str
    expected: float
    winner: float

    @property
    def gap(self) -> float:
        """Expected minus winner: negative where the expected fact lost."""
        return self.expected - self.winner


@dataclass(frozen=True, slots=True)
class NearMiss:
    """An expected fact that did not make the top k, beside one that took its place."""

    expected_fact_id: str
    winner_fact_id: str
    expected_rank: int | None
    winner_rank: int
    signals: tuple[SignalGap, ...] = ()
    would_keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why one question failed: one stage, one cause, the evidence, and how sure.

    Attributes:
        confidence: 0..1.
        decided_by: the weakest rung of the ladder that the stage rests on.
        notes: findings that did not decide the stage.
    """

    stage: Stage
    cause: Cause
    confidence: float
    why: str
    decided_by: DecidedBy
    llm_calls: int = 0
    evidence: tuple[EvidencePiece, ...] = ()
    facts: tuple[DiagnosedFact, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stage", Stage(self.stage))
        object.__setattr__(self, "cause", Cause(self.cause))
        object.__setattr__(self, "decided_by", DecidedBy(self.decided_by))
        freeze_tuple(self, "evidence", "facts", "near_misses", "notes")
        if self.cause not in CAUSES_OF[self.stage]:
            raise ValueError(f"{self.cause} is no cause of stage {self.stage}")
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence lies in 0..1, not {self.confidence}")
