"""The nouns of memx, frozen. Every room imports this package; it imports none of them.

A module each: what a dataset holds, what a memory system holds and returns, why a question failed, what a run finds.
Constructors refuse impossible states with ``ValueError`` or ``TypeError``. Mappings are copied on construction and are
to be treated as read-only.
"""

from __future__ import annotations

from memx.model.cases import Case, Question, Session, Turn
from memx.model.diagnosis import (
    CAUSES_OF,
    Cause,
    DecidedBy,
    DiagnosedFact,
    Diagnosis,
    EvidencePiece,
    NearMiss,
    SignalGap,
    Stage,
)
from memx.model.memory import Fact, FactStatus, QueryResult, Retrieved, Snapshot
from memx.model.run import (
    Candidate,
    CandidateSource,
    Decider,
    DiffCounts,
    Measure,
    Outcome,
    RankMetrics,
    RetrievalMetrics,
    StepFailure,
    Trace,
    Value,
    Verdict,
)

__all__ = [
    "CAUSES_OF",
    "Candidate",
    "CandidateSource",
    "Case",
    "Cause",
    "DecidedBy",
    "Decider",
    "DiagnosedFact",
    "Diagnosis",
    "DiffCounts",
    "EvidencePiece",
    "Fact",
    "FactStatus",
    "Measure",
    "NearMiss",
    "Outcome",
    "QueryResult",
    "Question",
    "RankMetrics",
    "RetrievalMetrics",
    "Retrieved",
    "Session",
    "SignalGap",
    "Snapshot",
    "Stage",
    "StepFailure",
    "Trace",
    "Turn",
    "Value",
    "Verdict",
]
