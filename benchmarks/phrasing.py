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


def reworded(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """Everyday words are replaced by others of the same meaning, verbs are in another tense, articles are dropped."""
    return [Sentence(_WORD.sub(_other_word, fact.text), fact.turn_ids) for fact in facts]


def noted(facts: Sequence[Sentence], case: Case) -> list[Sentence]:
    """The turns word for word, six in one note."""
    notes = []
    for session in case.sessions:
        for at in range(0, len(session.turns), 6):
            part = session.turns[at : at + 6]
            text = "\n".join(f"{turn.speaker}: {turn.content}" for turn in part)
            notes.append(Sentence(text, tuple(turn.turn_id for turn in part)))
    return notes


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


_WORD = re.compile(r"\b(?:the|an?)\s+(?=\w)|\b\w+\b", re.IGNORECASE)
# Word by word: another of the same meaning, or the same verb in another tense.
_PAIRS = """
    is=was are=were has=had enjoys=likes enjoyed=liked loves=adores loved=adored likes=enjoys started=began
    starting=beginning began=started plans=intends planning=intending wants=wishes wanted=wished hopes=wishes
    hoping=wishing believes=thinks believed=thought thinks=believes feels=felt finds=found found=discovered
    received=got got=received bought=purchased purchased=bought made=created makes=creates created=made
    visited=toured attended=joined joined=attended recently=lately enjoying=liking helps=assists help=assist
    helped=assisted helping=assisting appreciates=valued appreciated=valued values=appreciated works=worked
    working=employed gives=gave gave=provided provides=gives shares=shared mentioned=said mentions=says
    expressed=voiced expresses=voices expressing=voicing encourages=urges encouraged=urged supports=backs
    supported=backed support=backing kids=children children=kids mom=mother dad=father home=house house=home
    job=position trip=journey journey=trip big=large large=big small=little little=small happy=glad
    excited=thrilled grateful=thankful thankful=grateful proud=pleased beautiful=lovely amazing=incredible
    incredible=amazing great=wonderful important=essential difficult=hard hard=tough challenging=demanding
    friends=buddies friend=buddy picture=photo photo=picture pictures=photos photos=pictures movie=film
    movies=films film=movie store=shop shop=store car=vehicle goals=aims goal=aim watched=saw watching=seeing
    saw=watched took=takes went=goes learned=learnt learning=studying taking=took participated=engaged
    discusses=talks described=told describes=tells inspired=motivated inspires=motivates inspiring=motivating
    experience=adventure experiences=adventures through=by during=over while=as considering=weighing
    looking=eager forward=ahead uses=used using=with reminds=recalls remind=recall reminded=recalled
    gifted=presented gift=present tried=attempted trying=attempting improve=better nervous=anxious
    worried=concerned sad=unhappy fun=enjoyable special=unique various=several pet=animal pets=animals puppy=pup
    ended=finished finished=completed completed=finished recommends=suggests recommended=suggested
    suggests=recommends suggested=recommended relax=unwind relaxing=unwinding family=relatives
"""
_REWORDED = dict(pair.split("=") for pair in _PAIRS.split())


def _other_word(match: re.Match[str]) -> str:
    word = match.group()
    return "" if word.lower().rstrip() in ("a", "an", "the") else _REWORDED.get(word, word)


PHRASINGS: dict[str, Callable[[Sequence[Sentence], Case], list[Sentence]]] = {
    "unnamed": unnamed,
    "merged": merged,
    "chained": chained,
    "dated": dated,
    "terse": terse,
    "spoken": spoken,
    "noted": noted,
    "reworded": reworded,
}
