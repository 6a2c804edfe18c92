"""The retrieved facts as text for a reader, dated and named, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memx.llm.tokens import estimate_tokens
from memx.model import Retrieved


@dataclass(frozen=True, slots=True)
class Context:
    """Retrieved text that fits the budget.

    Attributes:
        lines: one per fact that fits, best first.
        used: the ids of those facts; what follows in the ranking was cut by the budget.
        tokens: of all lines, by estimate.
    """

    lines: tuple[str, ...]
    used: tuple[str, ...]
    tokens: int

    @property
    def text(self) -> str:
        """The lines, one under the other."""
        return "\n".join(self.lines)


def fit_context(
    retrieved: Sequence[Retrieved],
    budget: int | None = None,
    dates: Mapping[str, datetime] | None = None,
) -> Context:
    """The best facts that fit ``budget`` tokens (None: all), whole facts only, up to the first that does not fit.

    Each line begins with the fact's date, where ``dates`` holds it, and with the speaker, where the fact's metadata
    names one that its text does not.
    """
    lines: list[str] = []
    used: list[str] = []
    total = 0
    for item in retrieved:
        line = _line(item, (dates or {}).get(item.fact_id))
        tokens = estimate_tokens(line) + 1  # the line break
        if budget is not None and total + tokens > budget:
            break
        lines.append(line)
        used.append(item.fact_id)
        total += tokens
    return Context(tuple(lines), tuple(used), total)


def _line(item: Retrieved, date: datetime | None) -> str:
    speaker = str(item.metadata.get("speaker") or "")
    named = item.content if not speaker or speaker in item.content[:80] else f"{speaker}: {item.content}"
    return f"[{shown_date(date)}] {named}" if date is not None else named


def shown_date(date: datetime) -> str:
    """A date as prompts show it, with its weekday, which questions about time need; the time only where it says
    something."""
    form = "%A, %Y-%m-%d" if (date.hour, date.minute) == (0, 0) else "%A, %Y-%m-%d %H:%M"
    return date.strftime(form)
