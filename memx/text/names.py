"""Proper names read out of text by how they are written: runs of capitalised words; no model, no gazetteer.

The first word of a sentence is capitalised anyway, so alone it counts as a name only when the text gives another sign:
it stands capitalised inside a sentence too, it carries a possessive, or the caller names it as known (a speaker).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from memx.text.words import stop_words, words

_CAPITAL = r"(?:(?:[A-Z]\.){2,}|[^\W\d_a-z][\w&]*(?:[-'’.](?=\w)\w+)*)"
_LINK = r"(?:of|the|de|la|van|von|and|del|di|du|for|in)"  # small words inside a name: "Lord of the Rings"
_RUN = re.compile(
    rf"(?<!\w){_CAPITAL}(?:(?:[ \u00a0]|\s?&\s?|-)(?:{_LINK}[ \u00a0]){{0,2}}{_CAPITAL}"
    r"|[ \u00a0]\d{1,4}(?![\w:/]|[.,]\d))*"
)
_SENTENCE_START = re.compile(r"(?:^|(?<!Dr)(?<!Mr)(?<!Mrs)(?<!Ms)(?<!St)[.!?:;\n•*\-–—\"“(\[])[\s\"'“‘(\[]*$")
_POSSESSIVE = re.compile(r"['’]s?$")
# Capitalised in any place, but no names: pronouns, days and months (dates read those), interjections, titles.
_NO_NAMES = frozenset(
    words(
        "i i'm i'll i've i'd monday tuesday wednesday thursday friday saturday sunday january february march april may"
        " june july august september october november december ok okay hey hi hello wow yeah yes no oh thanks thank mr"
        " mrs ms dr congrats sure well lol omg haha ah aw aww ugh yay cool bye please sorry"
    )
)


@dataclass(frozen=True, slots=True)
class NameValue:
    """A proper name in a text; ``span`` covers it without a possessive ending."""

    text: str
    span: tuple[int, int]

    @property
    def key(self) -> str:
        """The form by which two mentions compare."""
        return " ".join(self.text.replace("’", "'").casefold().split())


def names_in(text: str, known: Collection[str] = ()) -> tuple[NameValue, ...]:
    """The proper names of a text, in the order they stand.

    Args:
        known: names that count even where only a sentence start capitalises them, such as the speakers'.
    """
    known_words = {word.casefold() for name in known for word in name.split()}
    stop = stop_words()
    sure: list[NameValue] = []
    doubtful: list[NameValue] = []
    for match in _RUN.finditer(text):
        first = match.group().split(maxsplit=1)[0]
        at_start = _SENTENCE_START.search(text[max(0, match.start() - 6) : match.start()] or "") is not None
        start = match.start()
        if at_start and first != match.group() and _plain(first, stop) and first.casefold() not in known_words:
            start = match.start() + len(first) + 1  # "My Fair Lady" keeps its head only inside a sentence
        start, end = _trimmed(text, start, match.end(), stop)
        if start >= end:
            continue
        possessive = _POSSESSIVE.search(text[start:end])
        value_end = start + possessive.start() if possessive else end
        value = NameValue(text[start:value_end], (start, value_end))
        if not value.text or not any(char.isalpha() for char in value.text):
            continue
        alone = " " not in value.text and start == match.start()
        shout = value.text.isupper() and len(value.text) > 1
        unsure = at_start and alone and not possessive and not shout and value.text.casefold() not in known_words
        (doubtful if unsure else sure).append(value)
    keys = {word for value in sure for word in value.key.split()}
    found = sure + [value for value in doubtful if value.key in keys]
    return tuple(sorted(found, key=lambda value: value.span))


def _plain(word: str, stop: frozenset[str]) -> bool:
    word = word.replace("’", "'").casefold()
    return word in stop or word in _NO_NAMES or word.removesuffix("'s") in stop


def _trimmed(text: str, start: int, end: int, stop: frozenset[str]) -> tuple[int, int]:
    """The run without stop words and no-names at its two ends."""
    parts = [(match.start() + start, match.end() + start) for match in re.finditer(r"\S+", text[start:end])]
    while parts and _plain(text[slice(*parts[0])], stop):
        parts.pop(0)
    while parts and _plain(text[slice(*parts[-1])], stop):
        parts.pop()
    return (parts[0][0], parts[-1][1]) if parts else (end, end)
