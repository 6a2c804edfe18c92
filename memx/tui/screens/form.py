"""A form of a few lines: what a command is started with, and the command that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from memx.errors import UsageError
from memx.text.gate import safe, safe_line
from memx.tui.screens.modal import Modal

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a form: its name in what comes back, its label, what stands in it, and one sentence of help."""

    name: str
    label: str
    value: str
    help: str
    choices: tuple[str, ...] = ()


class _Line(Input):
    def complete(self) -> bool:
        """Take the completion that is shown; False without one."""
        if not self._suggestion or self._suggestion == self.value:
            return False
        self.value = self._suggestion
        self.cursor_position = len(self.value)
        return True

    def _on_paste(self, event: events.Paste) -> None:
        super()._on_paste(events.Paste(safe_line(event.text, 2_000)))
        event.stop()
        event.prevent_default()


class FormScreen(Modal[Values | None]):
    """Fill in and start; escape gives None.

    Args:
        title: what is started.
        entries: the lines.
        command: the command that the values give, shown below the lines.

    ``command`` raises UsageError for values that cannot be used; the form then says so and stays.
    """

    # Taken before a line sees them: what is typed next, in the same packet, is meant for the next line.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel", show=False, priority=True),
        Binding("tab", "accept", "complete", show=False, priority=True),
        Binding("down", "app.focus_next", "next", show=False, priority=True),
        Binding("up,shift+tab", "app.focus_previous", "previous", show=False, priority=True),
    ]

    def __init__(self, title: str, entries: Sequence[Entry], command: Callable[[Values], str]) -> None:
        super().__init__()
        self._title = title
        self._entries = entries
        self._command = command
        self._begun = False

    def compose(self) -> ComposeResult:
        with Container(classes="box form"):
            yield Static(safe(self._title), classes="title", markup=False)
            with VerticalScroll(can_focus=False):
                for entry in self._entries:
                    with Horizontal():
                        yield Static(entry.label, classes="label", markup=False)
                        suggester = SuggestFromList(entry.choices, case_sensitive=False) if entry.choices else None
                        line = _Line(entry.value, id=entry.name, compact=True, suggester=suggester)
                        line.cursor_blink = False
                        yield line
            yield Static("", id="form-help", markup=False)
            yield Static("", id="form-command", markup=False)
            yield Static("enter starts   tab completes, next   esc cancels", classes="hint", markup=False)

    def on_mount(self) -> None:
        # Lines, title, help, two of the command, keys, and the frame.
        self.query_one(Container).styles.height = len(self._entries) + 7
        # Now, not when the message loop comes round to it: the next keys may be here already.
        self.set_focus(self.query(_Line).first())
        self._say()

    @property
    def values(self) -> Values:
        """What stands in the lines now."""
        return {entry.name: self.query_one(f"#{entry.name}", Input).value.strip() for entry in self._entries}

    def _say(self) -> bool:
        """Show the command; False when the values give none."""
        shown = self.query_one("#form-command", Static)
        try:
            words = self._command(self.values)
        except UsageError as error:
            shown.update(safe(str(error)))
            shown.set_class(True, "wrong")
            return False
        shown.update(safe(words))
        shown.set_class(False, "wrong")
        return True

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        names = {entry.name: entry for entry in self._entries}
        if isinstance(event.widget, _Line) and event.widget.id in names:
            self.query_one("#form-help", Static).update(names[event.widget.id].help)

    def on_key(self, event: events.Key) -> None:
        """Letters that were typed before a line had the focus."""
        if event.is_printable and event.character:
            line = self.query(_Line).first()
            line.value = line.value + event.character if self._begun else event.character
            line.cursor_position = len(line.value)
            self._begun = True

    def action_accept(self) -> None:
        """Take the completion that is shown; without one, go to the next line."""
        if not (isinstance(self.focused, _Line) and self.focused.complete()):
            self.focus_next()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._say()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._say():
            self.dismiss(self.values)
