"""The secrets that this process was given, so that no text which leaves it repeats one.

A name such as ``api_key`` betrays a secret in a list of options; in the words of another system's error nothing does.
Whoever reads a key remembers it here, and whoever shows or writes a text hides what is remembered.
"""

from __future__ import annotations

HIDDEN = "***"
#: Shorter texts are no keys, and hiding them would eat ordinary words.
_SHORTEST = 6
_known: set[str] = set()


def remember(secret: str) -> None:
    """Hide this text from now on, wherever :func:`hide` is asked."""
    if len(secret.strip()) >= _SHORTEST:
        _known.add(secret.strip())


def hide(text: str) -> str:
    """The text with every remembered secret replaced by ``***``; the longest first, as one may hold another."""
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text
