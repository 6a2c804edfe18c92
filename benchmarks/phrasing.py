"""Other ways in which memory systems word what they extract, made from LoCoMo's own extracted facts by rule.

The stores of ``benchmarks.diagnosis --phrasing NAME`` hold these in place of the dataset's sentences, so that a
diagnosis is measured on wordings that nothing was chosen on.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memx.adapters.datasets.locomo import Locomo
from memx.model import Case, Turn
from memx.text.dates import dates_in

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """An extracted fact, with the turns it rests on."""

    text: str
    turn_ids: tuple[str, ...]


class Rephrased(Locomo):
    """LoCoMo with its extracted facts in other words; set ``phrasing`` after loading."""

    phrasing = ""

    def observations(self, case_id: str) -> tuple[Any, ...]:
        """The extracted facts of a case in other words, or as they are without a phrasing."""
        facts = super().observations(case_id)
        if not self.phrasing:
            return facts
        case = next(case for case in self.cases() if case.case_id == case_id)
        return tuple(PHRASINGS[self.phrasing]([Sentence(one.text, one.turn_ids) for one in facts], case))


def unnamed(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """No speaker is named: "They", "their"."""
    names = "|".join(sorted({turn.speaker for turn in case.turns().values()}))
    their, they = re.compile(rf"\b(?:{names})['’]s\b"), re.compile(rf"\b(?:{names})\b")
    return [Sentence(they.sub("they", their.sub("their", fact.text)), fact.turn_ids) for fact in facts]


def merged(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """Three facts in one, a sentence each, as a running summary."""
    return [_joined(facts[at : at + 3], ". ") for at in range(0, len(facts), 3)]


def chained(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """Two facts in one sentence."""
    return [_joined(facts[at : at + 2], ", and ") for at in range(0, len(facts), 2)]


def dated(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """Relative dates are resolved: "last Friday" is "on 5 May 2023"."""
    turns = case.turns()
    return [Sentence(_resolved(fact.text, turns[fact.turn_ids[0]]), fact.turn_ids) for fact in facts]


def terse(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """A fifth of the words is left out, at random but the same in every run."""
    rng = random.Random(7)
    return [
        Sentence(" ".join(word for word in fact.text.split() if rng.random() > 0.2) or fact.text, fact.turn_ids)
        for fact in facts
    ]


def spoken(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """Each turn as itself, in the third person: "I" is the speaker, "my" is "their"."""
    return [Sentence(_third_person(turn), (turn.turn_id,)) for turn in case.turns().values()]


def _joined(group: Sequence[Sentence], joint: str) -> Sentence:
    text = joint.join(fact.text.rstrip(" .") for fact in group) + "."
    return Sentence(text, tuple(dict.fromkeys(one for fact in group for one in fact.turn_ids)))


def _resolved(text: str, turn: Turn) -> str:
    for date in reversed(dates_in(text, turn.at)):
        if date.relative:
            when = f"on {date.start:%-d %B %Y}" if date.days == 1 else f"in {date.start:%B %Y}"
            text = text[: date.span[0]] + when + text[date.span[1] :]
    return text


_PERSON = {"i'm": "{} is", "i've": "{} has", "i'll": "{} will", "i": "{}", "me": "{}", "my": "{}'s", "we": "they",
           "our": "their", "us": "them", "you": "the other", "your": "the other's"}  # fmt: skip


def _third_person(turn: Turn) -> str:
    said = re.split(r"(?<=[.!?])\s+", turn.content)
    told = [sentence for sentence in said if len(sentence.split()) > 3] or said
    words = [_PERSON.get(word.lower().replace("’", "'"), word).format(turn.speaker) for word in " ".join(told).split()]
    return _SPACE.sub(" ", f"{turn.speaker} says that {' '.join(words)}")


PHRASINGS: dict[str, Callable[[Sequence[Sentence], Case], list[Sentence]]] = {
    "unnamed": unnamed,
    "merged": merged,
    "chained": chained,
    "dated": dated,
    "terse": terse,
    "spoken": spoken,
}
