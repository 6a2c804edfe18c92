"""Another word in the place of a wanted one: "almond milk" for "coconut milk", "local temple" for "nearby church"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from memx.text.coverage import Token, alike, content, full_weight

_SHORT = 15  # content words up to which a text is one statement; a longer one may say both in different places
# "A thriller set in ...": what a preposition follows is seldom one noun phrase with the word before it.
_GOES_ON = re.compile(r"\s(?:in|on|at|with|by|for|of|to|from)\b")


def rival_word(question: str, phrase: str, text: str) -> str:
    """``"almond for coconut"``, where a short text puts another word beside a word of the phrase; else empty.

    Of two neighbouring words of the phrase the text has one, and in the place of the other, wherever it has it, a word
    that is neither of the phrase nor of the question. Words that say little are no rivals and have none.
    """
    wanted, told, asked = content(phrase), content(text), content(question)
    if len(told) > _SHORT:
        return ""
    for one, other in pairwise(wanted):
        if not _beside(phrase, one, other) or not (one.text.isalpha() and other.text.isalpha()):
            continue
        ones, others = _places(one, told), _places(other, told)
        if bool(ones) == bool(others):
            continue
        missing, step = (other, 1) if ones else (one, -1)
        if not full_weight(missing, question) or (missing is other and _GOES_ON.match(phrase, other.span[1])):
            continue
        instead = [_neighbour(text, told, place, step) for place in ones or others]
        known = (*wanted, *asked)
        rivals = [
            token
            for token in instead
            if token is not None
            and token.text.isalpha()
            and full_weight(token, question)
            and not any(alike(token, mine) for mine in known)
        ]
        if len(rivals) == len(instead):
            return f"{rivals[0].text} for {missing.text}"
    return ""


def _places(wanted: Token, told: Sequence[Token]) -> list[int]:
    return [place for place, token in enumerate(told) if alike(wanted, token)]


def _neighbour(text: str, told: Sequence[Token], place: int, step: int) -> Token | None:
    if not 0 <= place + step < len(told):
        return None
    first, second = sorted((place, place + step))
    return told[place + step] if _beside(text, told[first], told[second]) else None


def _beside(text: str, first: Token, second: Token) -> bool:
    """True when nothing but a blank, a hyphen or "of" stands between the two."""
    return text[first.span[1] : second.span[0]] in (" ", "-", " of ", " of a ", " of the ")
