"""From which turns a text may come by its wording: weighted words that both have, against every other turn.

What counts is the *lead* over the best other turn more than the score itself: conversations come back to a matter, and
a fact about it shares words with each of its turns, but most with the one it was made from.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from memx.diagnose.lexicon import Lexicon, Read, term
from memx.model import Case
from memx.text.words import words

# Chosen on LoCoMo conversations 1-5 with their extracted facts; reported on 6-10 by benchmarks/diagnosis.py.
_PREVIOUS = 0.4  # weight of words that a text shares with the turn before the one it is compared with
_NEXT = 0.2  # the same for the turn after
_NOT_SUBJECT = 0.7  # factor when a text names the turn's speaker, but after somebody else
_OTHER_SPEAKER = 0.6  # factor when a text names speakers, and not the turn's
_WHOLE_TURN = 0.8  # share of a turn's words that make it a part of a longer text
_AS_GOOD_AS_TURN = 0.9  # score from which a text is a turn, and no sum of several
_ALL_OF_TEXT = 0.7  # share of a text's words that such a turn has at least
_LEAST_SCORE = 0.15
_LEAST_LEAD = -0.25
# Log-odds that a fact comes from a turn: logistic regression over all pairs of evidence turn and extracted fact.
_ODDS = -4.2
_ODDS_OF_SCORE = 6.0
_ODDS_OF_LEAD = 11.5
_SAME = 0.5  # lead of a turn that is the text word for word
#: Where one statement of a text ends and another begins: a sentence, or a clause with a subject of its own.
_STATEMENT = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:and|but|while|whereas)\s+(?=[A-Z])")
_STATEMENT_TERMS = 3
#: Words that tell of no matter by themselves: two texts that share only these have nothing to do with each other.
_WHEN = frozenset(map(term, words("last next this past ago today yesterday tomorrow day week weekend month year time")))


@dataclass(frozen=True, slots=True)
class Link:
    """A turn that a text may come from.

    Attributes:
        score: 0..1, the weighted words of the text that the turn explains; 1 for a turn word for word.
        lead: the score less that of the best other turn.
    """

    turn_id: str
    score: float
    lead: float

    @property
    def odds(self) -> float:
        """Log-odds that the text comes from the turn, whatever is asked."""
        return _ODDS + _ODDS_OF_SCORE * self.score + _ODDS_OF_LEAD * self.lead


class TurnLinks:
    """Links texts to the turns of one case; what it has linked it remembers.

    Args:
        reads: what each turn says, by turn id.
    """

    def __init__(self, case: Case, lexicon: Lexicon, reads: Mapping[str, Read]) -> None:
        self._lexicon = lexicon
        self._reads = reads
        turns = case.turns()
        self._session_of = case.session_of()
        self._speakers = {turn_id: lexicon.read(turn.speaker).terms for turn_id, turn in turns.items()}
        self.previous: dict[str, Read] = {}
        following: dict[str, Read] = {}
        for session in case.sessions:
            for before, after in pairwise(session.turns):
                self.previous[after.turn_id] = reads[before.turn_id]
                following[before.turn_id] = reads[after.turn_id]
        # Each word: the turns that have it, and how much that counts: less in the turn before or after.
        self._postings: dict[str, list[tuple[str, float]]] = defaultdict(list)
        # Each text that is a turn word for word, with or without the speaker's name.
        self._same: dict[str, list[str]] = defaultdict(list)
        for turn_id, read in reads.items():
            counted = dict.fromkeys(_terms(following.get(turn_id)), _NEXT)
            counted |= dict.fromkeys(_terms(self.previous.get(turn_id)), _PREVIOUS)
            counted |= dict.fromkeys(read.terms, 1.0)
            for one, factor in counted.items():
                self._postings[one].append((turn_id, factor))
            speaker = lexicon.read(turns[turn_id].speaker).plain
            for plain in {read.plain, f"{speaker} {read.plain}"} - {""}:
                self._same[plain].append(turn_id)
        self._weights = {turn_id: lexicon.weight(read.terms) for turn_id, read in reads.items()}
        self._known: dict[tuple[str | None, str], tuple[Link, ...]] = {}

    def of(self, text: str, session: str | None = None) -> tuple[Link, ...]:
        """The turns that a text may come from, one link each; of a text with several statements, those of each.

        Args:
            session: only turns of this session, where it is known.
        """
        key = session, text
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._linked(text, session))
        return found

    def alone(self, plain: str) -> bool:
        """True for the words of exactly one turn."""
        return len(self._same.get(plain, ())) == 1

    def _linked(self, text: str, session: str | None) -> Iterable[Link]:
        """The links of a text, of its lines, and of the statements of each, until a part is a turn."""
        found: dict[str, Link] = {}
        parts = [(text, self._subject(text))]
        while parts:
            part, subject = parts.pop()
            links = self._link(part, subject, session)
            for link in links:
                if link.turn_id not in found or link.odds > found[link.turn_id].odds:
                    found[link.turn_id] = link
            if any(link.score >= _AS_GOOD_AS_TURN and self._is_all(part, link.turn_id) for link in links):
                continue
            lines = [line for line in part.splitlines() if line.strip()]
            smaller = lines if len(lines) > 1 else statements(part)
            telling = [one for one in smaller if len(self._lexicon.read(one).terms) >= _STATEMENT_TERMS]
            parts += [(one, self._subject(one) or subject) for one in telling] if len(telling) > 1 else []
        return found.values()

    def _is_all(self, text: str, turn_id: str) -> bool:
        """True for a text that says little beside what the turn says."""
        told = self._lexicon.weight(self._lexicon.read(text).terms - self._lexicon.speakers)
        return _ALL_OF_TEXT * told <= self._weights[turn_id]

    def _link(self, text: str, subject: str | None, session: str | None) -> list[Link]:
        read = self._lexicon.read(text)
        same = [one for one in self._same.get(read.plain, ()) if not session or self._session_of[one] == session]
        if same:
            return [Link(turn_id, 1.0, _SAME) for turn_id in same]
        told = read.terms - self._lexicon.speakers
        whole = self._lexicon.weight(told)
        if not whole:
            return []
        own: dict[str, float] = defaultdict(float)
        context: dict[str, float] = defaultdict(float)
        for one in sorted(told):
            weight = self._lexicon.weight(frozenset({one}))
            for turn_id, factor in self._postings.get(one, ()):
                (own if factor == 1.0 else context)[turn_id] += factor * weight
        scores: dict[str, float] = {}
        for turn_id, weight in own.items():
            if session and self._session_of[turn_id] != session:
                continue
            of_text = min(1.0, (weight + context.get(turn_id, 0.0)) / whole)
            of_turn = min(1.0, weight / self._weights[turn_id])
            score = of_text**0.8 * of_turn**0.2
            if of_turn >= _WHOLE_TURN and len(self._reads[turn_id].terms) > 2:
                score = max(score, of_turn)
            if subject and subject not in self._speakers[turn_id] and read.plain != self._reads[turn_id].plain:
                score *= _NOT_SUBJECT if self._speakers[turn_id] & read.terms else _OTHER_SPEAKER
            scores[turn_id] = score
        best, second = [*sorted(scores.values(), reverse=True), 0.0, 0.0][:2]
        links = [Link(turn_id, score, score - (second if score == best else best)) for turn_id, score in scores.items()]
        return [
            link
            for link in links
            if link.score >= _LEAST_SCORE
            and link.lead >= _LEAST_LEAD
            and not told & self._reads[link.turn_id].terms <= _WHEN
        ]

    def _subject(self, text: str) -> str | None:
        """The speaker that a text names first."""
        return next((one for one in map(term, words(text)) if one in self._lexicon.speakers), None)


def statements(text: str) -> list[str]:
    """The statements of a text: its sentences, and clauses with a subject of their own."""
    return [part for part in _STATEMENT.split(text) if part.strip()]


def _terms(read: Read | None) -> frozenset[str]:
    return read.terms if read else frozenset()
