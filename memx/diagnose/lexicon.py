"""The words of one conversation: which are rare, which are values (names, numbers), and texts read once into both.

Weights come from its turns alone, so that what a store holds can never change how a text is weighed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from memx.model import Turn
from memx.text.words import stem, stop_words, words

_CAPITAL = re.compile(r"\b[A-Z][\w'’]*")
_SMALL = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_SMALL)}
_NUMBER_WORDS |= {word: str(10 * tens) for tens, word in enumerate(words("thirty forty fifty sixty seventy eighty"), 3)}
_NUMBER_WORDS |= {"twice": "2", "ninety": "90", "hundred": "100"}
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_NEGATORS = {"not", "never", "without", "cannot"}  # "no" opens too many phrases that deny nothing


@dataclass(frozen=True, slots=True)
class Read:
    """One text, read for comparison.

    Attributes:
        plain: its words in order, one space between: for "does this text contain that one".
        terms: stems without stop words, number words as digits.
        values: the terms that are numbers or names: what a paraphrase keeps as it is.
        negated: the text denies something.
    """

    plain: str
    terms: frozenset[str]
    values: frozenset[str]
    negated: bool


class Lexicon:
    """Word weights and names of one conversation, and a cache of texts read by them.

    Args:
        turns: what was said.
        more: further texts that show which words are written in lower case, so are no names.
    """

    def __init__(self, turns: Iterable[Turn], more: Iterable[str] = ()) -> None:
        turns = list(turns)
        self._lower: set[str] = set()
        frequency: Counter[str] = Counter()
        for text in more:
            self._lower.update(words(_CAPITAL.sub(" ", text)))
        for turn in turns:
            text = turn_text(turn)
            capital = {found.lower() for found in _CAPITAL.findall(text)}
            mine = words(text)
            self._lower.update(word for word in mine if word not in capital)
            frequency.update({term(word) for word in mine})
        self._weight = {word: math.log((len(turns) + 1) / (count + 0.5)) for word, count in frequency.items()}
        self.rarest = math.log((len(turns) + 1) / 0.5)
        self.speakers = frozenset(term(word) for turn in turns for word in words(turn.speaker))
        self._cache: dict[str, Read] = {}

    def read(self, text: str) -> Read:
        """The text as words, terms and values; read once."""
        found = self._cache.get(text)
        if found is None:
            found = self._cache[text] = self._read(text)
        return found

    def weight(self, terms: frozenset[str]) -> float:
        """How much these terms say: the sum of their inverse document frequencies over the case's turns."""
        return sum(self._weight.get(one, self.rarest) for one in terms)

    def _read(self, text: str) -> Read:
        mine, stop = words(text), stop_words()
        kept = [word for word in mine if word not in stop or word in _NUMBER_WORDS]
        names = {found.lower().replace("’", "'") for found in _CAPITAL.findall(text)} - self._lower - stop
        values = {term(word) for word in kept if word[0].isdigit() or word in _NUMBER_WORDS or word in names}
        negated = any(word in _NEGATORS or word.endswith("n't") for word in mine)
        return Read(" ".join(mine), frozenset(map(term, kept)), frozenset(values), negated)


def term(word: str) -> str:
    """The form in which two spellings of one word meet: its stem, or the digits of a number."""
    if word[0].isdigit():
        ordinal = _ORDINAL.fullmatch(word)
        return ordinal[1] if ordinal else word.replace(",", "")
    return _NUMBER_WORDS.get(word) or stem(word)


def turn_text(turn: Turn) -> str:
    """What a turn says, the caption of a shared image included."""
    caption = turn.metadata.get("caption")
    if isinstance(caption, str) and caption and caption not in turn.content:
        return f"{turn.content} [image: {caption}]"
    return turn.content
