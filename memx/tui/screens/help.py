"""The keys of the screen below, by what has the focus."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container

from memx.engine.store import filters
from memx.tui.actions import BY_ID
from memx.tui.document import Line
from memx.tui.screens.base import BaseScreen, key_shown
from memx.tui.screens.modal import Modal
from memx.tui.widgets.page import Page


class HelpScreen(Modal[None]):
    """The keys of a screen."""

    BINDINGS = [Binding("escape,q,question_mark,f1,h", "dismiss", "close", show=False)]  # noqa: RUF012

    def __init__(self, of: BaseScreen) -> None:
        super().__init__()
        self._of = of

    def compose(self) -> ComposeResult:
        with Container(classes="box"):
            yield Page(id="help")

    def on_mount(self) -> None:
        page = self.query_one("#help", Page)
        page.show(key_lines(self._of))
        page.focus()


def key_lines(screen: BaseScreen) -> list[Line]:
    """The keys that work on a screen now, then the filter language where the screen has a filter."""
    keys: dict[str, list[str]] = {}
    for key, active in screen.active_bindings.items():
        action_id = active.binding.id or ""
        base = action_id.rpartition("_")[0] if action_id[-1:].isdigit() else action_id
        if base in BY_ID:
            keys.setdefault(base, []).append(key_shown(key))
    lines = [Line(f"Keys: {screen.title_words}", "head"), Line()]
    for action_id, shown in keys.items():
        names = " ".join(dict.fromkeys(shown))
        lines.append(Line(BY_ID[action_id].help, "text", f"  {names:<16} ", "key"))
    lines += [
        Line("Palette: every action by name", "text", f"  {'ctrl+p':<16} ", "key"),
        Line("Close this", "text", f"  {'esc':<16} ", "key"),
        Line(),
        Line("To copy by mouse hold shift while dragging.", "dim"),
    ]
    if "questions.filter" in keys:
        lines += [Line(), Line("Filter", "head"), Line()]
        lines += [Line(field.help, "text", f"  {name:<16} ", "key") for name, field in filters.FIELDS.items()]
        lines += [
            Line(),
            Line('stage:retrieval rank<20 type:temporal text~"two words" -case=conv-1 Oslo', "text", "  "),
            Line(": begins with   = is   ~ contains   < <= > >= numbers", "dim", "  "),
            Line("- not   a,b either   none no value", "dim", "  "),
        ]
    return lines
