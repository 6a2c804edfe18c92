"""List items of an answer: "A, B and C", bullets and numbered lines, quoted titles."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"[\"“”]([^\"“”\n]{1,120})[\"“”]|(?<!\w)['‘]([^'‘’\n]{2,80})['’](?!\w)")
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+(.+)$", re.MULTILINE)
_SEPARATOR = re.compile(
    r"""\s*(?:
        ,\s*(?:and|or|as\ well\ as|plus|then)\s+ | ;\s*(?:and\s+)? | ,(?!\d{3}\b)\s*
      | \s+(?:and|&|plus|as\ well\ as|along\ with)\s+ | \n+
    )""",
    re.VERBOSE,
)
_OPENERS, _CLOSERS = "([{“", ")]}”"


def quoted(text: str) -> tuple[str, ...]:
    """What stands in quotation marks: titles, slogans. Apostrophes inside words are no quotation marks."""
    found = ((first or second).strip(" ,.;") for first, second in _QUOTED.findall(text))
    return tuple(title for title in found if any(char.isalnum() for char in title))


def items(text: str) -> tuple[str, ...]:
    """The items of a list, or the whole text as one item.

    Bullets win; else the text is cut at commas, semicolons and "and", never inside brackets or quotation marks.
    """
    bullets = [match.strip(" .,;") for match in _BULLET.findall(text)]
    if len(bullets) >= 2:
        return tuple(bullet for bullet in bullets if bullet)
    return tuple(text[slice(*span)] for span in item_spans(text))


def item_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where the items of a running list stand in ``text``, outer blanks and full stops left out."""
    guarded = _guarded(text)
    spans, start = [], 0
    for match in _SEPARATOR.finditer(text):
        if not any(guarded[match.start() : match.end()]):
            spans.append((start, match.start()))
            start = match.end()
    spans.append((start, len(text)))
    return tuple(span for span in (_stripped(text, *span) for span in spans) if span[0] < span[1])


def _guarded(text: str) -> list[bool]:
    inside = [False] * len(text)
    for match in _QUOTED.finditer(text):
        inside[match.start() + 1 : match.end() - 1] = [True] * (match.end() - match.start() - 2)
    depth = 0
    for index, char in enumerate(text):
        if char in _OPENERS:
            depth += 1
        elif char in _CLOSERS:
            depth = max(0, depth - 1)
        if depth:
            inside[index] = True
    return inside


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in " \t\n.,;":
        start += 1
    while start < end and text[end - 1] in " \t\n.,;":
        end -= 1
    return start, end
