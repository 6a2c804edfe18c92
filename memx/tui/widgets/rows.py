"""A table of any length: it draws the rows that are seen and asks for no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from memx.tui.actions import bindings
from memx.tui.document import fit
from memx.tui.widgets.pane import Pane


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``width`` in cells, 0 for what is left; hidden where the table is narrower than ``from_width``."""

    name: str
    width: int
    from_width: int = 0
    right: bool = False


#: The cells of a row: text as it is stored, and its role, by column name.
Cells = Mapping[str, tuple[str, str]]


class Source(Protocol):
    """Where a table's rows come from."""

    def __len__(self) -> int: ...

    def cells(self, index: int) -> Cells: ...


class Rows(Pane):
    """The table. Its first line, the header, stays in sight.

    Args:
        columns: from left to right.
        empty: what is said when there is no row.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list")]
    cursor: reactive[int] = reactive(0, init=False, repaint=False)

    @dataclass
    class Moved(Message):
        """The cursor rests on another row."""

        index: int

    @dataclass
    class Opened(Message):
        """A row was opened."""

        index: int

    def __init__(self, columns: tuple[Column, ...], *, empty: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self.columns = columns
        self.empty = empty
        self._source: Source | None = None

    def show(self, source: Source, cursor: int = 0) -> None:
        """Draw from a source, or from the same one after it changed, with the cursor on a row."""
        self._source = source
        self._measure()
        moved = cursor == self.cursor
        self.cursor = max(0, min(cursor, len(source) - 1))
        if moved:
            self.watch_cursor(self.cursor, self.cursor)
        self.refresh()

    def _measure(self) -> None:
        self.set_content_size(self.inner_width, (len(self._source) if self._source else 0) + 1)

    def on_resize(self, event: events.Resize) -> None:
        self._measure()
        self._keep_in_sight()
        self.refresh()

    def validate_cursor(self, value: int) -> int:
        last = len(self._source) - 1 if self._source else 0
        return max(0, min(value, last))

    def watch_cursor(self, old: int, new: int) -> None:
        self.refresh_line(old + 1)
        self.refresh_line(new + 1)
        self._keep_in_sight()
        self.post_message(self.Moved(new))

    def _keep_in_sight(self) -> None:
        height = max(1, self.inner_height - 1)
        top = round(self.scroll_y)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        width = self.inner_width
        if y == 0:
            return self.strip([(self._header(width), "head")], width)
        index = round(self.scroll_y) + y - 1
        count = len(self._source) if self._source else 0
        if index >= count:
            words = self.empty if count == 0 and y == 2 else ""
            return self.strip([("  " + fit(words, max(0, width - 2)), "dim")], width)
        assert self._source is not None
        cells = self._source.cells(index)
        here = index == self.cursor
        pieces = [(">" if here else " ", "mark")]
        for column, size in self._shown(width):
            text, role = cells.get(column.name, ("", "text"))
            pieces.append((fit(text, size, column.right) + " ", role))
        return self.strip(pieces, width, over="cursor" if here else None)

    def _header(self, width: int) -> str:
        return " " + "".join(fit(column.name, size, column.right) + " " for column, size in self._shown(width))

    def _shown(self, width: int) -> list[tuple[Column, int]]:
        shown = [column for column in self.columns if width >= column.from_width]
        rest = width - 1 - sum(column.width + 1 for column in shown)
        return [(column, column.width or max(1, rest)) for column in shown]

    def on_click(self, event: events.Click) -> None:
        index = round(self.scroll_y) + event.y - 1
        if event.y == 0 or self._source is None or index >= len(self._source):
            return
        if index == self.cursor:
            self.action_open()
        self.cursor = index

    def action_down(self) -> None:
        self.cursor += 1

    def action_up(self) -> None:
        self.cursor -= 1

    def action_page_down(self) -> None:
        self.cursor += max(1, self.inner_height - 2)

    def action_page_up(self) -> None:
        self.cursor -= max(1, self.inner_height - 2)

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = len(self._source) - 1 if self._source else 0

    def action_open(self) -> None:
        if self._source is not None and len(self._source):
            self.post_message(self.Opened(self.cursor))
