"""One question with all that a page about it needs, read from the store when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from memx.engine.store.reader import FactEvent, RunRow, Store, StoredDiff
from memx.errors import StoreError
from memx.model import Fact, Trace, Turn

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


class Record:
    """A question's trace, and the parts of its case that pages show beside it.

    Args:
        store: an open store.
        run: the run.
        question_id: the full id.

    Raises:
        StoreError: the run holds no such question.
    """

    def __init__(self, store: Store, run: RunRow, question_id: str) -> None:
        self._store = store
        self.run = run
        self.trace: Trace = store.trace(run.run_id, question_id)

    @property
    def key(self) -> tuple[str, str]:
        """Run id and question id."""
        return self.run.run_id, self.trace.question.question_id

    @cached_property
    def turns(self) -> Mapping[str, Turn]:
        """The stored turns of the case, by id."""
        return self._store.turns(self.run.run_id, self.trace.case_id)

    @cached_property
    def diff(self) -> StoredDiff:
        """What the ingest changed in the store; empty where the case was never ingested."""
        try:
            return self._store.diff(self.run.run_id, self.trace.case_id, self.trace.attempt)
        except StoreError:
            return StoredDiff()

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """The facts of the last snapshot, by id."""
        try:
            return self._store.snapshot(self.run.run_id, self.trace.case_id, self.trace.attempt).by_id()
        except StoreError:
            return {}

    def timeline(self, fact_id: str) -> list[FactEvent]:
        """Every change of a fact over the snapshots of the case; empty where the case was never ingested."""
        try:
            return self._store.timeline(self.run.run_id, self.trace.case_id, fact_id, self.trace.attempt)
        except StoreError:
            return []

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The session id of each stored turn."""
        sessions = self._store.sessions(self.run.run_id, self.trace.case_id)
        return {turn.turn_id: session.session_id for session in sessions for turn in session.turns}

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """What each fact that matters is to the diagnosis, by fact id: ``expected``, ``stale``, ..."""
        if self.trace.diagnosis is None:
            return {}
        found = {fact_id: "expected" for piece in self.trace.diagnosis.evidence for fact_id in piece.stored}
        return found | {fact.fact_id: fact.role for fact in self.trace.diagnosis.facts}
