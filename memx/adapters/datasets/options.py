"""Options that datasets take, as Python values or as the texts of ``--dataset-option K=V``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memx.errors import UnknownNameError, UsageError

_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def flag(name: str, value: Any) -> bool:
    """True or false from a bool or a text such as ``yes``.

    Raises:
        UsageError: the text is neither.
    """
    if isinstance(value, bool):
        return value
    found = _FLAGS.get(str(value).strip().lower())
    if found is None:
        raise UsageError(f"{name} is true or false, not '{value}'")
    return found


def refuse_unknown(dataset: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise :class:`UnknownNameError` for the first option that a dataset does not have."""
    if given:
        raise UnknownNameError(f"option of {dataset}", min(given), known)


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """The choice that ``value`` names, whatever its case; empty for an empty value.

    Raises:
        UnknownNameError: there is no such choice.
    """
    if not value:
        return ""
    by_lower = {choice.lower(): choice for choice in choices}
    if value.lower() not in by_lower:
        raise UnknownNameError(name, value, by_lower.values())
    return by_lower[value.lower()]
