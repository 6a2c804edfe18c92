"""Reading a JSON file that is one long list element by element, in little memory, whatever its size.

Elements are cut out at the first key that they share and parsed by orjson; whatever that cannot settle (an element of
another shape, a fault, a key given twice) is parsed again by the strict decoder, which also words the errors. A cut
is never wrong: an object closes at one place only, so bytes that parse as an object are the whole element.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from memx.adapters.datasets.reading import (
    open_error,
    parse_json,
    refuse_no_file,
    refuse_other_encodings,
    strict_decoder,
)
from memx.errors import InputError

_BLOCK = 1 << 20
#: Elements whose end the shared key does not show within this many bytes are left to the strict decoder.
_QUICK_LIMIT = 64 << 20
#: No element may be longer; those of LongMemEval-M have some 6 MB.
_ELEMENT_LIMIT = 64 << 20
_SPACE = re.compile(rb"[ \t\r\n]*")
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\]|\\.)*")\s*:')
_BETWEEN = re.compile(rb"\}([ \t\r\n]*,[ \t\r\n]*\{[ \t\r\n]*)\Z")


class Element(NamedTuple):
    """One element of the list: its position from 0, its value, and whether its texts may hold half surrogate pairs."""

    position: int
    value: Any
    suspect: bool


def stream_list(path: Path, count_keys: Callable[[Any], int]) -> Iterator[Element]:
    """The elements of a JSON list, read as they are asked for.

    Args:
        count_keys: the number of keys in an element and all objects inside it; fewer than the text holds means that
            one was given twice. It may raise ``TypeError`` or ``KeyError`` when the element has another shape.

    Raises:
        InputError: the file cannot be read, is no list, or is broken; names the record.
    """
    try:
        refuse_no_file(path)
        with path.open("rb") as stream:
            yield from _Reader(path, stream, count_keys).elements()
    except OSError as error:
        raise open_error(path, error) from None


class _Reader:
    """A window over the file: ``data[start:]`` is what has been read and not yet handed out."""

    def __init__(self, path: Path, stream: BinaryIO, count_keys: Callable[[Any], int]) -> None:
        self.path = path
        self.stream = stream
        self.count_keys = count_keys
        self.data = bytearray()
        self.start = 0
        self.first_key = b""

    def elements(self) -> Iterator[Element]:
        self._open_list()
        index = 0
        while True:
            mark = self._next_byte(index)
            if mark == b"]":
                break
            if index:
                if mark != b",":
                    raise self._fault(index, "is followed by no comma")
                self.start += 1
                if self._next_byte(index) == b"]":
                    break
            yield self._element(index)
            index += 1
        self.start += 1
        if self._next_byte(index, at_end=True):
            hint = "Keep one JSON value in the file."
            raise InputError("a second JSON value follows the list: two files joined", hint, path=self.path)

    def _open_list(self) -> None:
        while len(self.data) < 4096 and self._more():
            pass
        refuse_other_encodings(bytes(self.data[:4096]), self.path)
        if self.data.startswith(codecs.BOM_UTF8):
            self.start = len(codecs.BOM_UTF8)
        first = self._next_byte(0, at_end=True)
        if not first:
            raise InputError("the file is empty", "Fetch it again, or give another --source.", path=self.path)
        if first != b"[":
            head = bytes(self.data[self.start : self.start + 4096]).decode("utf-8", "replace")
            if first != b"{":
                parse_json(head, self.path)
            raise InputError("should be a list of records, is an object", "Give the dataset's file.", path=self.path)
        self.start += 1

    def _more(self) -> bool:
        block = self.stream.read(_BLOCK)
        if self.start:
            del self.data[: self.start]
            self.start = 0
        self.data += block
        return bool(block)

    def _next_byte(self, index: int, *, at_end: bool = False) -> bytes:
        """The next byte that is no white space, not yet consumed; empty at the end of the file if that is allowed."""
        while True:
            match = _SPACE.match(self.data, self.start)
            assert match is not None
            self.start = match.end()
            if self.start < len(self.data):
                return bytes(self.data[self.start : self.start + 1])
            if not self._more():
                if at_end:
                    return b""
                raise self._fault(index, "is the last: the JSON ends in the middle")

    def _fault(self, index: int, message: str) -> InputError:
        place = f"record {index}" if index else "line 1"
        return InputError(message, "It is likely cut off or damaged: fetch it again.", path=self.path, place=place)

    # ------------------------------------------------------------------------------------------------- one element

    def _element(self, index: int) -> Element:
        end = self._quick_end()
        if end is not None:
            raw = bytes(memoryview(self.data)[self.start : end])
            try:
                # orjson takes no NaN and no half surrogate pair; keys given twice it lets pass.
                value = orjson.loads(raw)
                # In JSON text a quote and a colon end a key, save where the quote is an escaped part of a text.
                keys, colons = self.count_keys(value), raw.count(b'":')
                if keys == colons or keys == colons - raw.count(b'\\":'):
                    self.start = end
                    return Element(index, value, False)
            except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
                pass
        return Element(index, self._strict_element(f"record {index + 1}"), True)

    def _quick_end(self) -> int | None:
        """Where the element ends by the next one's first key, or by the end of the list; None when that is not seen."""
        if not self.first_key:
            match = _FIRST_KEY.match(self.data, self.start)
            if match is None:
                return None
            self.first_key = match[1]
        # The element's own first key does not count.
        seen = self.start + len(self.first_key)
        while True:
            at = self.data.find(self.first_key, seen)
            if at >= 0:
                between = _BETWEEN.search(self.data[max(self.start, at - 256) : at])
                if between:
                    return at - len(between[1])
                seen = at + 1
                continue
            length = len(self.data) - self.start
            if length > _QUICK_LIMIT:
                return None
            seen = max(seen - self.start, length - len(self.first_key))
            if not self._more():
                close = self.data.rfind(b"]")
                return close if close > self.start else None
            seen += self.start

    def _strict_element(self, place: str) -> Any:
        decoder = strict_decoder(self.path, place)
        while True:
            text, whole = self._text(place)
            try:
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError as error:
                # A fault well before the end of what was read is no matter of reading on.
                cut = error.pos > len(text) - 64 or error.msg.startswith("Unterminated string")
                if whole or not cut or len(self.data) > _ELEMENT_LIMIT:
                    parse_json(text, self.path, place=place)
                    raise
            except RecursionError:
                raise InputError("is nested too deep to be a dataset", path=self.path, place=place) from None
            except ValueError:
                parse_json(text, self.path, place=place)
                raise
            else:
                # A number at the end of the window may go on behind it.
                if whole or end < len(text):
                    self.start += len(text[:end].encode("utf-8", "surrogatepass"))
                    return value
            for _ in range(max(1, len(self.data) // _BLOCK)):
                self._more()

    def _text(self, place: str) -> tuple[str, bool]:
        """The window as text and whether the file ends with it; a character cut in two at its end is left out."""
        if len(self.data) == self.start or not self.data[self.start + 1 :]:
            self._more()
        position = self.stream.tell()
        whole = not self.stream.read(1)
        self.stream.seek(position)
        try:
            return codecs.getincrementaldecoder("utf-8")().decode(bytes(self.data[self.start :]), whole), whole
        except UnicodeDecodeError:
            raise InputError(
                "holds bytes that are not UTF-8", "Save it as UTF-8.", path=self.path, place=place
            ) from None
