"""What every screen has: a bread crumb, a line of keys, help, the way back, and words for errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerState

from memx.engine.store.reader import RunRow, Where
from memx.errors import MemxError
from memx.tui.actions import AT_ONCE, BY_ID, bindings
from memx.tui.widgets.bars import Bar, Piece

if TYPE_CHECKING:
    from memx.tui.app import DebugApp

P = ParamSpec("P")
T = TypeVar("T")

#: The smallest terminal that is drawn in: columns and lines.
SMALLEST = (60, 16)
_FOOTER_KEYS = 9
_AT_ONCE_NAMES = frozenset(BY_ID[action_id].name for action_id in AT_ONCE)
#: What keys do while a filter is typed.
_TYPING_KEYS = (("tab", "complete"), ("enter", "to the list"), ("esc", "clear"), ("F1", "filter language"))
#: Key names as they are shown, where Textual's own say less; ASCII, so that every font has them.
_KEY_NAMES = {
    "question_mark": "?", "escape": "esc", "slash": "/", "left_square_bracket": "[", "right_square_bracket": "]",
    "comma": ",", "full_stop": ".", "f1": "F1", "pagedown": "pgdn", "pageup": "pgup", "asterisk": "*",
}  # fmt: skip


class BaseScreen(Screen[None]):
    """A screen of the UI. Subclasses name their part of the key list in ``group`` and fill :meth:`body`."""

    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (SMALLEST[0], "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (SMALLEST[1], "-short"), (22, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("all")]
    #: Names the screen in the help.
    title_words = ""

    @property
    def debug_app(self) -> DebugApp:
        """The app, by its own type."""
        from memx.tui.app import DebugApp

        assert isinstance(self.app, DebugApp)
        return self.app

    def compose(self) -> ComposeResult:
        yield Bar(id="crumb")
        yield from self.body()
        yield Bar(id="keys")
        yield Static("terminal too small, need {}x{}".format(*SMALLEST), id="too-small", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that are taken at once are letters again while a line is typed, and wait for the screen to be there."""
        if not self.is_mounted or (action in _AT_ONCE_NAMES and isinstance(self.focused, Input)):
            return False
        return super().check_action(action, parameters)

    def body(self) -> ComposeResult:
        """The widgets between bread crumb and keys."""
        yield from ()

    @property
    def whole(self) -> bool:
        """True from when the screen is made until it is taken apart: what comes from timers and workers may be late."""
        return self.is_mounted and len(self.query(Bar)) > 1

    def crumb(self, parts: list[str], right: str = "", role: str = "dim") -> None:
        """Say where this is: the way from the runs, and a short text at the right end."""
        pieces: list[Piece] = []
        for place, part in enumerate(["memx", *parts]):
            last = place == len(parts)
            pieces += [(part, "head" if last else "dim", ""), ("" if last else " > ", "dim", "")]
        self.query_one("#crumb", Bar).show([(" ", "dim", ""), *pieces], f"{right} " if right else "", role)

    def show_keys(self) -> None:
        """Draw the line of keys anew: those of the screen and of what has the focus."""
        shown: list[Piece] = [(" ", "dim", "")]
        if isinstance(self.focused, Input):
            for key, label in _TYPING_KEYS:
                shown += [(key, "key", ""), (f" {label}  ", "dim", "")]
            self.query_one("#keys", Bar).show(shown)
            return
        footer = self._footer()
        last = [pair for pair in footer if pair[0] == "all.back"]
        first = [("all.help", "?"), *(pair for pair in footer if pair not in last)][: _FOOTER_KEYS - len(last)]
        # What has no room is left out whole; the way back always stays.
        while (
            len(first) > 1 and sum(len(f"{key} {BY_ID[name].label}  ") for name, key in first + last) > self.size.width
        ):
            first.pop()
        for action_id, key in first + last:
            action = BY_ID[action_id]
            shown += [(key, "key", self._call(action_id)), (f" {action.label}  ", "dim", self._call(action_id))]
        self.query_one("#keys", Bar).show(shown)

    def _footer(self) -> list[tuple[str, str]]:
        """Ids of the actions of the footer that work now, with the first of their keys."""
        found: dict[str, list[str]] = {}
        for key, active in self.active_bindings.items():
            action_id = active.binding.id or ""
            if action_id in BY_ID and BY_ID[action_id].footer and action_id != "all.help" and active.enabled:
                found.setdefault(action_id, []).append(key)
        return [(action_id, key_name(action_id, keys)) for action_id, keys in found.items()]

    def _call(self, action_id: str) -> str:
        name = BY_ID[action_id].name
        focused = self.focused
        if BY_ID[action_id].group in ("list", "page"):
            return f"screen.in_pane('{name}')" if focused is not None else ""
        return f"screen.{name}"

    async def action_in_pane(self, name: str) -> None:
        """Run an action of the pane that has the focus; for clicks on the line of keys."""
        if self.focused is not None:
            await self.focused.run_action(name)

    def attempt(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call what may fail with words for the user; the error is shown, and None comes back."""
        try:
            return function(*args, **kwargs)
        except MemxError as error:
            self.debug_app.show_error(error)
            return None

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that failed in a way nobody foresaw says so instead of leaving an empty screen."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            error = event.worker.error
            words = error if isinstance(error, MemxError) else MemxError(f"{type(error).__name__}: {error}")
            self.debug_app.show_error(words)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.show_keys()

    def on_resize(self) -> None:
        self.show_keys()

    def on_screen_resume(self) -> None:
        self.show_keys()

    def data_changed(self) -> None:
        """The store has other data than before: screens that show what changes read it again."""

    def give_focus(self, widget: Widget) -> None:
        """Focus without scrolling."""
        widget.focus(scroll_visible=False)

    # ------------------------------------------------------------------------------------- taking out what is shown

    def copied(self) -> tuple[str, str]:
        """What ``y`` copies, and what it is called; an empty text for nothing."""
        return "", "nothing"

    def exported(self) -> tuple[RunRow, Where, str] | None:
        """What ``e`` writes: the questions of a run that meet a condition, and a name for the file."""
        return None

    def command(self) -> list[str]:
        """The command that prints what is shown."""
        return ["memx", "runs", "ls"]

    def action_copy(self) -> None:
        from memx.tui.clip import copy

        text, what = self.copied()
        if text:
            copy(self.app, text, what)
        else:
            self.notify("there is nothing to copy here", timeout=3)

    def action_copy_command(self) -> None:
        import shlex

        from memx.tui.clip import copy

        words = [*self.command(), "--dir", str(self.debug_app.store.directory)]
        copy(self.app, shlex.join(words), f"command {shlex.join(words)}")

    def action_export(self) -> None:
        from memx.tui.exporting import FORMATS
        from memx.tui.screens.pick import Choice, PickScreen

        wanted = self.attempt(self.exported)
        if wanted is None:
            self.notify("there is nothing to export here", timeout=3)
            return
        choices = [Choice(key, words, name) for name, (key, words, _) in FORMATS.items()]

        def chosen(format_: str | None) -> None:
            if format_ is not None:
                self.run_worker(lambda: self._export(format_, *wanted), thread=True, exit_on_error=False)

        self.app.push_screen(PickScreen(f"export {wanted[2]} as", choices), chosen)

    def _export(self, format_: str, run: RunRow, where: Where, name: str) -> None:
        from memx.tui.exporting import export

        try:
            target = export(self.debug_app.search_store, run, format_, where, name)
        except MemxError as error:
            self.app.call_from_thread(self.debug_app.show_error, error)
            return
        self.app.call_from_thread(self.notify, f"wrote {target}", timeout=6, markup=False)

    def action_help(self) -> None:
        from memx.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self))

    def action_back(self) -> None:
        self.debug_app.go_back()

    def action_leave(self) -> None:
        self.debug_app.leave()

    def reload(self) -> None:
        """Read everything again because the user asked."""
        self.data_changed()

    def action_reload(self) -> None:
        self.reload()
        self.notify("read again", timeout=3)


def key_name(action_id: str, keys: list[str]) -> str:
    """How the first key of an action is called: the first of the list of actions, or one that was set instead."""
    usual = [key_shown(key) for key in BY_ID[action_id].keys.split(",")]
    names = [key_shown(key) for key in keys]
    return next((key for key in usual if key in names), names[0])


def key_shown(key: str) -> str:
    """A key as footer and help show it."""
    return _KEY_NAMES.get(key, key)
