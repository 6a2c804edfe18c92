"""Long texts in pieces that an embedding model reads whole and a person reads at a glance."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Characters of a piece: some 250 tokens of English.
MOST = 1_000
_PARAGRAPH = re.compile(r"\n\s*\n")
_LINE = re.compile(r"\n")


def pieces(text: str, most: int = MOST) -> Iterator[str]:
    """The text in pieces of at most ``most`` characters, broken between paragraphs, else lines, else words."""
    yield from _packed(text, most, (_PARAGRAPH, "\n\n"), (_LINE, "\n"), (re.compile(r"\s+"), " "))


def _packed(text: str, most: int, *breaks: tuple[re.Pattern[str], str]) -> Iterator[str]:
    text = text.strip("\n").rstrip()
    if len(text) <= most:
        if text.strip():
            yield text
        return
    if not breaks:
        yield from (text[at : at + most] for at in range(0, len(text), most))
        return
    (pattern, joint), *finer = breaks
    held = ""
    for part in pattern.split(text):
        joined = f"{held}{joint}{part}" if held else part
        if len(joined) <= most:
            held = joined
            continue
        if held.strip():
            yield held
        held = ""
        if len(part) <= most:
            held = part
        else:
            yield from _packed(part, most, *finer)
    if held.strip():
        yield held
