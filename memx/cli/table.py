"""Plain text tables for the terminal: aligned by terminal cells, cut to fit, everything through the gate."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from wcwidth import wcswidth

from memx.text.gate import safe_line

#: The narrowest a column that may shrink becomes.
_LEAST = 6


def table(header: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """The rows under their header. The widest column but the first, which holds ids to copy, shrinks until the table
    fits ``width`` cells: by default the terminal's, without limit where the output goes elsewhere."""
    width = width or (shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 10_000)
    cells = [[safe_line("" if value is None else str(value), 400) for value in row] for row in [header, *rows]]
    widths = [max(wcswidth(row[column]) for row in cells) for column in range(len(header))]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths[1:], default=0) > _LEAST:
        widths[1 + widths[1:].index(max(widths[1:]))] -= 1
    lines = []
    for row in cells:
        shown = [_padded(safe_line(value, size), size) for value, size in zip(row, widths, strict=True)]
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - wcswidth(text))
