"""What the judged answer says, as far as a diagnosis needs it: does it hold the gold, and whose value does it use."""

from __future__ import annotations

from dataclasses import dataclass

from memx.diagnose.details import meet
from memx.diagnose.lexicon import Lexicon
from memx.model import Candidate, CandidateSource, Question
from memx.text.dates import dates_in
from memx.text.lists import items
from memx.text.polarity import is_refusal, negated

_CONTRADICTION = ("contradict", "conflicting", "inconsisten")


@dataclass(frozen=True, slots=True)
class Answer:
    """The candidate, read against one question.

    Attributes:
        holds_gold: it contains every item of the gold and does not deny it.
        is_retrieved: it is the retrieved text itself, which shows no use of anything.
        gold_states_contradiction: the right answer is to point out that two statements contradict each other.
    """

    text: str
    holds_gold: bool
    is_retrieved: bool
    gold_states_contradiction: bool
    lexicon: Lexicon

    def takes(self, value_of: str, not_of: str) -> bool:
        """True when the answer uses what the first text says and the second does not."""
        if not self.text or self.is_retrieved or is_refusal(self.text):
            return False
        said = self.lexicon.read(self.text).terms
        own, other = self.lexicon.read(value_of).terms, self.lexicon.read(not_of).terms
        speakers = self.lexicon.speakers
        mine, theirs = (own - other - speakers) & said, (other - own - speakers) & said
        return bool(mine) and self.lexicon.weight(mine) > self.lexicon.weight(theirs)


def read_answer(question: Question, gold: str, candidate: Candidate | None, lexicon: Lexicon) -> Answer:
    """Read a candidate; None is an answer that says nothing."""
    text = candidate.text if candidate else ""
    retrieved = candidate is not None and candidate.source is CandidateSource.RETRIEVED
    contradiction = any(word in gold.lower() for word in _CONTRADICTION)
    if question.abstention:
        holds = bool(text) and not retrieved and is_refusal(text)
    elif contradiction:
        holds = not retrieved and any(word in text.lower() for word in _CONTRADICTION)
    else:
        holds = bool(text) and bool(gold.strip()) and _contains(text, gold, question, lexicon)
    return Answer(text, holds, retrieved, contradiction, lexicon)


def _contains(text: str, gold: str, question: Question, lexicon: Lexicon) -> bool:
    said = lexicon.read(text)
    words_of_gold = lexicon.read(gold)
    if not words_of_gold.plain:
        return False
    if f" {words_of_gold.plain} " in f" {said.plain} ":
        start = text.lower().find(gold.strip().lower())
        return start < 0 or not negated(text, (start, start + len(gold.strip())))
    dates = dates_in(gold)
    if dates:
        told = dates_in(text, question.asked_at)
        return all(any(meet(one, other) and other.days <= 2 * one.days + 2 for other in told) for one in dates)
    asked = lexicon.read(question.text).terms
    wanted = [lexicon.read(item).terms - asked for item in items(gold)]
    wanted = [terms for terms in wanted if terms]
    return bool(wanted) and all(terms <= said.terms for terms in wanted) and said.negated == words_of_gold.negated
