"""The one gate that makes any text safe to show in a terminal, a widget or a file that a person reads.

Letters of every script, emoji and their joiners stay as they are. What a terminal would act on instead of show
(C0 and C1 controls, so every escape sequence; bidirectional overrides; invisible format characters) is written out as
a visible escape such as ``\\x1b`` or ``\\u202e``. Markup is no concern here: callers never parse shown text as markup.
"""

from __future__ import annotations

import re
import unicodedata

# Joiners and variation selectors that emoji and several scripts need; they are harmless to a terminal.
_KEPT_FORMATS = {"\u200c", "\u200d"}
_SUSPECT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str, *, newlines: bool = False, tab: int = 4) -> str:
    """The text with everything that a terminal might act on written out.

    Args:
        newlines: keep line breaks; otherwise each becomes ``⏎``, so that the result is one line.
        tab: width a tab is replaced by, in spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _SUSPECT.sub(lambda match: _shown(match.group(), newlines, tab), text)


def safe_line(text: str, width: int) -> str:
    """The text on one line of at most ``width`` terminal cells, a cut marked by ``…``."""
    from wcwidth import wcswidth, wcwidth

    # A line never shows more characters than a few times its cells, so a huge text is cut before it is measured.
    text = safe(text[: width * 8 + 64])
    if wcswidth(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        cells = max(0, wcwidth(char))
        if used + cells > width - 1:
            break
        kept.append(char)
        used += cells
    return "".join(kept) + "…"


def clean(text: str) -> str:
    """A text that SQLite can store: lone surrogates, which UTF-8 has no form for, are written out as ``\\ud800``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def shortened(text: str, limit: int | None) -> str:
    """The first ``limit`` characters, and a note of how many were left out; everything when ``limit`` is None."""
    if limit is None or len(text) <= limit + 40:
        return text
    return f"{text[:limit]} … {len(text) - limit:,} more characters"


def _shown(char: str, newlines: bool, tab: int) -> str:
    if char == "\n":
        return "\n" if newlines else "⏎"
    if char == "\t":
        return " " * tab
    if char in _KEPT_FORMATS:
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> bool:
    """True when :func:`safe` would change nothing but line breaks and tabs."""
    return not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in "\n\t\u200c\u200d" for char in text)
