"""What a run finds: candidates, verdicts, traces, and the values measured on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from memx.model.cases import Question
from memx.model.checks import freeze_tuple
from memx.model.diagnosis import Diagnosis
from memx.model.memory import Retrieved


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
    """Where a question or case broke: the step, the message, the kind of error and what to do.

    Attributes:
        infrastructure: what failed between memx and the memory system, or under it (``no connection``, ``timeout``,
            ``rate limit``, ``server error``); empty for a fault of the system itself.
    """

    step: str
    message: str
    kind: str = ""
    hint: str = ""
    infrastructure: str = ""


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
        freeze_tuple(self, "retrieved")
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
