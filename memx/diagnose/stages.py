"""From the gathered evidence to one stage and one cause: the stages in order, the first that holds.

Nothing is looked up here; everything was gathered by :mod:`memx.diagnose.diagnoser`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memx.diagnose.answers import Answer
from memx.diagnose.pieces import Needed
from memx.diagnose.rivals import Rival
from memx.diagnose.timeline import EventKind, FactEvent
from memx.diagnose.trail import Trail
from memx.model import Cause, DecidedBy, DiagnosedFact, Fact, Question, Retrieved, Stage

_STRENGTH = (DecidedBy.PROVENANCE, DecidedBy.TEXT, DecidedBy.MODEL, DecidedBy.EMBEDDING, DecidedBy.RULE)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that bears on why one question failed.

    Attributes:
        undone: for a piece that nothing carries any more, the event that took it from the store, by turn id.
        place: rank of each retrieved fact id.
        visible: the store's content can be seen.
    """

    question: Question
    needed: Needed
    trails: tuple[Trail, ...]
    rivals: tuple[Rival, ...]
    undone: dict[str, FactEvent]
    retrieved: Sequence[Retrieved]
    place: dict[str, int]
    top_k: int
    fitting: int
    answer: Answer
    visible: bool = True


@dataclass(slots=True)
class Decision:
    """One stage and cause, with what it rests on.

    Attributes:
        sure: confidence before what the rungs and the material cost.
        rests_on: trails whose rung it rests on.
        missing: pieces that the retrieval did not bring, for near misses.
    """

    stage: Stage
    cause: Cause
    why: str
    sure: float
    rests_on: tuple[Trail, ...] = ()
    rule: DecidedBy | None = None
    facts: list[DiagnosedFact] = field(default_factory=list)
    missing: tuple[Trail, ...] = ()
    notes: list[str] = field(default_factory=list)

    def decided_by(self) -> DecidedBy:
        """The weakest rung that it rests on."""
        rungs = [trail.carriage.decided_by for trail in self.rests_on] + ([self.rule] if self.rule else [])
        return max(rungs, key=_STRENGTH.index, default=DecidedBy.RULE)


def decide(case: Gathered) -> Decision:
    """The first stage that holds."""
    if not case.trails:
        return _nothing_needed(case)
    notes: list[str] = []
    found = _extraction(case) or _conflict(case, notes) or _mutation(case, notes) or _retrieval(case) or _beyond(case)
    found.notes[:0] = notes
    if found.stage is not Stage.NONE and case.needed.disputed:
        found.notes.append(f"the gold is disputed as well: {case.needed.disputed}")
    if found.stage is not Stage.NONE and case.answer.holds_gold:
        found.notes.append("the candidate contains the gold all the same: the verdict is doubtful")
    return found


# -------------------------------------------------------------------------------------------------------- extraction


def _extraction(case: Gathered) -> Decision | None:
    gone = [trail for trail in case.trails if not trail.stored and trail.piece.turn_id not in case.undone]
    if not gone:
        return None
    kept = [trail for trail in case.trails if trail.stored]
    distorted = [trail for trail in gone if trail.carriage.lost]
    facts = [_role(fact, "expected") for trail in distorted for fact, _ in trail.carriage.lost[:2]]
    if len(distorted) == len(gone):
        trail = distorted[0]
        fact, holds = trail.carriage.lost[0]
        lost = ", ".join(f"'{word}'" for word in holds.missing)
        what = f"lost {lost}" if lost else "no longer says what the turn says"
        why = f"{fact.fact_id} comes from {trail.piece.turn_id} and {what}: {_short(fact.content)}"
        return Decision(Stage.EXTRACTION, Cause.DISTORTED, why, 0.93, tuple(gone), facts=facts)
    never = [trail for trail in gone if not trail.carriage.lost]
    names = _turns(never)
    if kept or distorted:
        stored = f"{len(kept)} of {len(case.trails)} pieces are stored"
        why = f"{stored}; no fact carries {names}: {_short(never[0].piece.text)}"
        return Decision(Stage.EXTRACTION, Cause.PARTLY_STORED, why, 0.95, tuple(gone), facts=facts)
    why = f"no fact of the store carries {names}: {_short(never[0].piece.text)}"
    return Decision(Stage.EXTRACTION, Cause.NEVER_STORED, why, 0.95, tuple(gone), facts=facts)


# ---------------------------------------------------------------------------------------------------------- conflict


def _conflict(case: Gathered, notes: list[str]) -> Decision | None:
    if case.answer.gold_states_contradiction:
        return _stated_contradiction(case, notes)
    pairs = [rival for rival in case.rivals if rival.fact.active and not rival.linked and rival.against.active]
    for rival in pairs:
        old, current = rival.fact, rival.against
        told = case.answer.takes(old.content, current.content)
        if case.answer.holds_gold:
            notes.append(
                f"{old.fact_id} and {current.fact_id} disagree and both are active; the answer used the current one"
            )
            continue
        seen_old, seen_new = _seen(case, old), _seen(case, current)
        if not seen_old and not seen_new and not told:
            notes.append(f"{old.fact_id} and {current.fact_id} disagree and both are active; neither came back")
            continue
        rank = case.place.get(current.fact_id)
        elsewhere = f"the current one has {f'rank {rank}' if rank else 'no rank'}"
        came = {
            (True, True): "both came back",
            (True, False): f"only the outdated one came back, {elsewhere}",
            (False, True): "only the current one came back",
            (False, False): "neither came back",
        }[seen_old, seen_new]
        used = "; the answer used the other value" if told else ""
        why = (
            f"{current.fact_id} ({_short(current.content)}) and {old.fact_id} ({_short(old.content)}) disagree on what "
            f"is asked, both are active and nothing links them; {came}{used}"
        )
        sure = {"annotated": 0.95, "linked": 0.95, "copy": 0.9, "statement": 0.75}[rival.kind]
        sure = min(0.97, sure + 0.05) if told else sure
        if not seen_new and not told:
            sure -= 0.15  # that the search left the current one out would explain the failure as well
        facts = [_role(current, "expected"), _role(old, "conflicting")]
        rests = tuple(trail for trail in case.trails if trail.piece.turn_id == rival.piece.turn_id)
        rule = None if rival.kind == "annotated" else DecidedBy.TEXT
        return Decision(Stage.CONFLICT, Cause.BOTH_ACTIVE, why, sure, rests, rule, facts)
    return None


def _stated_contradiction(case: Gathered, notes: list[str]) -> Decision | None:
    """The gold itself says that two statements contradict each other, and both are active."""
    if case.answer.holds_gold:
        return None
    sides = [trail for trail in case.trails if trail.carriage.active]
    sides = list({trail.carriage.active[0].fact_id: trail for trail in sides}.values())
    if len(sides) < 2:
        return None
    first, second = sides[0].carriage.active[0], sides[-1].carriage.active[0]
    if first.fact_id in second.supersedes or second.fact_id in first.supersedes:
        return None
    if not any(trail.in_top_k for trail in sides):
        notes.append(
            f"{first.fact_id} and {second.fact_id} contradict each other and both are active; neither came back"
        )
        return None
    why = (
        f"{first.fact_id} ({_short(first.content)}) and {second.fact_id} ({_short(second.content)}) contradict each "
        "other, as the gold says, and both are active with nothing that links them"
    )
    facts = [_role(first, "conflicting"), _role(second, "conflicting")]
    return Decision(Stage.CONFLICT, Cause.BOTH_ACTIVE, why, 0.9, (sides[0], sides[-1]), None, facts)


# ---------------------------------------------------------------------------------------------------------- mutation


def _mutation(case: Gathered, notes: list[str]) -> Decision | None:
    for trail in case.trails:
        event = case.undone.get(trail.piece.turn_id)
        if event and not trail.stored:
            return _undone(case, trail, event)
    for rival in case.rivals:
        old, current = rival.fact, rival.against
        if not (old.active and rival.linked and current.active):
            continue
        told = case.answer.takes(old.content, current.content)
        if case.answer.holds_gold and not told:
            notes.append(f"{old.fact_id} is superseded and still active; the answer used the current fact all the same")
            continue
        used = "; the answer used the old value" if told else ""
        why = (
            f"{current.fact_id} ({_short(current.content)}) supersedes {old.fact_id} ({_short(old.content)}), which is "
            f"still active{used}"
        )
        facts = [_role(current, "expected"), _role(old, "stale")]
        rests = tuple(one for one in case.trails if one.piece.turn_id == rival.piece.turn_id)
        return Decision(Stage.MUTATION, Cause.OLD_STILL_ACTIVE, why, 0.95, rests, None, facts)
    for trail in case.trails:
        if trail.carriage.active or not trail.stored:
            continue
        current = trail.carriage.carriers[0]
        stale = [
            rival.fact for rival in case.rivals if rival.fact.active and rival.piece.turn_id == trail.piece.turn_id
        ]
        facts = [_role(current, "expected"), *(_role(fact, "stale") for fact in stale[:2])]
        why = f"{current.fact_id} ({_short(current.content)}), which carries {trail.piece.turn_id}, is {current.status}"
        if stale:
            why += f", while {stale[0].fact_id} ({_short(stale[0].content)}) is active"
        else:
            why += " and no active fact carries it"
        return Decision(Stage.MUTATION, Cause.CURRENT_RETIRED, why, 0.95 if stale else 0.85, (trail,), None, facts)
    return None


def _undone(case: Gathered, trail: Trail, event: FactEvent) -> Decision:
    old = event.old
    assert old is not None
    session = f"session {event.session_id}" if event.session_id else "the end of the ingest"
    facts = [DiagnosedFact(old.fact_id, old.content, old.status, "expected")]
    if event.kind is EventKind.REWRITTEN and event.new:
        why = (
            f"{old.fact_id} carried {trail.piece.turn_id} ({_short(old.content)}) until {session} rewrote it in place "
            f"to {_short(event.new.content)}"
        )
        facts.append(_role(event.new, "stale"))
    else:
        why = f"{old.fact_id} carried {trail.piece.turn_id} ({_short(old.content)}) until {session} removed it"
    return Decision(Stage.MUTATION, Cause.CURRENT_RETIRED, why, 0.92, (trail,), None, facts)


# --------------------------------------------------------------------------------------------------------- retrieval


def _retrieval(case: Gathered) -> Decision | None:
    missing = tuple(trail for trail in case.trails if not trail.in_top_k)
    facts = [_role(trail.carriage.active[0], "expected") for trail in missing]
    outdated = _outranked(case)
    if outdated:
        stale, trail = outdated
        current = trail.carriage.active[0]
        where = f"rank {trail.rank}" if trail.rank else "no rank at all"
        why = (
            f"{stale.fact_id} ({_short(stale.content)}), which is {stale.status}, came back at rank "
            f"{case.place[stale.fact_id]}; {current.fact_id} ({_short(current.content)}), which is current, has {where}"
        )
        facts = [_role(current, "expected"), _role(stale, "stale")]
        return Decision(Stage.RETRIEVAL, Cause.STALE_OUTRANKED, why, 0.93, (trail,), None, facts, missing)
    if missing and len(missing) < len(case.trails):
        came = [trail for trail in case.trails if trail.in_top_k]
        why = (
            f"{len(came)} of {len(case.trails)} pieces came back in the top {case.top_k}; "
            f"{_ranked(missing, case)} did not"
        )
        return Decision(Stage.RETRIEVAL, Cause.PARTLY_RETRIEVED, why, 0.95, case.trails, None, facts, missing)
    if missing:
        if any(trail.rank for trail in missing):
            some = "the needed facts were" if all(trail.rank for trail in missing) else "some of the needed facts were"
            why = f"{some} found, but below the top {case.top_k}: {_ranked(missing, case)}"
            return Decision(Stage.RETRIEVAL, Cause.RANKED_BELOW_K, why, 0.95, missing, None, facts, missing)
        depth = len(case.retrieved)
        why = f"stored and active, but not among the {depth} facts that the query brought: {_ranked(missing, case)}"
        found = Decision(Stage.RETRIEVAL, Cause.ABSENT, why, 0.95, missing, None, facts, missing)
        if 0 < depth <= case.top_k:
            found.notes.append(
                f"nothing beyond the top {case.top_k} was asked for: how far below it ranks is not known"
            )
            found.sure = 0.85
        return found
    cut = tuple(trail for trail in case.trails if not trail.in_budget)
    if cut:
        why = (
            f"the needed facts came back in the top {case.top_k}, but only the first {case.fitting} fitted into the "
            f"context budget: {_ranked(cut, case)}"
        )
        facts = [_role(trail.carriage.active[0], "expected") for trail in cut]
        return Decision(Stage.RETRIEVAL, Cause.OVER_BUDGET, why, 0.93, cut, None, facts, cut)
    return None


def _outranked(case: Gathered) -> tuple[Fact, Trail] | None:
    """A retired fact that came back within k and above the current one: which is missing, or which the answer left."""
    for rival in case.rivals:
        rank = case.place.get(rival.fact.fact_id)
        if rival.fact.active or rank is None or rank > case.top_k:
            continue
        for trail in case.trails:
            if trail.piece.turn_id != rival.piece.turn_id or not trail.carriage.active:
                continue
            below = trail.rank is None or trail.rank > rank
            if below and (not trail.in_top_k or case.answer.takes(rival.fact.content, rival.against.content)):
                return rival.fact, trail
    return None


# -------------------------------------------------------------------------------------------------- beyond the memory


def _beyond(case: Gathered) -> Decision:
    answer, trails = case.answer, case.trails
    facts = [_role(trail.carriage.active[0], "expected") for trail in trails if trail.carriage.active]
    if answer.holds_gold and not answer.is_retrieved:
        why = f"the memory brought every needed fact, and the candidate contains the gold: {_short(case.needed.gold)}"
        return Decision(Stage.NONE, Cause.JUDGE_DOUBTFUL, why, 0.85, trails, None, facts)
    if case.needed.disputed:
        what = case.needed.disputed.replace("_", " ")
        if case.needed.corrected:
            what += f"; its evidence is corrected to {_turns(trails)}"
        why = f"the memory brought every needed fact, and the errata list this question: {what}"
        return Decision(Stage.NONE, Cause.GOLD_DISPUTED, why, 0.85, trails, None, facts)
    if answer.holds_gold:
        why = f"every needed fact came back, and the retrieved text contains the gold: {_short(case.needed.gold)}"
        return Decision(Stage.NONE, Cause.JUDGE_DOUBTFUL, why, 0.7, trails, None, facts)
    ranked = ", ".join(f"{trail.piece.turn_id} at rank {trail.rank}" for trail in trails)
    if case.question.abstention:
        why = (
            f"what the question is about came back ({ranked}); the right answer is a refusal and the candidate answers"
        )
    else:
        why = f"every needed fact came back ({ranked}) and the answer is wrong all the same"
    found = Decision(Stage.NONE, Cause.SYNTHESIS, why, 0.9, trails, None, facts)
    if case.needed.dangling:
        found.sure = 0.6
        found.notes.append(f"evidence ids that name no turn: {', '.join(case.needed.dangling)}")
    return found


def _nothing_needed(case: Gathered) -> Decision:
    if case.needed.dangling:
        why = f"the evidence ids of the question name no turn of the case: {', '.join(case.needed.dangling)}"
        return Decision(Stage.NONE, Cause.EVIDENCE_MISSING, why, 0.95, (), DecidedBy.RULE)
    if case.question.abstention:
        why = "the right answer is a refusal, which needs no fact, and the candidate answers"
        return Decision(Stage.NONE, Cause.SYNTHESIS, why, 0.8, (), DecidedBy.RULE)
    why = "the question names no evidence, and none can be derived from its gold answer"
    return Decision(Stage.NONE, Cause.EVIDENCE_MISSING, why, 0.6, (), DecidedBy.RULE)


# ----------------------------------------------------------------------------------------------------------- helpers


def _seen(case: Gathered, fact: Fact) -> bool:
    rank = case.place.get(fact.fact_id)
    return rank is not None and rank <= case.top_k


def _role(fact: Fact, role: str) -> DiagnosedFact:
    return DiagnosedFact(fact.fact_id, fact.content, fact.status, role)


def _turns(trails: Iterable[Trail]) -> str:
    return ", ".join(trail.piece.turn_id for trail in trails)


def _ranked(trails: Iterable[Trail], case: Gathered) -> str:
    parts = []
    for trail in trails:
        fact = trail.carriage.active[0]
        where = f"rank {trail.rank}" if trail.rank else "not found"
        parts.append(f"{trail.piece.turn_id} ({fact.fact_id}, {where})")
    return ", ".join(parts)


def _short(text: str, width: int = 90) -> str:
    text = " ".join(text[: width * 4].split())
    return f"'{text[: width - 1]}…'" if len(text) > width else f"'{text}'"
