"""What an exception of a memory system's client means, read from whatever it carries.

The clients share no classes, but they share habits: a ``status_code`` or ``status``, a ``response`` with headers, a
class name such as ``RateLimitError``, a cause underneath. All of them are looked at, down the chain of causes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memx.llm.failures import retry_after
from memx.text.secrets import hide

_DEEPEST = 6
_SAID_CHARS = 300
#: What is said of a reply that is HTML, in place of its text.
WEB_PAGE = "a web page"
_WEB_PAGE = re.compile(r"<!doctype|<html|<head|<body", re.I)
#: Kinds by the names of exception classes; the first that fits any error of the chain counts, so that a client's own
#: "network error" around a timeout, after which it is not known what was done, is no connection that nobody took.
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("rate_limit", re.compile(r"ratelimit|toomanyrequests|quota|throttl", re.I)),
    ("refused", re.compile(r"auth|unauthori[sz]ed|forbidden|permission(?!error$)", re.I)),
    ("timeout", re.compile(r"timeout|timedout|deadline", re.I)),
    (
        "server",
        re.compile(r"internalserver|serviceunavailable|servererror|badgateway|remoteproto|readerror|disconnec", re.I),
    ),
    (
        "down",
        re.compile(r"connect(ion)?refused|connect(or)?error|connectionerror|apiconnection|networkerror|gaierror", re.I),
    ),
    ("not_found", re.compile(r"notfound", re.I)),
    ("unreadable", re.compile(r"jsondecode|parsingerror|decodingerror|responsevalidation|contenttype|payload", re.I)),
    ("rejected", re.compile(r"badrequest|unprocessable|validationerror|conflict|invalidrequest", re.I)),
)


class Kind(StrEnum):
    """What a failure means for the next call."""

    RATE_LIMIT = "rate_limit"  # refused at the door; wait, then ask again
    DOWN = "down"  # nobody listens, or the connection broke before anything was sent
    TIMEOUT = "timeout"  # no answer in time; whether it was done is not known
    SERVER = "server"  # the system failed inside; whether it was done is not known
    UNREADABLE = "unreadable"  # a web page, half a reply, no JSON
    REFUSED = "refused"  # key or permission; asking again is no use
    NOT_FOUND = "not_found"
    REJECTED = "rejected"  # this request will never succeed
    OTHER = "other"  # not a failure of a call that we know: a fault in the client, or a new kind


#: Kinds that may pass by themselves.
PASSING = frozenset({Kind.RATE_LIMIT, Kind.DOWN, Kind.TIMEOUT, Kind.SERVER, Kind.UNREADABLE})

#: Kinds that tell of what a memory system runs on, not of the system, by the words they are shown in.
INFRASTRUCTURE = {
    Kind.RATE_LIMIT: "rate limit",
    Kind.DOWN: "no connection",
    Kind.TIMEOUT: "timeout",
    Kind.SERVER: "server error",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception, read.

    Attributes:
        status: the HTTP status; None where there was none.
        retry_after_s: what the server asked to wait, in seconds; None where it did not say.
        said: the system's own words on one line, secrets hidden.
    """

    kind: Kind
    said: str
    status: int | None = None
    retry_after_s: float | None = None


def read_failure(error: BaseException) -> Failure:
    """Sort an exception of any client by status, class name and cause."""
    chain = list(_chain(error))
    status = next((code for e in chain if (code := _status(e)) is not None), None)
    said = _said(chain)
    return Failure(
        _kind(chain, status, said), said, status, next((s for e in chain if (s := _wait(e)) is not None), None)
    )


def words_of(error: BaseException) -> str:
    """What the exception says; nothing where its own ``__str__`` fails."""
    try:
        return str(error)
    except Exception:
        return ""


def is_web_page(text: str) -> bool:
    """True for HTML, which a proxy, a login page or a wrong address answers with."""
    return bool(_WEB_PAGE.search(text[:2000]))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and id(now) not in seen and len(seen) < _DEEPEST:
        seen.add(id(now))
        yield now
        now = now.__cause__ or (None if now.__suppress_context__ else now.__context__)


def _status(error: BaseException) -> int | None:
    owners = (error, "status_code"), (error, "status"), (error, "http_status"), (error, "code")
    for owner, name in ((getattr(error, "response", None), "status_code"), *owners):
        value = getattr(owner, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            return value
    return None


def _wait(error: BaseException) -> float | None:
    for headers in (getattr(getattr(error, "response", None), "headers", None), getattr(error, "headers", None)):
        if headers is None or not hasattr(headers, "items"):
            continue
        # Plain dictionaries of headers keep the letters' case, which HTTP does not.
        found = retry_after({str(name).lower(): value for name, value in headers.items()})
        if found is not None:
            return found
    details = getattr(error, "debug_info", None)
    value = (
        getattr(error, "retry_after", None)
        or getattr(error, "retry_after_seconds", None)
        or (details.get("retry_after") if isinstance(details, Mapping) else None)
    )
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _kind(chain: list[BaseException], status: int | None, said: str) -> Kind:
    if status is not None:
        by_status = _kind_of_status(status)
        if by_status is not None:
            return by_status
    for error in chain:
        if isinstance(error, json.JSONDecodeError):
            return Kind.UNREADABLE
        if isinstance(error, TimeoutError):
            return Kind.TIMEOUT
        if isinstance(error, ConnectionError):
            return Kind.DOWN if isinstance(error, ConnectionRefusedError) else Kind.SERVER
    if status is None and said != WEB_PAGE:
        for kind, name in _NAMES:
            if any(name.search(type(error).__name__) for error in chain):
                return Kind(kind)
    return Kind.UNREADABLE if said == WEB_PAGE else Kind.OTHER


def _decoded(body: Any) -> Any:
    """A body that the client left as JSON text, decoded; else the body as it is."""
    try:
        return json.loads(body) if isinstance(body, str) else body
    except ValueError:
        return body


def _kind_of_status(status: int) -> Kind | None:
    if status == 429:
        return Kind.RATE_LIMIT
    if status in (401, 402, 403):
        return Kind.REFUSED
    if status == 404:
        return Kind.NOT_FOUND
    if status in (408, 504):
        return Kind.TIMEOUT
    if status >= 500:
        return Kind.SERVER
    if status >= 400:
        return Kind.REJECTED
    return Kind.UNREADABLE if 200 <= status < 300 else None


def _said(chain: list[BaseException]) -> str:
    texts = [words_of(error) for error in chain]
    read = [error.doc for error in chain if isinstance(error, json.JSONDecodeError)]
    if any(is_web_page(text) for text in (*texts, *read)):
        return WEB_PAGE
    text = next((text for text in texts if text.strip()), type(chain[0]).__name__)
    for error in chain:
        body = getattr(error, "body", None) or getattr(error, "response_body", None)
        body = body.model_dump() if body is not None and hasattr(body, "model_dump") else _decoded(body)
        if isinstance(body, Mapping):
            message = body.get("message") or body.get("detail") or body.get("error")
            message = message.get("message") if isinstance(message, Mapping) else message
            if isinstance(message, str) and message.strip():
                text = message
                break
    return hide(" ".join(text.split()))[:_SAID_CHARS]
