"""What the constructors of the nouns refuse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def require_text(owner: object, *names: str) -> None:
    """Refuse fields that are no text or an empty one."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, str) or not value:
            raise ValueError(f"{type(owner).__name__}.{name} is a text that is not empty, not {value!r}")


def require_str(owner: object, *names: str) -> None:
    """Refuse fields that are no text."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, str):
            raise TypeError(f"{type(owner).__name__}.{name} is a text, not {type(value).__name__}")


def freeze_tuple(owner: object, *names: str) -> None:
    """Make fields tuples; a single text, which is a sequence too, is refused."""
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, str):
            raise TypeError(f"{type(owner).__name__}.{name} is a sequence, not one text")
        if not isinstance(value, Iterable):
            raise TypeError(f"{type(owner).__name__}.{name} is a sequence, not {type(value).__name__}")
        object.__setattr__(owner, name, tuple(value))


def freeze_ids(owner: object, *names: str) -> None:
    """Make fields tuples, of texts alone."""
    freeze_tuple(owner, *names)
    for name in names:
        for value in getattr(owner, name):
            if not isinstance(value, str):
                raise TypeError(f"{type(owner).__name__}.{name} holds texts, not {type(value).__name__}")


def refuse_repeats(kind: str, ids: Sequence[str], case_id: str) -> None:
    """Refuse ids that stand twice in a case."""
    if len({*ids}) != len(ids):
        seen: set[str] = set()
        repeated = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise ValueError(f"case {case_id}: {kind} '{repeated}' stands twice")
