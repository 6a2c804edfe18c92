"""A page of text: paragraphs wrapped to the pane's width, scrolled line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.strip import Strip

from memx.tui.actions import bindings
from memx.tui.document import Drawn, Line, draw
from memx.tui.widgets.pane import Pane


class Page(Pane):
    """The page. ``can_focus=False`` makes it a preview that keys pass by."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("page")]

    def __init__(self, *, id: str | None = None, can_focus: bool = True) -> None:
        super().__init__(id=id)
        self.can_focus = can_focus
        self.lines: Sequence[Line] = ()
        self._drawn: list[Drawn] = []
        self._width = 0

    def show(self, lines: Sequence[Line], *, top: bool = True) -> None:
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
        self.virtual_size = Size(width, len(self._drawn))
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        at = round(self.scroll_y) + y
        row: Drawn = self._drawn[at] if at < len(self._drawn) else ()
        return self.strip(row, self.inner_width)

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
