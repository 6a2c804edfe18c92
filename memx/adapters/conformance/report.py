"""What the conformance kit found: one result per check, and the exceptions by which a check ends early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a check ended."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "n/a"


class CheckFailed(Exception):
    """The adapter breaks what the check demands; the text says how, with an example."""


class NotApplicable(Exception):
    """The check has nothing to say of this adapter; the text says why."""


@dataclass(frozen=True, slots=True)
class Result:
    """One check.

    Attributes:
        name: of the check: ``isolation``.
        demands: what it demands, in one sentence.
        why: what was found.
        seconds: how long it took.
    """

    name: str
    demands: str
    outcome: Outcome
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one adapter.

    Attributes:
        adapter: its name.
        facts: what it tells of itself (``describe``).
        left: namespaces that could not be deleted again.
    """

    adapter: str
    version: str
    facts: Mapping[str, Any]
    results: tuple[Result, ...]
    left: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that failed."""
        return tuple(result.name for result in self.results if result.outcome is Outcome.FAIL)

    @property
    def seconds(self) -> float:
        """How long all checks took."""
        return sum(result.seconds for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "schema": "memx.conformance/1",
            "adapter": self.adapter,
            "version": self.version,
            "facts": dict(self.facts),
            "passed": not self.failed,
            "failed": list(self.failed),
            "seconds": round(self.seconds, 3),
            "left": list(self.left),
            "checks": [
                {**asdict(result), "outcome": str(result.outcome), "seconds": round(result.seconds, 3)}
                for result in self.results
            ],
        }
