"""What the doubles' vendors do with text: claims by the rules of ``tests.fact_rules``, ranking by words in common.

Real systems ask a model; with fixed rules a double's answer follows from what was sent, so that a test can tell what
the adapter sent and how it reads what comes back.
"""

from __future__ import annotations

import re
import uuid

from tests.fact_rules import Claim, claims

_WORD = re.compile(r"\w+")


def told(speaker: str, text: str) -> list[Claim]:
    """The claims of one message."""
    return list(claims(text, speaker or "User"))


def overlap(query: str, text: str) -> float:
    """Share of the query's words that stand in the text, 0..1."""
    asked = {word.lower() for word in _WORD.findall(query)}
    return len(asked & {word.lower() for word in _WORD.findall(text)}) / max(1, len(asked))


def stable_id(*parts: object) -> str:
    """A UUID that follows from the parts."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, parts))))
