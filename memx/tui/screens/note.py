"""Writing a note about a question. What was typed is kept however the editor is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Static, TextArea

from memx.text.gate import safe
from memx.tui.screens.modal import Modal


class NoteScreen(Modal[None]):
    """An editor for Markdown.

    Args:
        title: whose note it is.
        note: what stands now.
        keep: takes the text when the editor is left, by whatever way.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "keep and close", show=False, priority=True),
    ]

    def __init__(self, title: str, note: str, keep: Callable[[str], None]) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._keep = keep

    def compose(self) -> ComposeResult:
        with Container(classes="box"):
            yield Static(safe(self._title), markup=False)
            area = TextArea(safe(self._note, newlines=True), id="note", compact=True, soft_wrap=True)
            area.cursor_blink = False
            yield area
            yield Static("esc keeps and closes; Markdown", classes="hint", markup=False)

    def on_mount(self) -> None:
        area = self.query_one("#note", TextArea)
        area.move_cursor(area.document.end)
        area.focus()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._note = event.text_area.text

    def on_unmount(self) -> None:
        self._keep(self._note)
