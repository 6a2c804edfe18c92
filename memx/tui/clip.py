"""Copying out of the program: to the clipboard through the terminal (OSC 52), which works over SSH."""

from __future__ import annotations

from textual.app import App

#: Terminals drop longer sequences in silence (xterm's limit, in bytes before base64).
LONGEST = 74_994


def copy(app: App[int], text: str, what: str) -> None:
    """Send a text to the clipboard and say what was done; no terminal tells whether it took it."""
    size = len(text.encode("utf-8", "replace"))
    if size > LONGEST:
        app.notify(
            f"{what}: {size:,} bytes are more than a terminal takes ({LONGEST:,}); e writes a file instead",
            severity="warning", timeout=6, markup=False,
        )  # fmt: skip
        return
    app.copy_to_clipboard(text)
    hint = "tmux: set -g set-clipboard on" if _in_tmux() else "e writes a file"
    app.notify(f"{what} sent to the terminal's clipboard (OSC 52). Still empty? {hint}", timeout=4, markup=False)


def _in_tmux() -> bool:
    import os

    return "TMUX" in os.environ
