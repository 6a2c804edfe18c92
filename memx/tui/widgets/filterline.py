"""The line a filter is typed into, with completion, and the line under it that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input, Static

from memx.engine.store import filters
from memx.text.gate import printable, safe


class _Completion(Suggester):
    def __init__(self, values: Callable[[str], list[str]] | None) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._values = values

    async def get_suggestion(self, value: str) -> str | None:
        return filters.complete(value, self._values)


class _Input(Input):
    # The stock line lays the whole screen out anew at every letter, though its place never changes.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "accept", "complete", show=False),
        Binding("escape", "clear_or_leave", "clear", show=False),
        # Taken before the line sees it: what comes next in the same packet is meant for the list.
        Binding("enter,down", "leave", "to the list", show=False, priority=True),
    ]

    def action_accept(self) -> None:
        """Take the completion that is shown; without one, go to the list."""
        if self._suggestion:
            self.value = self._suggestion
            self.cursor_position = len(self.value)
        else:
            self.action_leave()

    def action_clear_or_leave(self) -> None:
        if self.value:
            self.value = ""
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Go to the list, now: the next key may be here already."""
        self.screen.set_focus(self.screen.query_one("#table"), scroll_visible=False)

    def _on_paste(self, event: events.Paste) -> None:
        # Pasted text may hold escape sequences; only the visible form of them goes into the line.
        super()._on_paste(events.Paste(safe(event.text)))
        event.stop()
        event.prevent_default()


class FilterLine(Container):
    """The filter of a list, which is the screen's ``#table``.

    Args:
        values: the values in use of a text field, for completion.
    """

    #: Seconds without a key until a wrong filter is complained of: a word that is half typed is no mistake yet.
    COMPLAINS_AFTER_S: ClassVar[float] = 0.4

    @dataclass
    class Changed(Message):
        """Another filter stands in the line."""

        text: str

    def __init__(self, values: Callable[[str], list[str]] | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._values = values
        self._complaint = ""
        self._waiting: Timer | None = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(" / ", id="slash", markup=False)
            box = _Input(id="box", compact=True, suggester=_Completion(self._values), select_on_focus=False)
            box.cursor_blink = False
            yield box
        yield Static("", id="complaint", markup=False)

    @property
    def text(self) -> str:
        """What stands in the line."""
        return self.query_one("#box", Input).value

    def begin(self) -> None:
        """Let the user type."""
        # Now, not when the message loop comes round to it: the next key may be here already.
        self.screen.set_focus(self.query_one("#box", Input), scroll_visible=False)

    def set(self, text: str) -> None:
        """Put a filter into the line without telling of it."""
        box = self.query_one("#box", Input)
        with box.prevent(Input.Changed):
            box.value = text
        box.cursor_position = len(text)

    def complain(self, words: str) -> None:
        """Say what is wrong with the filter once the typing pauses; nothing when it is right."""
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None
        if words and self.COMPLAINS_AFTER_S:
            self._waiting = self.set_timer(self.COMPLAINS_AFTER_S, lambda: self._say(words))
        else:
            self._say(words)

    def _say(self, words: str) -> None:
        if words == self._complaint:
            return
        self._complaint = words
        line = self.query_one("#complaint", Static)
        line.update(safe(words))
        line.display = bool(words)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not printable(event.value):
            self.query_one("#box", Input).value = safe(event.value)
            return
        self.post_message(self.Changed(event.value))
