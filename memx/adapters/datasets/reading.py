"""Reading JSON that others wrote: every way it can be broken becomes one :class:`InputError` that says where.

:func:`read_json` turns a file into a value; :class:`Record` is one object of it, whose getters name file, record and
field when a value is missing or of the wrong kind. :class:`Findings` collects the oddities that a loader repaired,
flagged or, under ``skip_bad``, dropped.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from memx.adapters.contract import Quirk
from memx.errors import InputError

SKIP_HINT = "Correct it there, or give --skip-bad to leave such records out and count them."
_SURROGATE = re.compile("[\ud800-\udfff]")
_REFETCH = "It is likely cut off or damaged: fetch it again."
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file that is not empty.

    Raises:
        InputError: missing, a directory, a loop of links, not permitted, or empty.
    """
    try:
        refuse_no_file(path)
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise open_error(path, error) from None
    if not content.strip():
        raise InputError("the file is empty", "Fetch it again, or give another --source.", path=path)
    return content


def refuse_no_file(path: Path) -> None:
    """Raise :class:`InputError` for a directory, or for a device, which might never end."""
    if path.is_dir():
        raise InputError("is a directory, not a file", "Give the file itself.", path=path)
    if path.is_char_device() or path.is_block_device():
        raise InputError("is a device, not a file", "Give the file itself.", path=path)


def open_error(path: Path, error: Exception) -> InputError:
    """The :class:`InputError` for a failure of the operating system to open or read ``path``."""
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOENT:
        return InputError("no such file", "Check the path.", path=path)
    if code == errno.ELOOP:
        return InputError("the link leads back to itself", "Give the file that it should lead to.", path=path)
    if code == errno.EISDIR:
        return InputError("is a directory, not a file", "Give the file itself.", path=path)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(f"cannot be read: {reason}", "Check the path and its permissions.", path=path)


def decode(content: bytes, path: Path) -> str:
    """UTF-8 text, a byte-order mark dropped.

    Raises:
        InputError: UTF-16 or UTF-32, binary, or bytes that are no UTF-8 (with the line).
    """
    refuse_other_encodings(content[:4096], path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte {error.start} is not UTF-8", "Save the file as UTF-8.", path=path, place=f"line {line}"
        ) from None


def refuse_other_encodings(head: bytes, path: Path) -> None:
    """Raise :class:`InputError` when the first bytes of a file are those of UTF-16, UTF-32 or a binary file."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"\0" in head[:4] and head[:2].strip(b"\0") in (b"[", b"{")):
        raise InputError(
            "is UTF-16 or UTF-32, and JSON files are UTF-8", "Save it as UTF-8 (iconv -t UTF-8).", path=path
        )
    if b"\0" in head:
        raise InputError("is a binary file, not JSON", "Give the JSON file; unpack an archive first.", path=path)


def read_json(path: Path) -> Any:
    """The one JSON value that a file holds.

    Raises:
        InputError: whatever is wrong with the file, with line and column.
    """
    return parse_json(decode(read_bytes(path), path), path)


def parse_json(text: str, path: Path, *, place: str = "") -> Any:
    """The one JSON value of ``text``; ``place`` is put before the line and column that errors name.

    Raises:
        InputError: not JSON, cut off, more than one value, NaN, a key given twice, a number too long, nested too deep.
    """
    try:
        return strict_decoder(path, place).decode(text)
    except json.JSONDecodeError as error:
        raise _syntax_error(text, error, path, place) from None
    except RecursionError:
        raise InputError("is nested too deep to be a dataset", path=path, place=place) from None
    except ValueError as error:  # the interpreter's limit on the digits of an integer
        raise InputError(f"holds a number that cannot be read: {error}", path=path, place=place) from None


def strict_decoder(path: Path, place: str) -> json.JSONDecoder:
    """A decoder that raises :class:`InputError` for what Python's own lets pass: NaN and keys given twice."""

    def refuse_constant(name: str) -> NoReturn:
        raise InputError(f"{name} is no JSON value", "Write null or a number.", path=path, place=place)

    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for name in names if names.count(name) > 1)
            known = next((f" (object with {k} {v!r:.60})" for k, v in pairs if k.endswith("id")), "")
            raise InputError(
                f"the key '{repeated:.60}' stands twice in one object{known}",
                "Keep one of them.",
                path=path,
                place=place,
            )
        return found

    return json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=refuse_repeats)


def _syntax_error(text: str, error: json.JSONDecodeError, path: Path, place: str) -> InputError:
    where = f"line {error.lineno} column {error.colno}" if not place else f"{place} column {error.colno}"
    if error.msg == "Extra data":
        return InputError(
            "a second JSON value begins here: two files joined, or one value a line (JSON Lines)",
            "Keep one JSON value in the file.",
            path=path,
            place=where,
        )
    # Only a lexer that ran off the end sees nothing left, or a string that was never closed.
    if not text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
        return InputError("the JSON ends in the middle", _REFETCH, path=path, place=where)
    if error.pos == 0 or not text[: error.pos].strip():
        start = text.lstrip()[:15].lower()
        if start.startswith(("<!doctype", "<html")):
            return InputError("is a web page, not JSON", "Download the file itself, not the page about it.", path=path)
        return InputError("is not JSON", "Give the JSON file itself.", path=path, place=where)
    return InputError(f"is not JSON: {error.msg[0].lower()}{error.msg[1:]}", _REFETCH, path=path, place=where)


def has_surrogate(text: str) -> bool:
    """True when the text holds half a surrogate pair, which is no character and cannot be written as UTF-8."""
    return _SURROGATE.search(text) is not None


def kind_of(value: object) -> str:
    """What a JSON value is, in words: ``a list``, ``null``."""
    if value is None:
        return "null"
    return "a number" if type(value) is int else _KINDS.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object and where it stands; getters raise :class:`InputError` naming file, record and field."""

    data: Mapping[str, Any]
    path: Path
    place: str

    @classmethod
    def of(cls, value: object, path: Path, place: str) -> Record:
        """The record of a JSON value that must be an object."""
        if not isinstance(value, dict):
            raise InputError(f"should be an object, is {kind_of(value)}", SKIP_HINT, path=path, place=place)
        return cls(value, path, place)

    def at(self, place: str) -> Record:
        """The same object under another name, once its id is known."""
        return Record(self.data, self.path, place)

    def bad(self, name: str, message: str, hint: str = SKIP_HINT) -> InputError:
        """The error for one field."""
        return InputError(message, hint, path=self.path, place=f"{self.place}: {name}" if self.place else name)

    def value(self, name: str, *kinds: type, default: Any = ...) -> Any:
        """The field's value, of one of ``kinds``; ``default`` where the field is missing."""
        found = self.data.get(name, ...)
        if found is ...:
            if default is not ...:
                return default
            raise self.bad(name, "is missing")
        # Exact types: JSON's true and false are no numbers, though Python's are.
        if type(found) not in kinds:
            wanted = " or ".join(_KINDS[kind] for kind in kinds if kind is not int or float not in kinds)
            raise self.bad(name, f"should be {wanted}, is {kind_of(found)}")
        if type(found) is str and not found.isascii():
            self._check_text(name, found)
        return found

    def text(self, name: str, *, default: Any = ...) -> str:
        """The field's text, which may be empty."""
        found: Any = self.data.get(name, default)
        # The usual case, told at once: a file has tens of thousands of such fields.
        if type(found) is str and found.isascii():
            return found
        checked: str = self.value(name, str, default=default)
        return checked

    def name(self, name: str) -> str:
        """A text that is not blank, such as an id."""
        found = self.text(name)
        if not found.strip():
            raise self.bad(name, "is empty")
        return found

    def texts(self, name: str, *, default: Any = ...) -> list[str]:
        """A list of texts."""
        found: list[str] = self.value(name, list, default=default)
        for position, item in enumerate(found):
            if not isinstance(item, str):
                raise self.bad(f"{name}[{position}]", f"should be a text, is {kind_of(item)}")
            self._check_text(f"{name}[{position}]", item)
        return found

    def items(self, name: str, *, default: Any = ...) -> list[Any]:
        """A list of anything."""
        found: list[Any] = self.value(name, list, default=default)
        return found

    def record(self, name: str) -> Record:
        """An object inside this one."""
        return Record(self.value(name, dict), self.path, f"{self.place}: {name}" if self.place else name)

    def time(self, name: str, parse: Callable[[str], datetime]) -> datetime:
        """A text that ``parse`` (one that raises ``ValueError``) reads as a time."""
        return self.parsed_time(name, self.text(name), parse)

    def parsed_time(self, name: str, text: str, parse: Callable[[str], datetime]) -> datetime:
        """``text``, found under ``name``, read as a time."""
        try:
            return parse(text)
        except ValueError as error:
            raise self.bad(name, f"{text[:60]!r} is no date of the form {error}") from None

    def _check_text(self, name: str, text: str) -> None:
        if has_surrogate(text):
            raise self.bad(name, "holds half a surrogate pair (\\ud800 to \\udfff), which is no character")


@dataclass(slots=True)
class Findings:
    """The oddities of one file, and what is done about records that cannot be used.

    Args:
        skip_bad: leave such records out and count them, instead of raising.
    """

    skip_bad: bool = False
    quirks: list[Quirk] = field(default_factory=list)

    def add(self, kind: str, place: str, policy: str, detail: str) -> None:
        """Note one oddity; ``policy`` is ``kept``, ``repaired``, ``flagged`` or ``dropped``."""
        self.quirks.append(Quirk(kind, place, policy, detail))

    def tolerate(self, place: str) -> _Tolerance:
        """A context in which :class:`InputError` means a bad record; under ``skip_bad`` it is noted as dropped."""
        return _Tolerance(self, place)


@dataclass(slots=True)
class _Tolerance:
    findings: Findings
    place: str

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, InputError) or not self.findings.skip_bad:
            return False
        self.findings.add("bad_record", self.place, "dropped", error.message)
        return True
