"""How much of a phrase another text says: its content words by stem, spelling and synonym, within two sentences.

Words that the question already holds count a quarter, words that say little ("thing", "great") less than half: an
answer that only repeats the question, or only agrees in tone, must not pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import mul
from typing import NamedTuple

from memx.text.lists import item_spans, quoted
from memx.text.polarity import may_negate, negated
from memx.text.sentences import sentence_spans
from memx.text.synonyms import groups_of, key_of, phrase_at, phrase_starts
from memx.text.words import WORD, stem, stop_words, words

ASKED = 0.25  # weight of a word that stands in the question
LIGHT = 0.4  # weight of a word that says little
_LONG = 60  # content words from which a text is long: more than anyone needs to answer a question
_SPELLING = 85  # rapidfuzz ratio from which two words of five letters or more are one, misspelled: one edit in seven

_HIRAGANA = re.compile(r"[\u3040-\u309f]+")  # particles and endings
_NEGATION = re.compile(r"\b(?:not|no|never|none|without|nothing|nobody)\b|n['’]t\b", re.IGNORECASE)
_LIGHT_WORDS = frozenset(
    map(
        stem,
        words(
            "something someone anything thing stuff way lot kind sort type bit make get go take give put come want feel"
            " really very great good nice amazing awesome new old much many also one time day people person various"
            " different several other another use try keep able would could may might always since like look"
            " got gotten went gone made took taken gave given came felt tried kept became become seem seems"
        ),
    )
)


class Token(NamedTuple):
    """A content word, or a phrase that stands for one: ``parts`` are the stems of its own words."""

    text: str
    key: str
    span: tuple[int, int]
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a phrase was found.

    Attributes:
        share: 0..1, mean over the items of a list; of one item the weight of its words that were found.
        weighty: how many words of the phrase carry full weight.
        listed: the phrase is a list of short items.
        spans: where in the other text the found words stand.
    """

    share: float
    found: tuple[str, ...]
    missing: tuple[str, ...]
    weighty: int
    spans: tuple[tuple[int, int], ...]
    listed: bool = False


@lru_cache(maxsize=16_384)
def content(text: str) -> tuple[Token, ...]:
    """The content words of a text in order; known phrases as one word, in place of their own."""
    stop, starts = stop_words(), phrase_starts()
    matches = list(WORD.finditer(text))
    if not text.isascii():
        matches = [match for match in matches if not _HIRAGANA.fullmatch(match.group())] or matches
    told = [match.group().lower().replace("’", "'").removesuffix("'s") for match in matches]
    found, index = [], 0
    while index < len(told):
        word, start = told[index], matches[index].start()
        phrase = phrase_at(told, index) if word in starts else ()
        if phrase:
            end = matches[index + len(phrase) - 1].end()
            parts = tuple(stem(part) for part in phrase if part not in stop)
            found.append(Token(text[start:end], key_of(phrase), (start, end), parts))
        elif word not in stop:
            key = stem(word)
            found.append(Token(matches[index].group(), key, matches[index].span(), (key,)))
        index += len(phrase) or 1
    return tuple(found)


def stems_of(tokens: Iterable[Token]) -> frozenset[str]:
    """All stems of the tokens, those inside phrases too."""
    return frozenset(part for token in tokens for part in (token.key, *token.parts))


def denies(text: str) -> bool:
    """True when a negation stands anywhere in the text."""
    return _NEGATION.search(text) is not None


def cover(question: str, phrase: str, text: str) -> Coverage:
    """How much of ``phrase`` stands in ``text``; each item of a list within two neighbouring sentences of it."""
    asked = stems_of(content(question))
    wanted = content(phrase)
    if not wanted:
        held = words(phrase) == words(text) or phrase.strip(".'\" ").lower() in map(str.lower, quoted(text))
        return Coverage(float(held), (phrase,) * held, (phrase,) * (not held), 1, ())
    said = content(text)
    hits = _names_apart(phrase, wanted, text, _hits(wanted, said))
    if may_negate(text) and not denies(phrase) and not denies(question):
        hits = [[token for token in hit if not negated(text, token.span)] for hit in hits]
    windows = _windows(text)
    if len(said) > _LONG:
        windows = _on_topic(windows, said, question)
    shares: list[float] = []
    sizes: list[float] = []
    found: list[str] = []
    missing: list[str] = []
    spans: list[tuple[int, int]] = []
    longest = 0
    for start, end in item_spans(phrase):
        item = [(token, hit) for token, hit in zip(wanted, hits, strict=True) if start <= token.span[0] < end]
        if not item:
            continue
        longest = max(longest, sum(len(token.key) > 1 for token, _ in item))
        weights = [_weight(token, asked) for token, _ in item]
        best = 0.0
        chosen: list[Token | None] = [None] * len(item)
        for low, high in windows:
            inside = [next((token for token in hit if low <= token.span[0] < high), None) for _, hit in item]
            share = sum(weight for weight, token in zip(weights, inside, strict=True) if token) / sum(weights)
            if share > best:
                best, chosen = share, inside
        shares.append(best)
        sizes.append(sum(weights))
        for (token, _), match in zip(item, chosen, strict=True):
            (found if match else missing).append(token.text)
            if match:
                spans.append(match.span)
    listed = len(shares) > 1 and longest <= 3
    if listed:  # of a list, an item is said or not
        shares, sizes = [share if share >= 0.5 else 0.0 for share in shares], [1.0] * len(shares)
    weighty = sum(_weight(token, asked) == 1.0 for token in wanted)
    share = sum(map(mul, shares, sizes)) / sum(sizes)
    return Coverage(share, tuple(found), tuple(missing), weighty, tuple(spans), listed)


def alike(one: Token, other: Token) -> bool:
    """True when the two words say the same: one stem, one group of synonyms, or one word misspelled."""
    return one.key == other.key or bool(groups_of(one.key) & groups_of(other.key)) or same_word(one.key, other.key)


def _names_apart(phrase: str, wanted: tuple[Token, ...], text: str, hits: list[list[Token]]) -> list[list[Token]]:
    """A name of several words ("Good Sports") is said by its words in capitals, or by all of them together."""
    kept, start = list(hits), 0
    while start < len(wanted):
        end = start + 1
        while (
            end < len(wanted)
            and wanted[start].text[0].isupper()
            and wanted[end].text[0].isupper()
            and not phrase[wanted[end - 1].span[1] : wanted[end].span[0]].strip(" .'")
        ):
            end += 1
        if end - start > 1 and not all(hits[start:end]):
            for index in range(start, end):
                kept[index] = [token for token in hits[index] if token.text[0].isupper()]
        start = end
    return kept


def weights(tokens: Iterable[Token], question: str) -> list[float]:
    """How much each word says, in 0..1: less where the question holds it, or where it says little by itself."""
    asked = stems_of(content(question))
    return [_weight(token, asked) for token in tokens]


def full_weight(token: Token, question: str) -> bool:
    """True for a word that says something, and that the question does not already hold."""
    return _weight(token, stems_of(content(question))) == 1.0


def _weight(token: Token, asked: frozenset[str]) -> float:
    if len(token.key) == 1 and token.key.isalpha():
        return ASKED  # an initial: "J. K. Rowling" is Rowling
    if token.key in asked or (token.parts and all(part in asked for part in token.parts)):
        return ASKED
    return LIGHT if token.key in _LIGHT_WORDS else 1.0


def _hits(wanted: tuple[Token, ...], said: tuple[Token, ...]) -> list[list[Token]]:
    """For each wanted word the words of the other text that say it."""
    by_stem: dict[str, list[Token]] = {}
    by_group: dict[int, list[Token]] = {}
    groups = frozenset().union(*(groups_of(token.key) for token in wanted))
    for token in said:
        for part in {token.key, *token.parts}:
            by_stem.setdefault(part, []).append(token)
            for group in groups_of(part) & groups:
                by_group.setdefault(group, []).append(token)
    found = []
    for token in wanted:
        hit = list(by_stem.get(token.key, ()))
        for group in groups_of(token.key):
            hit += by_group.get(group, ())
        if not hit and len(token.parts) > 1 and all(part in by_stem for part in token.parts):
            hit = by_stem[token.parts[0]]
        if not hit:
            key = token.key
            hit = [
                other
                for part, others in by_stem.items()
                if (part[0] == key[0] or part.endswith(key) or key.endswith(part)) and same_word(key, part)
                for other in others
            ]
        found.append(hit)
    return found


@lru_cache(maxsize=200_000)
def same_word(one: str, other: str) -> bool:
    """True for two spellings, or two forms, of one word: "mentoring", "metoring"; "authentic", "authenticity"."""
    short, long = sorted((one, other), key=len)
    if len(short) < 4 or not (one.isalpha() and other.isalpha()):
        return False
    if len(long) > len(short) and _glued(long, short):
        return True
    if len(short) < 5 or one[0] != other[0]:
        return False
    if long.startswith(short[: max(5, len(short) - 1)]) and len(long) - len(short) <= 4:
        return True
    from rapidfuzz.fuzz import ratio

    return ratio(one, other) >= _SPELLING


def _glued(long: str, short: str) -> bool:
    """True when a missing space glued a stop word to the short word ("onwalks")."""
    rest = long.removesuffix(short) if long.endswith(short) else long.removeprefix(short)
    return rest != long and len(rest) > 1 and rest in stop_words()


def is_long(text: str) -> bool:
    """True for a text that says more than anyone needs to answer a question."""
    return len(content(text)) > _LONG


def on_topic(question: str, text: str) -> str:
    """Of a long text the sentences that speak of what was asked, each with its neighbours; a short one whole."""
    if not is_long(text):
        return text
    kept = _on_topic(list(sentence_spans(text)), content(text), question)
    spans = sentence_spans(text)
    chosen = {near for i, span in enumerate(spans) if span in kept for near in (i - 1, i, i + 1)}
    return "".join(text[start:end] for i, (start, end) in enumerate(spans) if i in chosen)


def _on_topic(windows: list[tuple[int, int]], said: tuple[Token, ...], question: str) -> list[tuple[int, int]]:
    """Of a long text the windows that speak of what was asked, names left out: they are called out anywhere."""
    about = stems_of(token for token in content(question) if not token.text[0].isupper())
    if not about:
        return windows
    marks = [token.span[0] for token in said if token.key in about or any(part in about for part in token.parts)]
    return [(low, high) for low, high in windows if any(low <= mark < high for mark in marks)]


def _windows(text: str) -> list[tuple[int, int]]:
    spans = sentence_spans(text)
    if len(spans) <= 2:
        return [(0, len(text))]
    return [(first[0], second[1]) for first, second in pairwise(spans)]
