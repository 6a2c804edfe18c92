"""One-line bars: where one is, which keys there are, which tabs."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from memx.text.gate import safe
from memx.tui.document import ROLES, cells, fit

#: A piece of a bar: text, role, and the action a click on it calls.
Piece = tuple[str, str, str]


class Bar(Widget):
    """One line of pieces from the left, and one text at the right end."""

    COMPONENT_CLASSES = {f"role--{role}" for role in ROLES}  # noqa: RUF012

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pieces: tuple[Piece, ...] = ()
        self._right = ("", "dim")

    def show(self, pieces: list[Piece], right: str = "", right_role: str = "dim") -> None:
        """Show these pieces; a text is given as it is stored and goes through the gate here."""
        self._pieces = tuple(pieces)
        self._right = (right, right_role)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        if y:
            return Strip.blank(width, base)
        left = sum(cells(safe(text)) for text, _, _ in self._pieces)
        # The left side is whole before the right one gets more than a third.
        right = _within(self._right[0], max(width // 3, width - left - 1)).rstrip()
        room = width - cells(right) - (1 if right else 0)
        segments = []
        for text, role, action in self._pieces:
            shown = _within(text, room)
            room -= cells(shown)
            style = base + self._look(role)
            segments.append(Segment(shown, style + Style.from_meta({"@click": action}) if action else style))
            if room <= 0:
                break
        strip = Strip(segments).adjust_cell_length(width - cells(right), base)
        return Strip.join([strip, Strip([Segment(right, base + self._look(self._right[1]))])]) if right else strip

    def _look(self, role: str) -> Style:
        return Style() if role == "text" else self.get_component_rich_style(f"role--{role}", partial=True)


def _within(text: str, width: int) -> str:
    """A stored text gated, and cut only where it is too wide."""
    shown = safe(text[: width * 8 + 64])
    return shown if cells(shown) <= width else fit(text, width)
