"""Whether a short answer means the gold answer in other words, by embeddings of both and of their words.

The cosine of two answers alone takes "Norway" for "Sweden" and "play the guitar" for "play the piano". So it decides
only where the rules found nothing but missing words, never about names, numbers or single things, and only when nearly
every word of the answer lies close to a word of the gold answer or the question: a wrong one brings words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memx.text.answers import short_of
from memx.text.coverage import Token, alike, content, weights

if TYPE_CHECKING:
    import numpy as np

    Vector = np.ndarray[Any, np.dtype[np.float32]]

# Cosines of all-MiniLM-L6-v2. Each lies on a plateau: a step of 0.05 either way changes few verdicts in a thousand, on
# answers to questions of LoCoMo's conversations 0 to 3.
_OPEN = 0.4  # of the answers to why, how and what it felt like, which are told in many words
_CLOSED = 0.45  # of other answers of three words or more, which must share one with the gold answer
_RELATED = 0.55  # mean over the answer's words of the nearest word of gold answer or question

# Questions that are answered by a statement, not by naming a thing.
_STATEMENT = re.compile(
    r"\bwhy\b|\bhow\s+(?!many\b|much\b|long\b|often\b|old\b|far\b|big\b|tall\b|frequent)"
    r"|\b(?:feel|felt|emotion|think|thought|opinion|motivat|inspir|reason|describ|represent|symboli|realiz|realis|advice"
    r"|appreciat|impact|attitude|reaction|remind|important|spark|sentiment|take\s+away|meaning)",
    re.IGNORECASE,
)


def require_model() -> None:
    """See that the embedding model is installed.

    Raises:
        EmbeddingError: it is not.
    """
    from memx.memory.embedding import model_file, tokenizer_file

    model_file(), tokenizer_file()


def same_meaning(question: str, gold: str, answer: str) -> bool:
    """True when an answer that rules rejected for missing words alone means the gold answer all the same.

    Raises:
        EmbeddingError: the embedding model is not installed.
    """
    found = short_of(question, gold, answer)
    if found is None:
        return False
    is_open = _STATEMENT.search(question) is not None
    if not is_open and (found.weighty < 3 or found.listed or not found.share):
        return False
    if found.weighty < 2 or _cosine(gold, answer) < (_OPEN if is_open else _CLOSED):
        return False
    return _related(question, gold, answer) >= _RELATED


def _related(question: str, gold: str, answer: str) -> float:
    """Mean over the answer's words, by weight, of how close the nearest word of gold answer or question lies."""
    known, told = (*content(gold), *content(question)), content(answer)
    each = weights(told, question)
    near = (weight * _nearest(token, known) for weight, token in zip(each, told, strict=True))
    return sum(near) / sum(each) if told else 0.0


def _nearest(token: Token, known: Sequence[Token]) -> float:
    if any(alike(token, other) for other in known):
        return 1.0
    return max((_word_cosine(token.text.lower(), other.text.lower()) for other in known), default=0.0)


def _cosine(one: str, other: str) -> float:
    return float(_vector(one) @ _vector(other))


@lru_cache(maxsize=100_000)
def _word_cosine(one: str, other: str) -> float:
    return _cosine(one, other)


@lru_cache(maxsize=8_192)  # 12 MB
def _vector(text: str) -> Vector:
    from memx.memory.embedding import minilm

    # One text at a time: the int8 model scales a batch as a whole, and a verdict must not hang on its neighbours.
    vector: Vector = minilm().embed([text])[0]
    return vector
