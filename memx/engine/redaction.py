"""Keeping keys and tokens out of everything that is written or printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memx.text.secrets import HIDDEN as HIDDEN
from memx.text.secrets import hide

_SECRET_NAME = re.compile(
    r"(api|access|auth|private)?[_-]?(key|token|secret|password|passwd|credential)s?$|authorization", re.I
)
_USERINFO = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_BEARER = re.compile(r"\b(sk-|pk-|m0-|Bearer\s+|Basic\s+(?=\S*[0-9=]))[A-Za-z0-9._~+/=\-]{8,}")


def is_secret_name(name: str) -> bool:
    """True for an option name whose value is a key, token or password."""
    return bool(_SECRET_NAME.search(name))


def redact_text(text: str) -> str:
    """The text without the secrets that an adapter was given and without what looks like a key: ``sk-...``, a bearer
    token, a basic authorization, user and password in an address."""
    return _BEARER.sub(HIDDEN, _USERINFO.sub(HIDDEN, hide(text)))


def redact_options(options: Mapping[str, Any], secret: Collection[str] = ()) -> dict[str, Any]:
    """Options with secret values hidden, at any depth: those whose names say so, and those that ``secret`` lists."""
    return {
        name: HIDDEN if name in secret or is_secret_name(str(name)) else _redacted(value)
        for name, value in options.items()
    }


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    return redact_options(value) if isinstance(value, Mapping) else value


def redact_command(arguments: Sequence[str]) -> list[str]:
    """A command line with secret values hidden, both ``--api-key X`` and ``NAME=X``."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if hide_next:
            shown.append(HIDDEN)
            hide_next = False
        elif equals and is_secret_name(name.lstrip("-")):
            shown.append(f"{name}={HIDDEN}")
        else:
            hide_next = argument.startswith("-") and is_secret_name(argument.lstrip("-"))
            shown.append(redact_text(argument))
    return shown
