"""Where the sentences of a text stand. Initials and titles ("C. S. Lewis", "Dr. Moor") end none."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_END = re.compile(r"(?<=[.!?;])(?<!\b[A-Z]\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)\s+|\n+")


@lru_cache(maxsize=8192)
def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """(start, end) of each sentence, a semicolon and a line break ending one too; one empty span for an empty text."""
    cuts = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    spans = tuple((start, end) for start, end in pairwise(cuts) if text[start:end].strip())
    return spans or ((0, len(text)),)


def sentence_at(text: str, index: int) -> tuple[int, int]:
    """The sentence that the character at ``index`` belongs to."""
    return next((span for span in sentence_spans(text) if index < span[1]), sentence_spans(text)[-1])
