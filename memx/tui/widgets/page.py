"""A page of text: paragraphs wrapped to the pane's width, scrolled line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.strip import Strip

from memx.tui.actions import bindings
from memx.tui.document import Drawn, Line, Pair, draw
from memx.tui.widgets.pane import Pane


class Page(Pane):
    """The page. ``can_focus=False`` makes it a preview that keys pass by."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("page")]

    def __init__(self, *, id: str | None = None, can_focus: bool = True) -> None:
        super().__init__(id=id)
        self.can_focus = can_focus
        self.lines: Sequence[Line | Pair] = ()
        self._drawn: list[Drawn] = []
        self.sought = ""
        self._matches: list[int] = []
        self._match = 0
        self._width = 0

    def show(self, lines: Sequence[Line | Pair], *, top: bool = True) -> None:
        """Show these lines, from the top unless told otherwise."""
        self.lines = lines
        self._lay_out(force=True)
        if top:
            self.scroll_to(y=0, animate=False, immediate=True)

    def _lay_out(self, force: bool = False) -> None:
        # Two columns are kept free for the scroll bar, so that its coming and going never wraps the text anew.
        width = max(10, self.size.width - 2)
        if width == self._width and not force:
            return
        self._width = width
        self._drawn = [row for line in self.lines for row in draw(line, width)]
        self.set_content_size(width, len(self._drawn))
        self._match_rows()
        self.refresh()

    def find(self, text: str) -> None:
        """Mark the lines that hold a text, whatever its case, and go to the first; an empty text marks none."""
        self.sought = text.casefold()
        self._match = 0
        self._match_rows()
        self.next_match(0)

    def next_match(self, step: int) -> None:
        """Go ``step`` matches on, round the end."""
        if self._matches:
            self._match = (self._match + step) % len(self._matches)
            self.scroll_to(y=max(0, self._matches[self._match] - 2), animate=False, immediate=True)
        self.refresh()

    @property
    def found_words(self) -> str:
        """``3 of 17``, or that there is no match; nothing when nothing is sought."""
        if not self.sought:
            return ""
        return f"{self._match + 1} of {len(self._matches)} lines" if self._matches else "no match"

    def _match_rows(self) -> None:
        rows = ("".join(text for text, _ in row).casefold() for row in self._drawn)
        self._matches = [at for at, row in enumerate(rows) if self.sought and self.sought in row]
        self._match = min(self._match, max(0, len(self._matches) - 1))

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        at = round(self.scroll_y) + y
        row: Drawn = self._drawn[at] if at < len(self._drawn) else ()
        return self.strip(self._with_matches(row) if self.sought else row, self.inner_width)

    def _with_matches(self, row: Drawn) -> list[tuple[str, str]]:
        pieces = []
        for text, role in row:
            at = 0
            folded = text.casefold()
            # Case folding may change lengths (one letter becomes two): such a piece is left unmarked.
            while len(folded) == len(text) and (found := folded.find(self.sought, at)) >= 0:
                end = found + len(self.sought)
                pieces += [(text[at:found], role), (text[found:end], "find")]
                at = end
            pieces.append((text[at:], role))
        return pieces

    def action_down(self) -> None:
        self.scroll_to(y=self.scroll_y + 1, animate=False, immediate=True)

    def action_up(self) -> None:
        self.scroll_to(y=self.scroll_y - 1, animate=False, immediate=True)

    def action_page_down(self) -> None:
        self.scroll_to(y=self.scroll_y + max(1, self.inner_height - 1), animate=False, immediate=True)

    def action_page_up(self) -> None:
        self.scroll_to(y=self.scroll_y - max(1, self.inner_height - 1), animate=False, immediate=True)

    def action_first(self) -> None:
        self.scroll_to(y=0, animate=False, immediate=True)

    def action_last(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)
