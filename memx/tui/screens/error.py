"""What went wrong, in words that can be copied."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container

from memx.errors import MemxError
from memx.tui.document import Line
from memx.tui.screens.modal import Modal
from memx.tui.widgets.page import Page


class ErrorScreen(Modal[None]):
    """An error and the way out of it."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape,enter,q", "dismiss", "close", show=False),
        Binding("y", "copy", "copy", show=False),
    ]

    def __init__(self, error: MemxError) -> None:
        super().__init__()
        self.error = error

    def compose(self) -> ComposeResult:
        with Container(classes="box error"):
            yield Page(id="error")

    def on_mount(self) -> None:
        page = self.query_one("#error", Page)
        page.show(
            [
                Line("This did not work", "bad"),
                Line(),
                Line(self.error.message),
                Line(self.error.hint, "dim"),
                Line(),
                Line("close", "dim", "esc ", "key"),
                Line("copy", "dim", "y   ", "key"),
            ]
        )
        page.focus()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(str(self.error))
        self.notify("sent to the terminal's clipboard (OSC 52)", timeout=3)
