"""Small questions to the user: choose one of a few, or type one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input, Static

from memx.text.gate import safe
from memx.tui.document import Line, draw
from memx.tui.screens.modal import Modal
from memx.tui.widgets.page import Page


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to choose: the key that chooses it, what it is called, and what comes back."""

    key: str
    label: str
    value: str


class PickScreen(Modal[str | None]):
    """Choose by one key; escape chooses nothing (None).

    Args:
        about: what there is to know before choosing, a paragraph each.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "cancel", show=False)]

    def __init__(self, title: str, choices: Sequence[Choice], about: Sequence[str] = ()) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._about = about
        self._first = 0

    def compose(self) -> ComposeResult:
        with Container(classes="box small"):
            yield Page(id="choices")

    def on_mount(self) -> None:
        self._lay_out()
        self.query_one("#choices", Page).focus()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        """Show the choices in a box as high as they need at this width."""
        head = [Line(self._title, "head"), *(Line(words) for words in self._about), Line()]
        lines = [Line(choice.label, "text", f"  {choice.key}  ", "key") for choice in self._choices]
        page = self.query_one("#choices", Page)
        # The box is at most 76 wide, and its frame and the place of a scroll bar are not written on.
        width = min(72, round(self.app.size.width * 0.96) - 6)
        self._first = sum(1 for line in head for _ in draw(line, width))
        page.show([*head, *lines, Line(), Line("cancel", "dim", "  esc  ", "key")])
        self.query_one(Container).styles.height = self._first + len(lines) + 4

    def on_key(self, event: events.Key) -> None:
        for choice in self._choices:
            if choice.key in (event.key, event.character):
                event.stop()
                event.prevent_default()
                self.dismiss(choice.value)
                return

    def on_click(self, event: events.Click) -> None:
        place = event.screen_y - self.query_one("#choices", Page).region.y - self._first
        if 0 <= place < len(self._choices) and event.widget is self.query_one("#choices", Page):
            self.dismiss(self._choices[place].value)


class PromptScreen(Modal[str | None]):
    """Type one line; escape gives None, enter what was typed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel", show=False)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Container(classes="box small"):
            yield Static(safe(self._title), markup=False)
            yield Input(self._value, id="line", compact=True)
            yield Static("enter takes it, esc cancels", classes="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one(Container).styles.height = 5
        self.query_one("#line", Input).cursor_blink = False
        self.query_one("#line", Input).focus()

    def on_key(self, event: events.Key) -> None:
        """Letters that were typed before the line had the focus."""
        line = self.query_one("#line", Input)
        if self.focused is not line and event.is_printable and event.character:
            line.insert_text_at_cursor(event.character)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
