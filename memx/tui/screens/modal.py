"""What lies over a screen and asks for something."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Modal(ModalScreen[ScreenResultType]):
    """A modal screen that is closed once: a second key in the same packet finds it closed already."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close and hand the result over."""
        return super().dismiss(result) if self.is_current else AwaitComplete()
