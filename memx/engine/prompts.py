"""Prompt texts: package data with ``{name}`` fields, filled in one pass and hashed into the run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

_FIELD = re.compile(r"\{([a-z_]+)\}")


class Prompts:
    """The texts in the ``prompts`` folder of a package, by file name without ``.txt``."""

    def __init__(self, package: str) -> None:
        self._package = package

    def text(self, name: str) -> str:
        """A prompt as it stands in its file."""
        return _read(self._package, name)

    def fill(self, name: str, fields: Mapping[str, str]) -> str:
        """A prompt with its fields filled."""
        return fill(self.text(name), fields)

    def sha256(self, names: Iterable[str]) -> str:
        """Over the named prompts, in alphabetical order of their names."""
        return hash_texts({name: self.text(name) for name in names})


def fill(template: str, fields: Mapping[str, str]) -> str:
    """Replace each ``{name}`` that ``fields`` holds, in one pass: braces in the values and braces of another use stay
    as they are. Lines that are left empty at the end are dropped."""
    return _FIELD.sub(lambda match: fields.get(match[1], match[0]), template).strip()


def fields_in(template: str) -> set[str]:
    """The names of the fields in a template."""
    return set(_FIELD.findall(template))


def hash_texts(texts: Mapping[str, str]) -> str:
    """SHA-256 over texts and their names."""
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        for part in (name, text):
            digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


@lru_cache(maxsize=64)
def _read(package: str, name: str) -> str:
    return files(package).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8").strip()
