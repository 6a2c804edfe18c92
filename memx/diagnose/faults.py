"""Faults of known kind, planted into a perfect store: one for each cause that a diagnosis can name.

A fault is planted as a memory system would commit it: a turn that is never stored, a value that is reworded away, an
update that leaves the old row active, a search that ranks the needed fact below others about the same matter.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memx.diagnose.perfect import PerfectStore
from memx.model import Candidate, CandidateSource, Cause, Fact, FactStatus, Question, Retrieved, Turn
from memx.text.dates import dates_in
from memx.text.periods import DateRelation
from memx.text.words import stems

DEEP = 50
_WORD = re.compile(r"[\w'’-]+")
_VAGUE = ("something", "some of it", "a certain one", "one of those")
_OTHER_DATES = ("three months ago", "the year before last", "back in 2015", "on 2 February 2016")


@dataclass(frozen=True, slots=True)
class Planted:
    """A question, the faulty store and retrieval it was asked on, and the cause that a diagnosis should name.

    Attributes:
        by_session: facts after each session, where the fault shows only there.
    """

    cause: Cause
    question: Question
    facts: tuple[Fact, ...]
    retrieved: tuple[Retrieved, ...]
    candidate: Candidate
    top_k: int
    by_session: tuple[tuple[str, tuple[Fact, ...]], ...] = ()
    errata: Mapping[str, Any] = field(default_factory=dict)
    context_budget: int | None = None


class Planter:
    """Plants faults into one perfect store.

    Args:
        donors: gold answers of other questions; their values stand in for the right one.
        rng: makes every choice.
    """

    def __init__(self, store: PerfectStore, donors: Sequence[str], rng: random.Random, *, top_k: int = 10) -> None:
        self._store = store
        self._donors = donors
        self._rng = rng
        self._top_k = top_k
        self._turns = store.case.turns()
        self._words = {fact_id: set(stems(fact.content)) for fact_id, fact in store.facts.items()}
        self._session_of = store.case.session_of()

    def plant(self, cause: Cause, question: Question) -> Planted | None:
        """The question with one fault of this cause; None where the question allows none (a single piece cannot be
        partly stored, a value that no fact states cannot be distorted)."""
        makers: Mapping[Cause, Callable[[Question], Planted | None]] = {
            Cause.NEVER_STORED: self._never_stored,
            Cause.PARTLY_STORED: self._partly_stored,
            Cause.DISTORTED: self._distorted,
            Cause.BOTH_ACTIVE: self._both_active,
            Cause.OLD_STILL_ACTIVE: self._old_still_active,
            Cause.CURRENT_RETIRED: self._current_retired,
            Cause.ABSENT: self._absent,
            Cause.RANKED_BELOW_K: self._ranked_below_k,
            Cause.PARTLY_RETRIEVED: self._partly_retrieved,
            Cause.STALE_OUTRANKED: self._stale_outranked,
            Cause.OVER_BUDGET: self._over_budget,
            Cause.SYNTHESIS: self._synthesis,
            Cause.JUDGE_DOUBTFUL: self._judge_doubtful,
            Cause.GOLD_DISPUTED: self._gold_disputed,
            Cause.EVIDENCE_MISSING: self._evidence_missing,
        }
        return makers[cause](question)

    # -------------------------------------------------------------------------------------------------- extraction

    def _never_stored(self, question: Question) -> Planted | None:
        gone = self._carriers(question.evidence)
        return self._planted(Cause.NEVER_STORED, question, self._without(gone), self._rows(question, (), gone))

    def _partly_stored(self, question: Question) -> Planted | None:
        kept, lost = self._split(question)
        gone = [one for one in self._carriers(lost) if one not in set(self._carriers(kept))]
        if not kept or not all(set(self._store.carriers[turn]) <= set(gone) for turn in lost):
            return None
        rows = self._rows(question, self._carriers(kept), gone)
        return self._planted(Cause.PARTLY_STORED, question, self._without(gone), rows)

    def _distorted(self, question: Question) -> Planted | None:
        turn_id = self._rng.choice(question.evidence)
        changed: dict[str, Fact] = {}
        ids = self._store.carriers[turn_id]
        for fact_id in ids:
            found = self._swap(
                question, self._store.facts[fact_id], self._turns[turn_id], vague=self._rng.random() < 0.5
            )
            if found:
                changed[fact_id] = found[0]
        silent = [fact_id for fact_id in ids if fact_id not in changed and self._mentions_gold(question, fact_id)]
        if not changed or silent:
            return None
        facts = tuple(changed.get(fact.fact_id, fact) for fact in self._store.facts.values())
        rows = self._rows(question, self._carriers(question.evidence), (), changed)
        return self._planted(Cause.DISTORTED, question, facts, rows)

    # ------------------------------------------------------------------------------------------ conflict and mutation

    def _both_active(self, question: Question) -> Planted | None:
        found = self._rival(question)
        if found is None:
            return None
        current, rival, value = found
        rows = self._rows(question, [rival.fact_id, *self._carriers(question.evidence)], (), {rival.fact_id: rival})
        return self._planted(Cause.BOTH_ACTIVE, question, self._with(current, rival), rows, value)

    def _old_still_active(self, question: Question) -> Planted | None:
        found = self._rival(question)
        if found is None:
            return None
        current, old, value = found
        current = replace(current, supersedes=(*current.supersedes, old.fact_id))
        rows = self._rows(question, [old.fact_id, *self._carriers(question.evidence)], (), {old.fact_id: old})
        return self._planted(Cause.OLD_STILL_ACTIVE, question, self._with(current, old), rows, value)

    def _current_retired(self, question: Question) -> Planted | None:
        found = self._rival(question)
        if found is None:
            return None
        current, old, value = found
        turn_id = current.source_turn_ids[0]
        gone = set(self._store.carriers[turn_id])
        if self._rng.random() < 0.25 and self._store.carriers[turn_id] == (current.fact_id,):
            return self._rewritten(question, current, old, value)
        retired = [replace(self._store.facts[one], status=FactStatus.SUPERSEDED, supersedes=()) for one in gone]
        rest = [one for one in self._carriers(question.evidence) if one not in gone]
        rows = self._rows(question, [old.fact_id, *rest], gone, {old.fact_id: old})
        return self._planted(Cause.CURRENT_RETIRED, question, self._with(*retired, old), rows, value)

    def _rewritten(self, question: Question, current: Fact, other: Fact, value: str) -> Planted:
        """The fact is rewritten in place, under its own id, by a later session's ingest."""
        sessions = [session.session_id for session in self._store.case.sessions]
        born = sessions.index(self._session_of[current.source_turn_ids[0]])
        after = replace(current, content=other.content)
        early = tuple(self._store.facts.values())
        late = tuple(after if fact.fact_id == current.fact_id else fact for fact in early)
        at = self._rng.randrange(born, len(sessions))
        steps = tuple((name, early if index <= at else late) for index, name in enumerate(sessions[:-1]))
        rows = self._rows(question, self._carriers(question.evidence), (), {current.fact_id: after})
        planted = self._planted(Cause.CURRENT_RETIRED, question, late, rows, value)
        return replace(planted, by_session=steps)

    # --------------------------------------------------------------------------------------------------- retrieval

    def _absent(self, question: Question) -> Planted | None:
        rows = self._rows(question, (), self._carriers(question.evidence))
        return self._planted(Cause.ABSENT, question, tuple(self._store.facts.values()), rows)

    def _ranked_below_k(self, question: Question) -> Planted | None:
        needed = self._carriers(question.evidence)
        rows = self._rows(question, (), needed)
        if len(rows) < self._top_k:
            return None
        place = self._rng.randrange(self._top_k, max(self._top_k + 1, min(len(rows), DEEP - len(needed))))
        found = (*rows[:place], *(self._row(self._store.facts[one]) for one in needed), *rows[place:])
        return self._planted(Cause.RANKED_BELOW_K, question, tuple(self._store.facts.values()), found)

    def _partly_retrieved(self, question: Question) -> Planted | None:
        kept, lost = self._split(question)
        gone = [one for one in self._carriers(lost) if one not in set(self._carriers(kept))]
        if not kept or not all(set(self._store.carriers[turn]) <= set(gone) for turn in lost):
            return None
        rows = self._rows(question, self._carriers(kept), gone)
        if self._rng.random() < 0.5 and len(rows) >= DEEP // 2:
            rows = (*rows, *(self._row(self._store.facts[one]) for one in gone))
        return self._planted(Cause.PARTLY_RETRIEVED, question, tuple(self._store.facts.values()), rows)

    def _stale_outranked(self, question: Question) -> Planted | None:
        found = self._rival(question)
        if found is None:
            return None
        current, old, value = found
        old = replace(old, status=FactStatus.SUPERSEDED)
        current = replace(current, supersedes=(*current.supersedes, old.fact_id))
        needed = set(self._store.carriers[current.source_turn_ids[0]])
        rest = [one for one in self._carriers(question.evidence) if one not in needed]
        rows = self._rows(question, [old.fact_id, *rest], needed, {old.fact_id: old})
        if self._rng.random() < 0.5 and len(rows) >= DEEP // 2:
            rows = (*rows, self._row(current))
        return self._planted(Cause.STALE_OUTRANKED, question, self._with(current, old), rows, value)

    def _over_budget(self, question: Question) -> Planted | None:
        needed = self._carriers(question.evidence)
        if len(needed) >= self._top_k:
            return None
        rows = self._rows(question, (), needed)[: self._top_k - len(needed)]
        if not rows:
            return None
        budget = sum((len(row.content) + 3) // 4 for row in rows)
        found = (*rows, *(self._row(self._store.facts[one]) for one in needed))
        planted = self._planted(Cause.OVER_BUDGET, question, tuple(self._store.facts.values()), found)
        return replace(planted, context_budget=budget)

    # ------------------------------------------------------------------------------------------------ beyond the memory

    def _synthesis(self, question: Question) -> Planted | None:
        return self._untouched(Cause.SYNTHESIS, question, self._other_gold(question))

    def _judge_doubtful(self, question: Question) -> Planted | None:
        if question.abstention:
            return self._untouched(Cause.JUDGE_DOUBTFUL, question, "That is not mentioned in the conversation.")
        return self._untouched(Cause.JUDGE_DOUBTFUL, question, f"As far as I remember: {question.gold}")

    def _gold_disputed(self, question: Question) -> Planted | None:
        planted = self._untouched(Cause.GOLD_DISPUTED, question, self._other_gold(question))
        return replace(planted, errata={question.question_id: {"kind": "hallucination"}})

    def _evidence_missing(self, question: Question) -> Planted | None:
        lost = replace(question, evidence=tuple(f"nowhere-{number}" for number, _ in enumerate(question.evidence)))
        return self._untouched(Cause.EVIDENCE_MISSING, lost, self._other_gold(question), question.evidence)

    def _untouched(self, cause: Cause, question: Question, answer: str, evidence: Sequence[str] = ()) -> Planted:
        needed = self._some_carriers(question, evidence or question.evidence)
        rows = self._rows(question, needed, self._carriers(evidence or question.evidence))
        planted = self._planted(cause, question, tuple(self._store.facts.values()), rows, answer)
        return replace(planted, top_k=max(self._top_k, len(needed)))

    def _some_carriers(self, question: Question, turn_ids: Sequence[str]) -> list[str]:
        """Every fact that rests on the turns; of half of the turns that several facts carry, one that says as much of
        the gold as all of them."""
        found: list[str] = []
        for turn_id in turn_ids:
            ids = self._store.carriers.get(turn_id, ())
            all_say = self._store.states(question, turn_id, ids) if len(ids) > 1 else frozenset()
            alone = [one for one in ids if all_say and self._store.states(question, turn_id, (one,)) == all_say]
            found += [self._rng.choice(alone)] if alone and self._rng.random() < 0.5 else ids
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------------------------------------------- helpers

    def _planted(
        self,
        cause: Cause,
        question: Question,
        facts: tuple[Fact, ...],
        rows: tuple[Retrieved, ...],
        answer: str = "",
    ) -> Planted:
        text = answer or self._other_gold(question)
        # Room for every piece that should come back, so that k itself is no second fault.
        needed = len(self._carriers(one for one in question.evidence if one in self._turns))
        deep = cause in (Cause.RANKED_BELOW_K, Cause.OVER_BUDGET)
        top_k = self._top_k if deep else max(self._top_k, needed + 1)
        return Planted(cause, question, facts, rows, Candidate(text, CandidateSource.MODEL), top_k)

    def _carriers(self, turn_ids: Any) -> list[str]:
        return list(dict.fromkeys(one for turn_id in turn_ids for one in self._store.carriers.get(turn_id, ())))

    def _without(self, gone: Sequence[str]) -> tuple[Fact, ...]:
        left_out = set(gone)
        return tuple(fact for fact in self._store.facts.values() if fact.fact_id not in left_out)

    def _split(self, question: Question) -> tuple[list[str], list[str]]:
        """The evidence in two parts that are not empty, at random."""
        turns = list(question.evidence)
        if len(turns) < 2:
            return [], turns
        self._rng.shuffle(turns)
        cut = self._rng.randrange(1, len(turns))
        return turns[:cut], turns[cut:]

    def _rows(
        self,
        question: Question,
        first: Sequence[str],
        never: Any,
        changed: Mapping[str, Fact] | None = None,
    ) -> tuple[Retrieved, ...]:
        """A retrieval: the given facts first, then active ones that share most words with the question; never the
        others."""
        changed = changed or {}
        asked = set(stems(question.text))
        left_out = set(never) | set(first) | set(self._carriers(one for one in question.evidence if one in self._turns))
        others = [fact.fact_id for fact in self._store.facts.values() if fact.active and fact.fact_id not in left_out]
        others.sort(key=lambda one: (-len(asked & self._words[one]), one))
        ids = [*first, *others[: DEEP - len(first)]]
        return tuple(self._row(changed.get(one) or self._store.facts[one]) for one in ids)

    @staticmethod
    def _row(fact: Fact) -> Retrieved:
        return Retrieved(fact.fact_id, fact.content)

    def _rival(self, question: Question) -> tuple[Fact, Fact, str] | None:
        """The current fact, an active one that says the same with another value, and that value.

        Where the dataset knows the replaced value, the fact of its own turn is the other one, and the link between the
        two is undone; elsewhere it is written.
        """
        natural = self._natural_rival(question)
        if natural or question.metadata.get("stale_evidence"):
            return natural
        turns = list(question.evidence)
        self._rng.shuffle(turns)
        for turn_id in turns:
            for fact_id in self._store.carriers[turn_id]:
                current = self._store.facts[fact_id]
                found = self._swap(question, current, self._turns[turn_id], vague=False)
                if found and current.source_turn_ids[0] == turn_id:
                    rival, value = found
                    source = self._rng.choice([one for one in self._turns if one not in question.evidence])
                    opening = self._rng.choice(("", "", "Actually, ", "By the way: "))
                    speaker, colon, said = rival.content.partition(": ")
                    content = f"{speaker}: {opening}{said}" if colon and opening else rival.content
                    return current, Fact(f"rival-{fact_id}", content, source_turn_ids=(source,)), value
        return None

    def _natural_rival(self, question: Question) -> tuple[Fact, Fact, str] | None:
        stale = [
            one for turn in question.metadata.get("stale_evidence", ()) for one in self._store.carriers.get(turn, ())
        ]
        for fact in (self._store.facts[one] for one in self._carriers(question.evidence)):
            old = next((one for one in fact.supersedes if one in stale), None)
            if old:
                others = tuple(one for one in fact.supersedes if one != old)
                rival = replace(self._store.facts[old], status=FactStatus.ACTIVE)
                return replace(fact, supersedes=others), rival, rival.content.partition(": ")[2] or rival.content
        return None

    def _with(self, *changed: Fact) -> tuple[Fact, ...]:
        """The store with these facts in place of those of the same id, or added."""
        by_id = {**self._store.facts, **{fact.fact_id: fact for fact in changed}}
        return tuple(by_id.values())

    def _swap(self, question: Question, fact: Fact, turn: Turn, *, vague: bool) -> tuple[Fact, str] | None:
        """The fact with the gold's value replaced: by a vague word or by another value; None where it states none."""
        if question.abstention:
            return None
        for date in dates_in(question.gold):
            for told in dates_in(fact.content, turn.at):
                if date.relation(told) is not DateRelation.DISJOINT:
                    value = "recently" if vague else self._rng.choice(_OTHER_DATES)
                    return self._cut(fact, [told.span], value), value
        wanted = set(stems(question.gold)) - set(stems(question.text))
        spans = [match.span() for match in _WORD.finditer(fact.content) if self._is(match.group(), wanted)]
        if not spans:
            return None
        value = self._rng.choice(_VAGUE) if vague else self._value(question, fact)
        return self._cut(fact, spans, value), value

    @staticmethod
    def _is(word: str, wanted: set[str]) -> bool:
        return any(one in wanted for one in stems(word))

    @staticmethod
    def _cut(fact: Fact, spans: Sequence[tuple[int, int]], value: str) -> Fact:
        """The text with the value where the first span was; the other spans are taken out."""
        text = fact.content
        for number, (start, end) in reversed(list(enumerate(spans))):
            text = text[:start] + (value if number == 0 else "") + text[end:]
        return replace(fact, content=re.sub(r"\s{2,}", " ", text))

    def _value(self, question: Question, fact: Fact) -> str:
        """Another answer's words, about as many, none of which the fact or the question has."""
        taken = set(stems(f"{fact.content} {question.text} {question.gold}"))
        want = len(stems(question.gold))
        choices = self._rng.sample(self._donors, min(len(self._donors), 40))
        fitting = [one for one in choices if stems(one) and not set(stems(one)) & taken]
        best = min(fitting, key=lambda one: abs(len(stems(one)) - want), default="lilac zeppelins")
        return " ".join(best.split()[: max(2, want + 2)]).rstrip(".,;")

    def _mentions_gold(self, question: Question, fact_id: str) -> bool:
        return bool((set(stems(question.gold)) - set(stems(question.text))) & self._words[fact_id])

    def _other_gold(self, question: Question) -> str:
        taken = set(stems(question.gold))
        choices = self._rng.sample(self._donors, min(len(self._donors), 20))
        return next((one for one in choices if stems(one) and not set(stems(one)) & taken), "lilac zeppelins")


def without_provenance(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The same facts, not telling which turns they came from."""
    return tuple(replace(fact, source_turn_ids=()) for fact in facts)
