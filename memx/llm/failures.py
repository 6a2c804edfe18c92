"""What a failed request means: try again, adapt, or stop asking."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from memx.errors import ContextTooLongError, ModelError, QuotaError

RETRIED_STATUS = frozenset({408, 409, 429})
_QUOTA = re.compile(r"insufficient[_ ]quota|exceeded your current quota|billing|credit balance|out of credit", re.I)
_CONTEXT = re.compile(r"context[_ ]length|context window|maximum context|too many tokens|prompt is too long", re.I)
_NO_MODEL = re.compile(r"model[^.]*(not[ _]found|does not exist|not exist|unknown|invalid)|no such model", re.I)
_REFUSED = re.compile(
    r"unsupported|not support|does not support|invalid|unrecognized|unknown|only the default|must be", re.I
)
_KEY_LIKE = re.compile(r"\b(sk|key|pk|rk)-[\w*.\-]{4,}|(?<=Bearer )\S+", re.I)
#: Parameters that some models refuse, each dropped or renamed once and remembered.
ADAPTABLE = ("temperature", "max_tokens", "response_format")
#: Stands for messages of the role ``system`` where a model takes none.
SYSTEM_ROLE = "system role"


class Kind(StrEnum):
    """What to do about a failure."""

    RATE_LIMIT = "rate_limit"  # wait as long as the server says, then ask again
    TRANSIENT = "transient"  # back off, then ask again
    SILENT = "silent"  # as transient: no answer in time
    DOWN = "down"  # as transient, but nobody listens there at all
    ADAPT = "adapt"  # ask again without the refused parameter
    REJECTED = "rejected"  # this request will never succeed
    FATAL = "fatal"  # no request to this model or endpoint will succeed


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request, read.

    Attributes:
        error: what to raise when it is not asked again.
        retry_after_s: what the server asked to wait, in seconds; None where it did not say.
        refused: the parameter to adapt.
        whole_endpoint: with ``FATAL``: not only this model.
    """

    kind: Kind
    error: ModelError
    retry_after_s: float | None = None
    refused: str = ""
    whole_endpoint: bool = False


def shown_url(base_url: str) -> str:
    """An address without user, password and query, where keys are put at times."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    return urlunsplit((parts.scheme, f"{host}:{parts.port}" if parts.port else host, parts.path, "", ""))


def redactor(api_key: str) -> Callable[[str], str]:
    """A function that takes the key, and whatever looks like one, out of a text."""

    def redact(text: str) -> str:
        if len(api_key) >= 4:
            text = text.replace(api_key, "[key]")
        return _KEY_LIKE.sub("[key]", text)

    return redact


def read_failure(
    error: Exception,
    *,
    model: str,
    base_url: str,
    has_key: bool,
    redact: Callable[[str], str],
    path: str = "/chat/completions",
) -> Failure:
    """Sort an exception of the ``openai`` package, or of reading its reply; ``path`` is what was asked for."""
    import openai

    where = shown_url(base_url)
    if isinstance(error, openai.APITimeoutError):
        return Failure(
            Kind.SILENT, ModelError(f"{where} gave no answer in time", "Raise MEMX_MODEL_TIMEOUT (seconds).")
        )
    if isinstance(error, openai.APIConnectionError):
        return _connection(error, where, redact)
    if isinstance(error, openai.APIStatusError):
        return _status(error, model, where, path, has_key, redact)
    return Failure(Kind.TRANSIENT, ModelError(f"{where} sent a reply that is cut off or no JSON"))


def web_page(base_url: str) -> Failure:
    """The failure of an endpoint that answers with something else than the API's JSON."""
    hint = "The base URL should be that of an OpenAI-compatible API" + _without_v1(base_url)
    where = shown_url(base_url)
    return Failure(Kind.TRANSIENT, ModelError(f"{where} answers with a web page, not as a model API", f"{hint}."))


def _without_v1(base_url: str) -> str:
    path = urlsplit(base_url).path.rstrip("/")
    return "" if re.search(r"/v\d", path) else f"; most end in /v1: {shown_url(base_url).rstrip('/')}/v1"


def _connection(error: Exception, where: str, redact: Callable[[str], str]) -> Failure:
    cause = error.__cause__
    if "Connect" in type(cause).__name__:
        detail = redact(str(cause)) or type(cause).__name__
        return Failure(
            Kind.DOWN, ModelError(f"{where} cannot be reached ({detail})", "Is the server up, and --base-url right?")
        )
    return Failure(Kind.TRANSIENT, ModelError(f"{where} dropped the connection"))


def _status(error: Any, model: str, where: str, path: str, has_key: bool, redact: Callable[[str], str]) -> Failure:
    status: int = error.status_code
    code = f"{getattr(error, 'code', None) or ''} {getattr(error, 'type', None) or ''}"
    said = _said(error, redact)
    if status == 401:
        message = f"{where} refuses the API key" if has_key else f"{where} wants an API key and none is set"
        return _fatal(QuotaError(f"{message} (401)", "Set OPENAI_API_KEY, or MEMX_API_KEY for this endpoint."))
    if status in (402, 403) or (status == 429 and _QUOTA.search(f"{code} {said}")):
        message = f"{where} refuses: no credit left or no permission ({status}: {said})"
        return _fatal(QuotaError(message, "Top up or change the key, then resume the run."))
    if status in RETRIED_STATUS or status >= 500:
        kind = Kind.RATE_LIMIT if status == 429 else Kind.TRANSIENT
        return Failure(kind, ModelError(f"{where} answered {status}: {said}"), retry_after(error.response.headers))
    if status == 404 or (status == 400 and _NO_MODEL.search(f"{code} {said}")):
        return _not_found(error, model, where, path, said)
    if status in (400, 413, 422) and (status == 413 or _CONTEXT.search(f"{code} {said}")):
        return Failure(Kind.REJECTED, ContextTooLongError(f"{model}: the prompt does not fit the context ({said})"))
    if status in (400, 422) and _REFUSED.search(f"{code} {said}"):
        named = str(getattr(error, "param", None) or "")
        refused = next((name for name in ADAPTABLE if name in named or name in said), "")
        if not refused and re.search(r"\brole", f"{named} {said}") and "system" in said.lower():
            refused = SYSTEM_ROLE
        if refused:
            return Failure(Kind.ADAPT, ModelError(f"{model} refuses {refused}: {said}"), refused=refused)
    return Failure(Kind.REJECTED, ModelError(f"{where} refuses the request ({status}: {said})"))


def _not_found(error: Any, model: str, where: str, path: str, said: str) -> Failure:
    named = error.body if isinstance(error.body, dict) else {}
    if _NO_MODEL.search(f"{named.get('code', '')} {said}") or model in said:
        return Failure(
            Kind.FATAL,
            ModelError(f"{where} has no model '{model}' ({said})", "Check the model's name and your access."),
        )
    hint = "Check --base-url" + _without_v1(where)
    return Failure(Kind.FATAL, ModelError(f"{where}{path} does not exist (404)", f"{hint}."))


def _fatal(error: ModelError) -> Failure:
    return Failure(Kind.FATAL, error, whole_endpoint=True)


def _said(error: Any, redact: Callable[[str], str]) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    if not isinstance(said, str) or not said:
        said = "a web page" if "<html" in str(body).lower() else str(body or error.message)
    return redact(" ".join(said.split()))[:300]


def retry_after(headers: Any) -> float | None:
    """Seconds from ``Retry-After-Ms`` or ``Retry-After`` (RFC 9110: seconds or a date); None where unreadable."""
    try:
        if value := headers.get("retry-after-ms"):
            return max(0.0, float(value) / 1000)
        value = headers.get("retry-after")
        if not value:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
