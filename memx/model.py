"""The nouns of memx, frozen. Every room imports this module; it imports none of them.

Three groups: what a dataset holds (``Turn`` to ``Case``), what a memory system holds and returns (``Fact`` to
``QueryResult``), and what a run finds (``Candidate`` to ``Trace``). Constructors refuse impossible states with
``ValueError`` or ``TypeError``. Mappings are copied on construction and are to be treated as read-only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

# ---------------------------------------------------------------------------------------------- what a dataset holds


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of a conversation.

    Attributes:
        turn_id: unique within its case.
        role: ``"user"`` or ``"assistant"`` where the dataset says so, else the speaker's part.
        at: when it was said; naive where the dataset gives no zone.
    """

    turn_id: str
    speaker: str
    role: str
    content: str
    at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The usual case in one test, since a benchmark file holds half a million turns.
        if self.turn_id and type(self.turn_id) is type(self.speaker) is type(self.role) is type(self.content) is str:
            return
        _require_text(self, "turn_id")
        _require_str(self, "speaker", "role", "content")


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a case, its turns in order. ``entity_id`` is the namespace the adapter stores it under."""

    session_id: str
    entity_id: str
    turns: tuple[Turn, ...]
    at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_text(self, "session_id", "entity_id")
        _freeze_tuple(self, "turns")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, its gold answer and the turns that hold it.

    Attributes:
        evidence: ids of the turns needed to answer; empty where the dataset gives none.
        abstention: the right answer is a refusal ("not mentioned").
        metadata: dataset facts that never reach an adapter. ``stale_evidence`` holds ids of turns whose value a
            later turn replaced; ``trap`` the wrong answer an adversarial question invites.
    """

    question_id: str
    entity_id: str
    text: str
    gold: str
    category: str
    evidence: tuple[str, ...] = ()
    evidence_sessions: tuple[str, ...] = ()
    asked_at: datetime | None = None
    abstention: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_text(self, "question_id", "entity_id")
        _require_str(self, "text", "gold", "category")
        _freeze_tuple(self, "evidence", "evidence_sessions")


@dataclass(frozen=True, slots=True)
class Case:
    """One complete history and the questions about it: the unit of isolation."""

    case_id: str
    entity_id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        _require_text(self, "case_id", "entity_id")
        _freeze_tuple(self, "sessions", "questions")
        _refuse_repeats("session id", [s.session_id for s in self.sessions], self.case_id)
        _refuse_repeats("turn id", [t.turn_id for s in self.sessions for t in s.turns], self.case_id)
        _refuse_repeats("question id", [q.question_id for q in self.questions], self.case_id)

    def turns(self) -> dict[str, Turn]:
        """All turns by id, in the order they were said."""
        return {turn.turn_id: turn for session in self.sessions for turn in session.turns}

    def session_of(self) -> dict[str, str]:
        """The session id of each turn id."""
        return {turn.turn_id: session.session_id for session in self.sessions for turn in session.turns}


# ------------------------------------------------------------------------------- what a memory system holds and returns


class FactStatus(StrEnum):
    """Whether a stored fact is held to be true now."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    INVALIDATED = "invalidated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of a memory store, as ``export_state`` shows it.

    Attributes:
        supersedes: ids of the facts that this one replaces.
        source_turn_ids: ids of the turns it came from, where the system keeps them.
    """

    fact_id: str
    content: str
    status: FactStatus = FactStatus.ACTIVE
    supersedes: tuple[str, ...] = ()
    source_turn_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_text(self, "fact_id")
        _require_str(self, "content")
        object.__setattr__(self, "status", FactStatus(self.status))
        _freeze_tuple(self, "supersedes", "source_turn_ids")

    @property
    def active(self) -> bool:
        """True when the store holds the fact to be true now."""
        return self.status is FactStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All facts of one entity at one moment. Repeated fact ids are kept; :meth:`by_id` reads the first of each."""

    entity_id: str
    facts: tuple[Fact, ...]
    label: str = ""

    def __post_init__(self) -> None:
        _freeze_tuple(self, "facts")

    def by_id(self) -> dict[str, Fact]:
        """The facts by id; of a repeated id the first counts."""
        found: dict[str, Fact] = {}
        for fact in self.facts:
            found.setdefault(fact.fact_id, fact)
        return found


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One fact that a query brought back.

    Attributes:
        score: the system's own score, higher is better; None where it gives none.
        signals: named parts of the score, as the system declares them.
        metadata: ``source_turn_ids`` here is read as provenance when the snapshot has none.
    """

    fact_id: str
    content: str
    score: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_text(self, "fact_id")
        _require_str(self, "content")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query returned: facts best first (at most ``top_k``), the system's own answer if it gives one, and
    whatever it wants to declare about the call."""

    facts: tuple[Retrieved, ...]
    answer: str | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze_tuple(self, "facts")


# ------------------------------------------------------------------------------------------------- what a run finds


class Outcome(StrEnum):
    """The four ways a question can end."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNJUDGED = "UNJUDGED"
    ERROR = "ERROR"


class Decider(StrEnum):
    """Who decided a verdict or value: a fixed rule, a model, memx's own bookkeeping, or the memory system."""

    RULE = "rule"
    MODEL = "model"
    MEMX = "memx"
    ADAPTER = "adapter"


@dataclass(frozen=True, slots=True)
class Verdict:
    """PASS, FAIL, UNJUDGED or ERROR, who decided it and why. ``score`` in 0..1 where the judge grades."""

    outcome: Outcome
    decider: Decider
    why: str
    score: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))
        object.__setattr__(self, "decider", Decider(self.decider))


class CandidateSource(StrEnum):
    """Where the judged answer came from."""

    ADAPTER = "adapter"
    MODEL = "model"
    EXTRACTIVE = "extractive"
    RETRIEVED = "retrieved"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The answer that was judged. ``RETRIEVED`` means it is the retrieved text itself, which cannot refuse."""

    text: str
    source: CandidateSource
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", CandidateSource(self.source))


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
        _freeze_tuple(self, "stored")
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
        _freeze_tuple(self, "evidence", "facts", "near_misses", "notes")
        if self.cause not in CAUSES_OF[self.stage]:
            raise ValueError(f"{self.cause} is no cause of stage {self.stage}")
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence lies in 0..1, not {self.confidence}")


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """Retrieval metrics of one question at one level; the mappings go from K to a value in 0..1."""

    recall_any: Mapping[int, float]
    recall_all: Mapping[int, float]
    ndcg_any: Mapping[int, float]
    mrr: float


@dataclass(frozen=True, slots=True)
class RetrievalMetrics:
    """Turn-level and session-level retrieval metrics of one question."""

    turn: RankMetrics
    session: RankMetrics


@dataclass(frozen=True, slots=True)
class DiffCounts:
    """How many facts the ingest of a case added, removed, changed and left alone."""

    added: int
    removed: int
    changed: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class StepFailure:
    """Where a question or case broke: the step, the message, the kind of error and what to do."""

    step: str
    message: str
    kind: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything observed while one question ran; exactly one per question, also on failure.

    Attributes:
        case_id: the dataset's own id of the case.
        entity_id: the namespace the adapter saw.
        retrieved: best first, as deep as was asked (``top_k`` or beyond).
        attempt: which ingest of the case it was asked against, from 1.
    """

    question: Question
    case_id: str
    entity_id: str
    top_k: int
    verdict: Verdict
    retrieved: tuple[Retrieved, ...] = ()
    candidate: Candidate | None = None
    diagnosis: Diagnosis | None = None
    metrics: RetrievalMetrics | None = None
    diff: DiffCounts | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    error: StepFailure | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1

    def __post_init__(self) -> None:
        _freeze_tuple(self, "retrieved")
        outcome = self.verdict.outcome
        if outcome is Outcome.ERROR and self.error is None:
            raise ValueError("an ERROR trace names its step and message")
        if self.error is not None and outcome not in (Outcome.ERROR, Outcome.UNJUDGED):
            raise ValueError(f"a {outcome} trace has no error")
        if self.diagnosis is not None and outcome is not Outcome.FAIL:
            raise ValueError("only FAILs are diagnosed")

    @property
    def top(self) -> tuple[Retrieved, ...]:
        """The part of ``retrieved`` that the candidate could see."""
        return self.retrieved[: self.top_k]


# ---------------------------------------------------------------------------------------------- measures and values


@dataclass(frozen=True, slots=True)
class Value:
    """One measured value with its measure and decider. ``value`` None means "not stated" and is never 0."""

    measure: str
    decider: Decider
    value: float | None
    question_id: str | None = None
    why: str = ""


class Measure(ABC):
    """A named rule from traces to values.

    Class attributes:
        name: shown with every value.
        scope: ``"question"`` (one value per trace) or ``"run"``.
        reads: the ``Trace`` fields it needs; a run that lacks one is refused.
    """

    name: ClassVar[str]
    scope: ClassVar[str] = "question"
    reads: ClassVar[tuple[str, ...]] = ()
    decider: ClassVar[Decider] = Decider.RULE

    @abstractmethod
    def measure(self, traces: Sequence[Trace]) -> list[Value]:
        """Values for the given traces, in their order."""


# ------------------------------------------------------------------------------------------------------------ checks


def _require_text(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, str) or not value:
            raise ValueError(f"{type(owner).__name__}.{name} is a text that is not empty, not {value!r}")


def _require_str(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, str):
            raise TypeError(f"{type(owner).__name__}.{name} is a text, not {type(value).__name__}")


def _freeze_tuple(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, str):
            raise TypeError(f"{type(owner).__name__}.{name} is a sequence, not one text")
        object.__setattr__(owner, name, tuple(value))


def _refuse_repeats(kind: str, ids: Sequence[str], case_id: str) -> None:
    if len({*ids}) != len(ids):
        seen: set[str] = set()
        repeated = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise ValueError(f"case {case_id}: {kind} '{repeated}' stands twice")
