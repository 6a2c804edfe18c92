"""Token counts without a tokenizer, for budgets and gates; what a model was billed for is what its server reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Tokens that a chat message costs beyond its text (role and separators), as OpenAI documents for its chat format.
PER_MESSAGE = 4


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: four ASCII characters, or one character of another script, to a token.

    The four is OpenAI's published rule of thumb for English; for other scripts the estimate is on the high side.
    """
    ascii_chars = len(text) if text.isascii() else sum(char < "\x80" for char in text)
    return -(-ascii_chars // 4) + len(text) - ascii_chars


def estimate_messages(messages: Sequence[Mapping[str, str]]) -> int:
    """About how many tokens a list of chat messages is."""
    return sum(estimate_tokens(message["content"]) + PER_MESSAGE for message in messages)
