"""Text laid out in lines: what the panes of the UI scroll and what ``memx debug --plain`` prints. No textual here.

Everything that shows a stored text goes through the gate in this module, so that no builder of a page can forget it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from memx.text.gate import safe
from memx.text.gate import shortened as shortened

#: What a piece of text is, never how it looks: the look of each role is the stylesheet's.
ROLES = ("text", "head", "label", "dim", "good", "bad", "warn", "key", "mark", "find", "cursor")

#: Cells from which two texts stand beside each other: what a page has on a terminal of 100 columns.
_BESIDE = 94

_BREAK = re.compile(r"\s+|[^\s]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph: a prefix that stays as it is and a body that is wrapped to its right.

    Attributes:
        prefix: printed once; later lines are indented by its width.
        role: of the body.
        prefix_role: of the prefix.
        key: id of the thing the line is about (a fact id), so that a cursor can rest on it.
        short: stands for a body that does not fit on one line; empty to wrap the body.
    """

    body: str = ""
    role: str = "text"
    prefix: str = ""
    prefix_role: str = "label"
    key: str = ""
    short: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts to compare: beside each other where there is room, else one above the other.

    Attributes:
        old, new: pieces of stored text with their roles, in order.
    """

    old: tuple[tuple[str, str], ...]
    new: tuple[tuple[str, str], ...]

    @property
    def body(self) -> str:
        """Both texts."""
        return " ".join(text for text, _ in (*self.old, *self.new))


#: One line as it is drawn: pieces of text with their roles.
Drawn = tuple[tuple[str, str], ...]


def cells(text: str) -> int:
    """Width of a gated text in terminal cells."""
    # The sign of a cut text is one cell; wcwidth is not loaded for it alone.
    if text.isascii() or text.replace("…", "").isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(0, int(wcswidth(text)))


def fit(text: str, width: int, right: bool = False) -> str:
    """A stored text gated, cut to ``width`` cells with ``…`` and padded to exactly that."""
    if width <= 0:
        return ""
    # A huge text is cut before it is gated: no more characters show than a few times the cells.
    shown = safe(text[: width * 8 + 64])
    size = cells(shown)
    if size > width:
        kept = _cut(shown, width - 1)
        shown, size = f"{kept}…", cells(kept) + 1
    pad = " " * (width - size)
    padded = pad + shown if right else shown + pad
    # A joiner at the end swallows the blank after it.
    return padded + " " * (width - cells(padded))


def draw(line: Line | Pair, width: int) -> Iterator[Drawn]:
    """A paragraph, or a pair of texts, wrapped to ``width`` cells."""
    if isinstance(line, Pair):
        yield from _draw_pair(line, width)
        return
    prefix = safe(line.prefix)
    indent = min(cells(prefix), max(0, width - 10))
    if cells(prefix) > indent:
        prefix = _cut(prefix, indent)
    first = True
    body = line.short if line.short and cells(safe(line.body)) > width - indent else line.body
    for piece in wrap(safe(body, newlines=True), max(1, width - indent)):
        head = prefix if first else " " * indent
        first = False
        yield ((head, line.prefix_role), (piece, line.role)) if head else ((piece, line.role),)


def _draw_pair(pair: Pair, width: int) -> Iterator[Drawn]:
    if width < _BESIDE:
        for label, pieces in (("old  ", pair.old), ("new  ", pair.new)):
            head = f"    {label}"
            for row in _wrap_pieces(pieces, max(1, width - len(head))):
                yield ((head, "dim"), *row)
                head = " " * len(head)
        return
    column = (width - 7) // 2
    rows = zip_longest(_wrap_pieces(pair.old, column), _wrap_pieces(pair.new, column), fillvalue=())
    yield (("    old".ljust(column + 4), "dim"), (" | ", "dim"), ("new", "dim"))
    for left, right in rows:
        pad = " " * (column - sum(cells(text) for text, _ in left))
        yield (("    ", "text"), *left, (pad, "text"), (" | ", "dim"), *right)


def _wrap_pieces(pieces: Iterable[tuple[str, str]], width: int) -> Iterator[Drawn]:
    """Stored texts with roles, gated and broken at blanks; each blank becomes one space."""
    row: list[tuple[str, str]] = []
    used = 0
    for text, role in pieces:
        for word in safe(text, newlines=True).split():
            parts = [word] if cells(word) <= width else list(_chunks(word, width, width))
            for part in parts:
                size = cells(part)
                gap = 1 if row else 0
                if used + gap + size > width and row:
                    yield tuple(row)
                    row, used, gap = [], 0, 0
                row.append((f"{' ' * gap}{part}", role))
                used += gap + size
    yield tuple(row)


def wrap(text: str, width: int) -> Iterator[str]:
    """A gated text broken at blanks, and inside words that are longer than a line."""
    for paragraph in text.split("\n"):
        if paragraph.isascii() and len(paragraph) <= width:
            yield paragraph
            continue
        yield from _wrap_paragraph(paragraph, width)


def _wrap_paragraph(text: str, width: int) -> Iterator[str]:
    held: list[str] = []
    used = 0
    for match in _BREAK.finditer(text):
        token = match.group()
        size = cells(token)
        if used + size <= width:
            held.append(token)
            used += size
            continue
        if token.isspace():
            yield "".join(held)
            held, used = [], 0
            continue
        if size <= width:
            yield "".join(held).rstrip()
            held, used = [token], size
            continue
        # A word longer than a line begins where the line stands and goes on over the next ones.
        if used >= width:
            yield "".join(held).rstrip()
            held, used = [], 0
        pieces = list(_chunks(token, width - used, width))
        yield "".join(held) + pieces[0]
        yield from pieces[1:-1]
        held, used = (pieces[-1:], cells(pieces[-1])) if len(pieces) > 1 else ([], 0)
    if held or not text:
        yield "".join(held)


def _chunks(word: str, first: int, width: int) -> Iterator[str]:
    if word.isascii():
        yield word[:first]
        for at in range(first, len(word), width):
            yield word[at : at + width]
        return
    room = first
    while word:
        piece = _cut(word, room) or (word[:1] if room == width else "")
        yield piece
        word = word[len(piece) :]
        room = width


def _cut(text: str, width: int) -> str:
    """The longest beginning that is at most ``width`` cells wide; grapheme clusters stay whole."""
    if text.isascii():
        return text[:width]
    from wcwidth import iter_graphemes, wcswidth

    kept: list[str] = []
    used = 0
    for cluster in iter_graphemes(text):
        size = max(0, int(wcswidth(cluster)))
        if used + size > width:
            break
        kept.append(cluster)
        used += size
    return "".join(kept)


def plain(lines: Iterable[Line | Pair], width: int) -> str:
    """The lines as plain text of at most ``width`` cells, ready to print."""
    drawn = (row for line in lines for row in draw(line, width))
    return "\n".join("".join(text for text, _ in row).rstrip() for row in drawn)
