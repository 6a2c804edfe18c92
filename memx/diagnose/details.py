"""Which part of the answer an evidence turn holds, and whether a stored fact still holds it.

A fact from the right turn can have lost what is asked: "6:30 pm" became "in the evening". What is looked for is the
part of the gold answer that the turn itself states, in words or as a date relative to when it was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memx.diagnose.lexicon import Lexicon, Read, term
from memx.text.dates import dates_in
from memx.text.periods import DateRelation, DateValue
from memx.text.words import words

#: Weight of a date beside the words of a detail, in units of a rare word.
_DATE_WEIGHT = 6.0
#: A copy of a turn that holds less than this share of the detail was edited where it matters.
_EDITED = 0.7
#: Weight, in units of the case's rarest word, from which missing words are no everyday words.
_TELLING = 0.4
_STEPS = frozenset(map(term, words("last next this past previous coming ago")))
#: A fact that has this share of a turn's weighted terms is a copy of the turn, perhaps an edited one.
COPY = 0.7


@dataclass(frozen=True, slots=True)
class Detail:
    """The part of the gold answer that one turn states.

    Attributes:
        terms: words of the gold that stand in the turn and not in the question.
        focus: all words of question and gold that stand in the turn: what of it matters here.
        values: those of them that are numbers or names.
        dates: dates of the gold that the turn names.
        date_words: the turn's own words for them ("weekend", "friday").
        said: the turn's own text, read.
        asked: the question, read.
        at: when it was said, which relative dates are read against.
    """

    terms: frozenset[str]
    values: frozenset[str]
    dates: tuple[DateValue, ...]
    date_words: frozenset[str]
    focus: frozenset[str]
    said: Read
    asked: Read
    at: datetime | None

    @property
    def empty(self) -> bool:
        """True when the turn states nothing of the gold in words: the answer is inferred from it."""
        return not self.terms and not self.dates


@dataclass(frozen=True, slots=True)
class Held:
    """How much of a detail a text holds.

    Attributes:
        share: 0..1 of its weight; 1 for an empty detail.
        lost: the text has lost the detail beyond what a paraphrase explains.
        missing: the words of it that are missing, for display.
    """

    share: float
    lost: bool
    missing: tuple[str, ...]


def detail_of(
    turn_says: str, at: datetime | None, question: str, gold: str, lexicon: Lexicon, hint: str = ""
) -> Detail:
    """The part of ``gold`` that a turn states and the question does not already give.

    Args:
        hint: further words that tell what of the turn matters, such as the trap of a question that has no answer.
    """
    said, asked, answer = lexicon.read(turn_says), lexicon.read(question), lexicon.read(gold)
    spoken = dates_in(turn_says, at)
    dates = tuple(date for date in dates_in(gold) if any(meet(date, other) for other in spoken))
    of_dates = {term(word) for date in dates for word in words(date.text)}
    terms = (answer.terms & said.terms) - asked.terms - of_dates
    told = " ".join(other.text for other in spoken if any(meet(date, other) for date in dates))
    focus = (answer.terms | asked.terms | lexicon.read(hint).terms) & said.terms - lexicon.speakers
    values = terms & (said.values | answer.values)
    return Detail(terms, values, dates, lexicon.read(told).terms - _STEPS, focus, said, asked, at)


def held(detail: Detail, text: str, lexicon: Lexicon, said_at: datetime | None = None) -> Held:
    """How much of the detail a fact's text holds.

    A loss is what a paraphrase does not explain: the date is gone, or every number and name; of several words none is
    left; the only word is gone and is no everyday one, for which there would be a synonym; an edited copy of the turn
    misses a number, a name or a good part of the words.
    """
    found = lexicon.read(text)
    if detail.empty:
        return Held(1.0, False, ())
    missing = detail.terms - found.terms
    date_lost = bool(detail.dates) and not _names_date(detail, text, lexicon, said_at)
    whole = lexicon.weight(detail.terms) + (_DATE_WEIGHT if detail.dates else 0.0)
    gone = lexicon.weight(missing) + (_DATE_WEIGHT if date_lost else 0.0)
    share = 1.0 - gone / whole if whole else 1.0
    copy = overlap(found, detail.said, lexicon) >= COPY
    lost = (
        date_lost
        or (copy and (share < _EDITED or bool(detail.values & missing)))
        or (bool(detail.values) and detail.values <= missing)
        or (bool(missing) and missing == detail.terms and gone >= _TELLING * lexicon.rarest)
    )
    shown = sorted(missing) + (["; ".join(date.text for date in detail.dates)] if date_lost else [])
    return Held(share, lost, tuple(shown))


def _names_date(detail: Detail, text: str, lexicon: Lexicon, said_at: datetime | None) -> bool:
    """True when a text names a date of the detail, or has the turn's own words for it outside of other dates."""
    told = dates_in(text, detail.at or said_at)
    if any(meet(date, other) for date in detail.dates for other in told):
        return True
    if not detail.date_words or not detail.date_words <= lexicon.read(text).terms:
        return False
    for other in reversed(told):
        text = f"{text[: other.span[0]]} {text[other.span[1] :]}"
    return detail.date_words <= lexicon.read(text).terms


def overlap(text: Read, of: Read, lexicon: Lexicon) -> float:
    """The share of the second text's weighted terms that the first has, 0..1."""
    whole = lexicon.weight(of.terms)
    return lexicon.weight(of.terms & text.terms) / whole if whole else 0.0


def meet(one: DateValue, other: DateValue) -> bool:
    """True when two dates can mean the same time."""
    return one.relation(other) is not DateRelation.DISJOINT
