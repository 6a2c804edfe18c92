"""Words that answer the same question: a small table of everyday English (``synonyms.txt`` says what is in it)."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from importlib import resources

from memx.text.words import stem, words


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, frozenset[int]], dict[str, tuple[tuple[str, ...], ...]]]:
    """Groups by key, and phrases by their first word, longest first."""
    groups: dict[str, set[int]] = {}
    phrases: dict[str, set[tuple[str, ...]]] = {}
    lines = resources.files("memx.text").joinpath("synonyms.txt").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        for entry in "" if line.startswith("#") else line.split(","):
            parts = tuple(words(entry))
            if len(parts) > 1:
                phrases.setdefault(parts[0], set()).add(parts)
            if parts:
                groups.setdefault(key_of(parts), set()).add(number)
    return (
        {key: frozenset(numbers) for key, numbers in groups.items()},
        {first: tuple(sorted(found, key=len, reverse=True)) for first, found in phrases.items()},
    )


def key_of(parts: tuple[str, ...]) -> str:
    """The key of a word (its stem) or of a phrase (its words)."""
    return stem(parts[0]) if len(parts) == 1 else " ".join(parts)


def groups_of(key: str) -> frozenset[int]:
    """The groups that a stem or a phrase's key belongs to; two keys are alike when they share one."""
    return _table()[0].get(key, frozenset())


def phrase_starts() -> Collection[str]:
    """The first words of the table's phrases."""
    return _table()[1].keys()


def phrase_at(told: list[str], index: int) -> tuple[str, ...]:
    """The longest phrase of the table that starts at ``told[index]``; empty when none does."""
    for parts in _table()[1].get(told[index], ()):
        if tuple(told[index : index + len(parts)]) == parts:
            return parts
    return ()
