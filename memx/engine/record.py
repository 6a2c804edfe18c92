"""One question with all that explains it, and what is said of it in words: for pages, exports and the plain record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from memx.diagnose.timeline import FactEvent
from memx.engine.store.reader import RunRow, Store, StoredDiff, Where
from memx.errors import StoreError
from memx.model import EvidencePiece, Fact, FactStatus, Stage, Trace, Turn

#: What each cause says about the memory, in one sentence; ``{k}`` is the cut.
MEANING: Mapping[str, str] = {
    "never_stored": "No fact in the store carries the evidence: it was lost on the way in.",
    "partly_stored": "Some pieces of evidence have a fact that carries them, others have none.",
    "distorted": "A fact came from the right place but lost the detail that is asked for.",
    "both_active": "Two active facts disagree on what is asked, and neither replaces the other.",
    "old_still_active": "A newer fact replaces an older one that is still active.",
    "current_retired": "The current fact was retired while the stale one is active.",
    "absent": "The store is right, but the needed fact did not come back at any rank that was asked for.",
    "ranked_below_k": "The store is right; the needed fact came back below the first {k}.",
    "partly_retrieved": "Some of the needed facts are in the first {k}, others are not.",
    "stale_outranked": "A stale fact came back before the current one.",
    "over_budget": "The needed fact was ranked inside the first {k} but the token budget cut it off.",
    "synthesis": "The needed facts were there; the answer made of them is wrong.",
    "judge_doubtful": "The candidate contains the gold answer: doubt the verdict.",
    "gold_disputed": "The errata of the dataset dispute this question's gold answer.",
    "evidence_missing": "The dataset's evidence ids point nowhere, so nothing can be traced.",
}

#: Tags of control arms, and what each says of a question.
TAG_MEANING: Mapping[str, str] = {
    "guessable": "answered right without any memory",
    "reader-bound": "answered wrong with the gold evidence too",
    "retrieval-bound": "the gold evidence suffices, the memory failed",
}


class CaseView:
    """What all questions of one ingest of a case share, read from the store when it is first asked for."""

    def __init__(self, store: Store, run_id: str, case_id: str, attempt: int) -> None:
        self._store = store
        self._key = run_id, case_id, attempt

    @cached_property
    def turns(self) -> Mapping[str, Turn]:
        """The stored turns of the case, by id."""
        return self._store.turns(*self._key[:2])

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The session id of each stored turn."""
        sessions = self._store.sessions(*self._key[:2])
        return {turn.turn_id: session.session_id for session in sessions for turn in session.turns}

    @cached_property
    def diff(self) -> StoredDiff:
        """What the ingest changed in the store; empty where the case was never ingested."""
        try:
            return self._store.diff(*self._key)
        except StoreError:
            return StoredDiff()

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """The facts of the last snapshot, by id."""
        try:
            return self._store.snapshot(*self._key).by_id()
        except StoreError:
            return {}

    def timeline(self, fact_id: str) -> list[FactEvent]:
        """Every change of a fact over the snapshots of the case; empty where the case was never ingested."""
        run_id, case_id, attempt = self._key
        try:
            return self._store.timeline(run_id, case_id, fact_id, attempt)
        except StoreError:
            return []


class Record:
    """A question's trace, and the parts of its case that pages show beside it.

    Args:
        store: an open store.
        run: the run.
        question: the full id of the question, or its trace.
        case: shared with other questions of the case.

    Raises:
        StoreError: the run holds no such question.
    """

    def __init__(self, store: Store, run: RunRow, question: str | Trace, case: CaseView | None = None) -> None:
        self.run = run
        self._store = store
        self.trace: Trace = store.trace(run.run_id, question) if isinstance(question, str) else question
        self._case = case or CaseView(store, run.run_id, self.trace.case_id, self.trace.attempt)

    @property
    def key(self) -> tuple[str, str]:
        """Run id and question id."""
        return self.run.run_id, self.trace.question.question_id

    @property
    def turns(self) -> Mapping[str, Turn]:
        """The stored turns of the case, by id."""
        return self._case.turns

    @property
    def session_of(self) -> Mapping[str, str]:
        """The session id of each stored turn."""
        return self._case.session_of

    @property
    def tag(self) -> str:
        """What control arms say of the question: guessable, reader-bound or retrieval-bound; empty without them."""
        return self._store.tag(*self.key)

    @property
    def diff(self) -> StoredDiff:
        """What the ingest changed in the store; empty where the case was never ingested."""
        return self._case.diff

    @property
    def facts(self) -> Mapping[str, Fact]:
        """The facts of the last snapshot, by id."""
        return self._case.facts

    def timeline(self, fact_id: str) -> list[FactEvent]:
        """Every change of a fact over the snapshots of the case; empty where the case was never ingested."""
        return self._case.timeline(fact_id)

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """What each fact that matters is to the diagnosis, by fact id: ``expected``, ``stale``, ..."""
        if self.trace.diagnosis is None:
            return {}
        found = {fact_id: "expected" for piece in self.trace.diagnosis.evidence for fact_id in piece.stored}
        return found | {fact.fact_id: fact.role for fact in self.trace.diagnosis.facts}


def records(store: Store, run: RunRow, where: Where | None = None) -> Iterator[Record]:
    """The records of the questions that meet a condition, in order, read as they are asked for."""
    case: CaseView | None = None
    key: tuple[str, int] | None = None
    for trace in store.traces(run.run_id, where):
        if case is None or key != (trace.case_id, trace.attempt):
            key = trace.case_id, trace.attempt
            case = CaseView(store, run.run_id, *key)
        yield Record(store, run, trace, case)


def trail(piece: EvidencePiece, record: Record) -> str:
    """How far one piece came, in words, ending with where it was lost."""
    trace = record.trace
    if not piece.stored:
        return "NOT STORED"
    steps = [f"stored as {piece.stored[0]}" + (f" and {len(piece.stored) - 1} more" if len(piece.stored) > 1 else "")]
    if piece.status is not None:
        steps.append("active" if piece.status == FactStatus.ACTIVE else f"{piece.status}".upper())
    if piece.rank is None:
        steps.append(f"ABSENT from the {len(trace.retrieved)} that came back")
        return " > ".join(steps)
    steps.append(f"rank {piece.rank} of {len(trace.retrieved)}")
    if piece.in_top_k:
        steps.append(f"in the top {trace.top_k}")
    elif piece.rank <= trace.top_k:
        steps.append("OVER THE BUDGET")
    else:
        steps.append(f"BELOW THE CUT at {trace.top_k}")
    if piece.in_top_k:
        steps.append({True: "used", False: "NOT USED", None: "use unknown"}[piece.used])
    return " > ".join(steps)


def lost_at(trace: Trace) -> str:
    """Stage and cause in one phrase, or the verdict where there is no diagnosis."""
    if trace.diagnosis is None:
        return str(trace.verdict.outcome)
    stage = "" if trace.diagnosis.stage is Stage.NONE else f"{trace.diagnosis.stage} > "
    return f"{stage}{trace.diagnosis.cause}"
