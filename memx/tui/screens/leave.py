"""What shall become of commands that still run when the program is left."""

from __future__ import annotations

from collections.abc import Sequence

from memx.tui.jobs import Job
from memx.tui.screens.pick import Choice, PickScreen

_CHOICES = (
    Choice("l", "leave it running and quit; memx debug shows it again", "leave"),
    Choice("s", "stop it, keep what is finished, and quit", "stop"),
)


class LeaveScreen(PickScreen):
    """Asks for ``leave`` or ``stop``; escape stays in the program."""

    def __init__(self, going: Sequence[Job]) -> None:
        several = f"{len(going)} commands are" if len(going) > 1 else f"memx {going[0].verb} is"
        super().__init__(f"{several} still running", _CHOICES)
