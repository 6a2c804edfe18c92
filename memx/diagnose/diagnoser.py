"""Why one question failed: gathers the evidence trail from a case's history and decides the stage.

One :class:`Diagnoser` serves all questions of a case. It links the store's facts to turns once; a question then costs
a few look-ups, and no model is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import compress
from typing import Any

from memx.diagnose.answers import read_answer
from memx.diagnose.carriers import Carriage, Ladder, sessions_of_facts
from memx.diagnose.contract import AsksModel, Embed, History
from memx.diagnose.findings import Finding, believed, retrieval_findings, store_findings
from memx.diagnose.near_miss import near_misses
from memx.diagnose.pieces import Needed, Piece, needed_pieces
from memx.diagnose.rivals import Rivals
from memx.diagnose.stages import Decision, Gathered, decide
from memx.diagnose.timeline import EventKind, FactEvent, timeline
from memx.diagnose.trail import Trail, fitting_facts, follow, ranks
from memx.model import (
    Candidate,
    Cause,
    DecidedBy,
    DiagnosedFact,
    Diagnosis,
    Fact,
    NearMiss,
    Question,
    Retrieved,
    Stage,
    Verdict,
)

#: What a rung costs in confidence.
_RUNG_COST = {
    DecidedBy.PROVENANCE: 0.0,
    DecidedBy.TEXT: 0.08,
    DecidedBy.MODEL: 0.1,
    DecidedBy.EMBEDDING: 0.25,
    DecidedBy.RULE: 0.0,
}


class Diagnoser:
    """Diagnoses the failed questions of one case.

    Args:
        history: the case and its snapshots.
        embed: texts to unit vectors; asked only where wording decides nothing. None leaves that rung out.
        errata: by question id, what the errata overlay says (see :func:`memx.diagnose.pieces.needed_pieces`).
        context_budget: tokens of retrieved text that the answerer was given; None when it was not limited.
        model: asks a model about pieces that nothing else links to a fact; None asks none.
        ladder: of the same case and embedder, when several stores of one case are diagnosed.

    Safe to share between threads.
    """

    def __init__(
        self,
        history: History,
        *,
        embed: Embed | None = None,
        errata: Mapping[str, Any] | None = None,
        context_budget: int | None = None,
        model: AsksModel | None = None,
        ladder: Ladder | None = None,
    ) -> None:
        self._history = history
        self._errata = errata or {}
        self._budget = context_budget
        self._embeds = embed is not None
        self._model = model
        self._lock = threading.Lock()
        self._turns = history.case.turns()
        self._session_of = history.case.session_of()
        self._ladder = ladder or Ladder(history.case, embed)
        self._lexicon = self._ladder.lexicon
        self._facts: tuple[Fact, ...] = believed(history.after.facts)
        self._by_id = {fact.fact_id: fact for fact in reversed(self._facts)}
        self._index = self._ladder.index(self._facts, sessions_of_facts(history))
        self._rivals = Rivals(self._index, self._ladder)
        self._events = timeline(history)
        self._undoing = [event for event in self._events if event.kind in (EventKind.REWRITTEN, EventKind.LOST)]
        self._old_index = self._ladder.index(event.old for event in self._undoing if event.old)
        self._store_findings = store_findings(history)
        self._said_at = {fact.fact_id: self._time_of(fact) for fact in self._facts}

    @property
    def events(self) -> tuple[FactEvent, ...]:
        """The timeline of the case's facts."""
        return self._events

    def diagnose(
        self,
        question: Question,
        retrieved: Sequence[Retrieved],
        top_k: int,
        candidate: Candidate | None,
        verdict: Verdict,
    ) -> Diagnosis:
        """Stage, cause, evidence and confidence of one FAIL.

        Args:
            retrieved: as deep as was asked, best first; the candidate saw the first ``top_k``.
            candidate: None when there was no answer.
            verdict: the verdict that is explained; its wording decides nothing.
        """
        del verdict  # a diagnosis explains any FAIL the same way, whoever judged it
        with self._lock:
            return self._diagnose(question, retrieved, top_k, candidate)

    # ---------------------------------------------------------------------------------------------------- gathering

    def _diagnose(
        self, question: Question, retrieved: Sequence[Retrieved], top_k: int, candidate: Candidate | None
    ) -> Diagnosis:
        erratum = self._errata.get(question.question_id)
        needed = needed_pieces(question, self._turns, self._session_of, self._lexicon, erratum)
        strangers = self._strangers(retrieved)
        carriages = [self._carriage(piece, strangers) for piece in needed.pieces]
        carriages, calls = self._asked(question, needed, carriages)
        # A part of the gold that neither a turn nor a fact states is inferred; nothing can be said about its way.
        told = [
            piece.turn is not None or bool(carriage.carriers)
            for piece, carriage in zip(needed.pieces, carriages, strict=True)
        ]
        carriages = list(compress(carriages, told))
        needed = replace(needed, pieces=tuple(compress(needed.pieces, told)))
        fitting = fitting_facts(retrieved, top_k, self._budget)
        trails = tuple(
            follow(piece, carriage, retrieved, top_k, fitting, candidate, self._lexicon)
            for piece, carriage in zip(needed.pieces, carriages, strict=True)
        )
        answer = read_answer(question, needed.gold, candidate, self._lexicon)
        rivals = self._rivals.of(question, needed, carriages, answer) if needed.pieces else []
        place = dict(ranks(retrieved))
        rivals.sort(key=lambda rival: (place.get(rival.fact.fact_id, 10**9), rival.kind, rival.fact.content))
        gathered = Gathered(
            question=question,
            needed=needed,
            trails=trails,
            rivals=tuple(rivals),
            undone=self._undone(trails),
            retrieved=retrieved,
            place=place,
            top_k=top_k,
            fitting=fitting,
            answer=answer,
        )
        decision = decide(gathered)
        misses: tuple[NearMiss, ...] = ()
        if decision.stage is Stage.RETRIEVAL and decision.cause is not Cause.OVER_BUDGET:
            misses = near_misses(
                question, decision.missing, retrieved, top_k, self._ladder, self._said_at, embedding=self._embeds
            )
        findings = [*self._store_findings, *retrieval_findings(retrieved, self._by_id.keys())]
        return self._record(decision, gathered, misses, findings, calls)

    def _strangers(self, retrieved: Sequence[Retrieved]) -> tuple[Fact, ...]:
        """The facts that only the search shows: ids or content that the export lacks."""
        strangers: dict[str, Fact] = {}
        for row in retrieved:
            known = self._by_id.get(row.fact_id)
            if not row.content.strip() or (known and known.content.strip()):
                continue
            named = row.metadata.get("source_turn_ids") or ()
            sources = tuple(str(one) for one in named) if isinstance(named, (list, tuple)) else ()
            if known:
                strangers[row.fact_id] = Fact(
                    known.fact_id, row.content, known.status, known.supersedes, known.source_turn_ids or sources
                )
            else:
                strangers[row.fact_id] = Fact(row.fact_id, row.content, source_turn_ids=sources)
        return tuple(strangers.values())

    def _carriage(self, piece: Piece, strangers: tuple[Fact, ...]) -> Carriage:
        stored = self._ladder.carriage(piece, self._index)
        if not strangers:
            return stored
        shown = self._ladder.carriage(piece, self._ladder.index(strangers))
        if not shown.carriers:
            return stored if stored.carriers or not shown.lost else shown
        ids = {fact.fact_id for fact in shown.carriers}
        both = tuple(fact for fact in stored.carriers if fact.fact_id not in ids) + shown.carriers
        return Carriage(both, stored.lost, shown.decided_by if not stored.carriers else stored.decided_by, shown.share)

    def _asked(self, question: Question, needed: Needed, carriages: list[Carriage]) -> tuple[list[Carriage], int]:
        """The carriages after a model was asked about pieces that nothing carries for certain, and how often."""
        if self._model is None or not self._index.unsourced:
            return carriages, 0
        from memx.diagnose.model_rung import MOST_CALLS, SHORT_LIST

        calls, found = 0, list(carriages)
        for position, (piece, carriage) in enumerate(zip(needed.pieces, carriages, strict=True)):
            if not carriage.unsure or piece.turn is None or calls >= MOST_CALLS:
                continue
            listed = self._ladder.short_list(piece, self._index, SHORT_LIST)
            if not listed:
                continue
            texts = [fact.content for fact in listed]
            calls += 1
            said = self._model.carrying(question.text, piece.turn.speaker, piece.text, texts)
            if said is not None:
                carrying = tuple(sorted((listed[one] for one in said), key=lambda fact: not fact.active))
                lost = () if carrying else carriage.lost
                found[position] = Carriage(carrying, lost, DecidedBy.MODEL)
        return found, calls

    def _undone(self, trails: Sequence[Trail]) -> dict[str, FactEvent]:
        """For each piece that nothing carries: the event that rewrote or removed the fact which carried it."""
        found: dict[str, FactEvent] = {}
        if not self._undoing:
            return found
        for trail in trails:
            if trail.stored:
                continue
            carrying = self._ladder.carriage(trail.piece, self._old_index).carriers
            ids = {id(fact) for fact in carrying}
            last = next((event for event in reversed(self._undoing) if id(event.old) in ids), None)
            if last:
                found[trail.piece.turn_id] = last
        return found

    def _time_of(self, fact: Fact) -> datetime | None:
        named = next((self._turns[one] for one in fact.source_turn_ids if one in self._turns), None)
        return named.at if named and named.at else fact.created_at

    # ----------------------------------------------------------------------------------------------------- the record

    def _record(
        self,
        decision: Decision,
        gathered: Gathered,
        misses: tuple[NearMiss, ...],
        findings: Sequence[Finding],
        calls: int,
    ) -> Diagnosis:
        confidence, reasons = self._confidence(decision, gathered, findings)
        facts = {(fact.fact_id, fact.role): fact for fact in decision.facts}
        rows = {row.fact_id: row for row in reversed(gathered.retrieved)}
        for miss in misses:
            row, stored = rows[miss.winner_fact_id], self._by_id.get(miss.winner_fact_id)
            shown = stored or Fact(row.fact_id, row.content)
            facts[shown.fact_id, "winner"] = DiagnosedFact(shown.fact_id, shown.content, shown.status, "winner")
        notes = [*decision.notes, *self._notes(gathered.needed), *(finding.text for finding in findings)]
        if reasons:
            notes.append(f"confidence {confidence:.2f}: {'; '.join(reasons)}")
        return Diagnosis(
            stage=decision.stage,
            cause=decision.cause,
            confidence=confidence,
            why=decision.why,
            decided_by=decision.decided_by(),
            llm_calls=calls,
            evidence=tuple(trail.as_evidence(self._lexicon) for trail in gathered.trails),
            facts=tuple(facts.values()),
            near_misses=misses,
            notes=tuple(dict.fromkeys(notes)),
        )

    def _confidence(
        self, decision: Decision, gathered: Gathered, findings: Sequence[Finding]
    ) -> tuple[float, list[str]]:
        sure, reasons = decision.sure, []
        rung = decision.decided_by()
        if _RUNG_COST[rung]:
            sure -= _RUNG_COST[rung]
            reasons.append(f"decided by {rung}, not by provenance")
        if any(trail.carriage.share < 0.99 for trail in decision.rests_on if trail.stored):
            sure -= 0.1
            reasons.append("a fact holds part of the detail only")
        if any(trail.piece.derived for trail in decision.rests_on):
            sure -= 0.15
            reasons.append("the evidence was derived from the gold answer, not annotated")
        if gathered.question.abstention:
            sure -= 0.15
            reasons.append("the right answer is a refusal, for which no fact is strictly needed")
        for finding in findings:
            if finding.penalty:
                sure -= finding.penalty
                reasons.append(finding.text.partition(":")[0])
        cap = min([finding.cap for finding in findings], default=1.0)
        if sure > cap:
            sure = cap
        return round(min(1.0, max(0.05, sure)), 3), reasons

    @staticmethod
    def _notes(needed: Needed) -> list[str]:
        notes = []
        if needed.dangling:
            notes.append(f"evidence ids that name no turn: {', '.join(needed.dangling)}")
        if needed.corrected:
            notes.append("the cited evidence was corrected by the errata overlay")
        if any(piece.derived for piece in needed.pieces):
            notes.append("the dataset names no evidence turn: the pieces were derived from the gold answer")
        return notes
