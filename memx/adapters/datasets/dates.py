"""The date forms of the benchmarks' files, read strictly: what is not of the form is an error, never a guess.

Each reader raises ``ValueError`` whose message is the form expected. Month names are matched here, since ``strptime``
would follow the process's locale.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_LOCOMO = re.compile(r"(\d{1,2}):(\d{2}) ([ap])m on (\d{1,2}) ([a-z]+), (\d{4})", re.IGNORECASE)
_LONGMEMEVAL = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2}) \([a-z]{3}\) (\d{1,2}):(\d{2})", re.IGNORECASE)
_BEAM = re.compile(r"([a-z]+)-(\d{1,2})-(\d{4})", re.IGNORECASE)


def locomo_time(text: str) -> datetime:
    """``1:56 pm on 8 May, 2023``; naive, since the file gives no zone."""
    form = "'1:56 pm on 8 May, 2023'"
    found = _match(_LOCOMO, text, form)
    hour, minute, half, day, month, year = found
    if not 1 <= int(hour) <= 12:
        raise ValueError(form)
    hour24 = int(hour) % 12 + (12 if half.lower() == "p" else 0)
    return _time(form, int(year), _month(month, form), int(day), hour24, int(minute))


@lru_cache(maxsize=8192)  # haystacks share sessions, and so their dates
def longmemeval_time(text: str) -> datetime:
    """``2023/05/20 (Sat) 02:21``; naive. The weekday is not checked: it follows from the date."""
    form = "'2023/05/20 (Sat) 02:21'"
    year, month, day, hour, minute = (int(part) for part in _match(_LONGMEMEVAL, text, form))
    return _time(form, year, month, day, hour, minute)


def beam_date(text: str) -> datetime:
    """``March-15-2024``, at midnight; naive."""
    form = "'March-15-2024'"
    month, day, year = _match(_BEAM, text, form)
    return _time(form, int(year), _month(month, form), int(day))


def iso_time(text: str) -> datetime:
    """ISO 8601 date or time, aware when it has an offset, naive when it has none."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("'2024-03-15T14:30' or '2024-03-15T14:30:00+02:00' (ISO 8601)") from None


def _match(pattern: re.Pattern[str], text: str, form: str) -> tuple[str, ...]:
    found = pattern.fullmatch(text) or pattern.fullmatch(" ".join(text.split()))
    if found is None:
        raise ValueError(form)
    return found.groups()


def _month(name: str, form: str) -> int:
    try:
        return _MONTHS.index(name.lower()) + 1
    except ValueError:
        raise ValueError(form) from None


def _time(form: str, year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    try:
        return datetime(year, month, day, hour, minute)
    except ValueError:
        raise ValueError(f"{form}, and a day that exists") from None
