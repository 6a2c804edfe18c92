"""The options of a memory system: declared once, read from ``--adapter-option``, else from the environment.

An adapter declares ``OPTIONS = {"url": Option("http://localhost:8000", env="ZEP_URL"), ...}`` and reads them in its
constructor with :func:`read_options`. The same declaration is what ``memx adapters show`` prints and what tells the
harness which values never to write down.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memx.errors import UnknownNameError, UsageError
from memx.text.secrets import remember

_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        default: its value when nothing gives one. Its type is the option's type: ``bool``, ``int``, ``float`` or
            ``str``; None stands for a text that may be absent.
        help: what it is, in a few words.
        env: environment variables that give it, the first that is set counts.
        secret: a key, token or password; never written, logged or shown.
        choices: the values that it may take; empty for any.
        least: the smallest number that it may be.
    """

    default: Any = ""
    help: str = ""
    env: str | tuple[str, ...] = ()
    secret: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables, as a tuple."""
        return (self.env,) if isinstance(self.env, str) else self.env


def declared(options: Mapping[str, Any]) -> dict[str, Option]:
    """The ``OPTIONS`` of an adapter with plain defaults turned into :class:`Option`."""
    return {name: value if isinstance(value, Option) else Option(value) for name, value in options.items()}


def secret_names(options: Mapping[str, Any]) -> frozenset[str]:
    """The names of the options that are declared secret."""
    return frozenset(name for name, option in declared(options).items() if option.secret)


def read_options(adapter: str, options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every declared option: as given, else from the environment, else its default.

    Args:
        adapter: the adapter's name, for messages.
        options: its ``OPTIONS``.
        given: what the constructor got; the command line gives texts.

    Raises:
        UnknownNameError: an option that is not declared, or a value that is none of the choices.
        UsageError: a value of the wrong type or too small.
    """
    known = declared(options)
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise UnknownNameError(f"option of adapter {adapter}", unknown, known)
    return {name: _value(adapter, name, option, given) for name, option in known.items()}


def need(adapter: str, options: Mapping[str, Any], values: Mapping[str, Any], name: str) -> Any:
    """The value of an option that cannot be empty here.

    Raises:
        UsageError: it is empty; names the environment variable and the option.
    """
    value = values[name]
    if value not in ("", None):
        return value
    option = declared(options)[name]
    ways = [f"set {variable}" for variable in option.variables[:1]]
    if not option.secret or not ways:
        ways.append(f"give --adapter-option {name}=VALUE")
    sentence = " or ".join(ways)
    raise UsageError(f"adapter {adapter} needs {option.help or name}", f"{sentence[0].upper()}{sentence[1:]}.")


def _value(adapter: str, name: str, option: Option, given: Mapping[str, Any]) -> Any:
    if name in given:
        source, raw = f"option {name} of adapter {adapter}", given[name]
    else:
        variable = next((v for v in option.variables if os.environ.get(v)), None)
        if variable is None:
            return option.default
        source, raw = f"{variable} (option {name} of adapter {adapter})", os.environ[variable]
    if option.secret and isinstance(raw, str):
        remember(raw)
    value = _typed(source, raw, option)
    if option.choices and value not in option.choices:
        raise UnknownNameError(source, str(value), option.choices)
    return value


def _typed(source: str, raw: Any, option: Option) -> Any:
    """A value in the type of the option's default."""
    kind = type(option.default)
    if option.default is None or (isinstance(raw, kind) and not isinstance(option.default, int | float)):
        return raw
    try:
        if kind is bool:
            return raw if isinstance(raw, bool) else _FLAGS[str(raw).strip().lower()]
        value = kind(raw)
        if option.least is not None and value < option.least:
            raise ValueError
    except (KeyError, ValueError, TypeError):
        wanted = "on or off" if kind is bool else f"a {kind.__name__}"
        if option.least is not None:
            wanted += f" of at least {option.least:g}"
        shown = "what was given" if option.secret else repr(raw)
        raise UsageError(f"{source} is {wanted}, not {shown}") from None
    return value
