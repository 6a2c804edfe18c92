"""FAILs grouped by mechanism: what kind of thing got lost, whatever the stage, and what mending it would be worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memx.model import CandidateSource, Cause, Diagnosis, EvidencePiece, Outcome, Stage, Trace
from memx.text.dates import dates_in
from memx.text.lists import items
from memx.text.names import names_in
from memx.text.numbers import numbers_in
from memx.text.polarity import Stance, stance
from memx.text.words import stems

# Any anchor will do: only whether a date is relative is asked, not which day it is.
_ANCHOR = datetime(2000, 1, 15)
_IMAGE = "[image:"


class Mechanism(StrEnum):
    """What kind of thing a failure turns on."""

    STALE_VALUE = "stale value"
    REFUSAL_EXPECTED = "answered what was never said"
    RELATIVE_DATE = "relative date unresolved"
    NUMBER_LOST = "number lost"
    NEGATION = "negation or yes/no"
    IMAGE_ONLY = "told by an image only"
    LIST_PARTLY = "list partly covered"
    SPEAKER_LOST = "speaker lost"
    OTHER_WORDS = "asked in other words"
    OUTRANKED = "outranked by similar facts"
    WORDING_LOST = "wording lost"
    NOT_STORED = "not stored"
    UNUSED = "found and not used"
    BENCHMARK = "benchmark or judge in doubt"


_MEANS = {
    Mechanism.STALE_VALUE: "a replaced value is kept, found or used beside the current one",
    Mechanism.REFUSAL_EXPECTED: "the right answer is a refusal and the candidate answers",
    Mechanism.RELATIVE_DATE: "the turn says 'yesterday' or 'last week'; the day it means is not kept or not worked out",
    Mechanism.NUMBER_LOST: "the turn's number does not survive into the stored fact or the answer",
    Mechanism.NEGATION: "the answer turns on a yes, a no or a 'never'",
    Mechanism.IMAGE_ONLY: "what is asked stands in the caption of a shared image alone",
    Mechanism.LIST_PARTLY: "the answer is gathered from several turns and some are missing",
    Mechanism.SPEAKER_LOST: "the stored fact no longer says who it is about",
    Mechanism.OTHER_WORDS: "question and evidence share no telling word",
    Mechanism.OUTRANKED: "the needed fact shares the question's words, and others rank above it",
    Mechanism.WORDING_LOST: "a fact comes from the right turn without what is asked",
    Mechanism.NOT_STORED: "no fact was made of the turn",
    Mechanism.UNUSED: "every needed fact came back and the answer is wrong",
    Mechanism.BENCHMARK: "the gold, the evidence or the verdict itself is in doubt",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The FAILs of one mechanism.

    Attributes:
        share: of all diagnosed FAILs, 0..1.
        worth: percentage points of accuracy that passing all of them would add.
        example: the question id of the one diagnosed with most confidence.
    """

    mechanism: Mechanism
    question_ids: tuple[str, ...]
    share: float
    worth: float
    example: str

    @property
    def hypothesis(self) -> str:
        """The mechanism in one sentence."""
        return _MEANS[self.mechanism]


def clusters(traces: Iterable[Trace]) -> list[Cluster]:
    """The FAILs of a run by mechanism, largest first."""
    judged = [trace for trace in traces if trace.verdict.outcome in (Outcome.PASS, Outcome.FAIL)]
    groups: dict[Mechanism, list[Trace]] = {}
    for trace in judged:
        if trace.diagnosis is not None:
            groups.setdefault(mechanism_of(trace, trace.diagnosis), []).append(trace)
    failed = sum(map(len, groups.values()))
    found = []
    for mechanism, group in groups.items():
        best = max(group, key=lambda one: one.diagnosis.confidence if one.diagnosis else 0.0)
        ids = tuple(trace.question.question_id for trace in group)
        worth = 100.0 * len(group) / len(judged)
        found.append(Cluster(mechanism, ids, len(group) / failed, worth, best.question.question_id))
    return sorted(found, key=lambda cluster: (-len(cluster.question_ids), cluster.mechanism))


def mechanism_of(trace: Trace, diagnosis: Diagnosis) -> Mechanism:
    """The mechanism of one diagnosed FAIL: the first that applies, the most specific first."""
    question = trace.question
    lost = _lost(diagnosis)
    if diagnosis.cause in (Cause.JUDGE_DOUBTFUL, Cause.GOLD_DISPUTED, Cause.EVIDENCE_MISSING):
        return Mechanism.BENCHMARK
    if diagnosis.stage in (Stage.CONFLICT, Stage.MUTATION) or diagnosis.cause is Cause.STALE_OUTRANKED:
        return Mechanism.STALE_VALUE
    if question.abstention:
        return Mechanism.REFUSAL_EXPECTED
    if diagnosis.stage is Stage.RETRIEVAL:
        return _of_retrieval(trace, lost)
    if _has_date(question.gold) and any(_relative(piece.text) for piece in lost):
        return Mechanism.RELATIVE_DATE
    if numbers_in(question.gold) and not _has_date(question.gold):
        return Mechanism.NUMBER_LOST
    if stance(question.gold) is not Stance.NONE:
        return Mechanism.NEGATION
    if any(_image_only(piece, question.gold) for piece in lost):
        return Mechanism.IMAGE_ONLY
    if len(items(question.gold)) > 1 and (len(diagnosis.evidence) > 1 or _answers_some(trace)):
        return Mechanism.LIST_PARTLY
    if diagnosis.cause is Cause.DISTORTED:
        return Mechanism.WORDING_LOST
    if diagnosis.stage is Stage.EXTRACTION:
        return Mechanism.NOT_STORED
    return Mechanism.UNUSED


def _of_retrieval(trace: Trace, lost: Sequence[EvidencePiece]) -> Mechanism:
    question = trace.question
    if any(_image_only(piece, question.gold) for piece in lost):
        return Mechanism.IMAGE_ONLY
    if trace.diagnosis and trace.diagnosis.cause is Cause.PARTLY_RETRIEVED:
        return Mechanism.LIST_PARTLY
    expected = [fact.content for fact in trace.diagnosis.facts if fact.role == "expected"] if trace.diagnosis else []
    asked = set(stems(question.text))
    names = {stem for name in names_in(question.text) for stem in stems(name.text)}
    shared = [asked & set(stems(content)) for content in expected]
    if names and expected and not any(names & one for one in shared):
        return Mechanism.SPEAKER_LOST
    if not any(one - names for one in shared):
        return Mechanism.OTHER_WORDS
    return Mechanism.OUTRANKED


def _lost(diagnosis: Diagnosis) -> list[EvidencePiece]:
    """The pieces that did not make it; all of them where every one did."""
    gone = [piece for piece in diagnosis.evidence if not piece.stored or not piece.in_top_k]
    return gone or list(diagnosis.evidence)


def _has_date(text: str) -> bool:
    return bool(dates_in(text))


def _relative(text: str) -> bool:
    return any(date.relative for date in dates_in(text, _ANCHOR))


def _image_only(piece: EvidencePiece, gold: str) -> bool:
    said, mark, caption = piece.text.partition(_IMAGE)
    wanted = set(stems(gold))
    return bool(mark) and bool(wanted & set(stems(caption))) and not wanted & set(stems(said))


def _answers_some(trace: Trace) -> bool:
    if trace.candidate is None or trace.candidate.source is CandidateSource.RETRIEVED:
        return False
    told = set(stems(trace.candidate.text))
    parts = [set(stems(item)) for item in items(trace.question.gold)]
    return any(part and part <= told for part in parts)
