"""What all scrolling panes share: text by roles, drawn only where it is seen."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from memx.tui.document import ROLES


class Pane(ScrollView, can_focus=True):
    """A scrolling pane that draws one line at a time. The look of each role is a component class ``role--NAME``."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"role--{role}" for role in ROLES}

    def __init__(self, *, id: str | None = None) -> None:
        # Working a style out costs more than drawing with it, and a page asks for the same few thousands of times.
        self._looks: dict[tuple[str, str | None, str], Style] = {}
        super().__init__(id=id)

    def look(self, role: str, *, over: str | None = None) -> Style:
        """The style of a role on this pane; ``over`` lays another role (``cursor``, ``find``) on top."""
        key = (role, over, self.app.theme)
        if key not in self._looks:
            self._looks[key] = self._look(role, over)
        return self._looks[key]

    def _look(self, role: str, over: str | None) -> Style:
        style = self.rich_style
        if role != "text":
            style += self.get_component_rich_style(f"role--{role}", partial=True)
        if over is not None:
            style += self.get_component_rich_style(f"role--{over}", partial=True)
        return style

    def strip(self, pieces: Iterable[tuple[str, str]], width: int, over: str | None = None) -> Strip:
        """Pieces of gated text as one line of exactly ``width`` cells."""
        # Neighbours of one role are one segment: what a segment costs does not depend on its length.
        grouped = groupby(pieces, itemgetter(1))
        segments = [Segment("".join(text for text, _ in group), self.look(role, over=over)) for role, group in grouped]
        return Strip(segments).adjust_cell_length(width, self.look("text", over=over))

    def set_content_size(self, width: int, height: int) -> None:
        """Say how large the content is, in cells."""
        size = Size(width, height)
        if self.container_size and (height > self.container_size.height) is self.show_vertical_scrollbar:
            # A new ``virtual_size`` lays the whole screen out anew, which costs ten times the drawing of a pane. As
            # long as the scroll bar neither comes nor goes, its thumb and the reach of scrolling are all that changes.
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)
        else:
            self.virtual_size = size

    @property
    def inner_width(self) -> int:
        """Cells of a line."""
        return self.scrollable_content_region.width

    @property
    def inner_height(self) -> int:
        """Lines that are seen at once."""
        return self.scrollable_content_region.height

    def notify_style_update(self) -> None:
        """Draw again when the theme changes."""
        super().notify_style_update()
        self._looks = {}
        self.refresh()
