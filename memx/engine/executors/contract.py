"""What every executor offers: several pairs of hands, each working off one case after another."""

from __future__ import annotations

from abc import ABC, abstractmethod

from memx.engine.workshop import Task


class Hands(ABC):
    """Works off one case at a time; used by one thread."""

    @abstractmethod
    def run(self, task: Task) -> None:
        """A case from ingest to verdicts; returns early when the run is stopped.

        Raises:
            StoreError: nothing can be written any more.
        """

    def close(self) -> None:  # noqa: B027
        """Let go of what the hands hold."""


class Executor(ABC):
    """Gives hands for one run.

    Attributes:
        side_by_side: how many cases it works off at once.
    """

    side_by_side: int

    @abstractmethod
    def hands(self) -> Hands:
        """One more pair of hands."""

    def close(self) -> None:  # noqa: B027
        """Let go of what all hands share."""
