"""``http``: a memory service in any language, driven over HTTP by the documented contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from memx.adapters.calls import Calls
from memx.adapters.failures import is_web_page
from memx.adapters.options import Option, need, read_options
from memx.adapters.systems import messages
from memx.adapters.systems.service import ServiceMemory
from memx.errors import AdapterError, UsageError
from memx.llm.failures import shown_url
from memx.text.secrets import remember

if TYPE_CHECKING:
    import httpx2

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class ServiceError(Exception):
    """The service answered with an error, or with something that is no reply.

    Attributes:
        status_code, headers: as ``memx.adapters.failures`` reads them from any client's exception.
    """

    def __init__(self, text: str, status_code: int | None, headers: Mapping[str, str]) -> None:
        super().__init__(text)
        self.status_code = status_code
        self.headers = headers


class HttpMemory(ServiceMemory):
    """A memory service that speaks the contract in memory_service.openapi.json, in any language.

    One connection per case is kept open. Nothing is followed that redirects, and a loopback address takes no proxy.
    """

    name = "http"
    keeps_data = True
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "url": Option("", "the address of the service, such as http://localhost:8077", env="MEMX_HTTP_URL"),
        "token": Option("", "sent as Authorization: Bearer", env="MEMX_HTTP_TOKEN", secret=True),
        "header": Option("", "one more header, as 'X-Api-Key: ...'", env="MEMX_HTTP_HEADER", secret=True),
        "timeout_s": Option(60.0, "how long one reply may take, in seconds", least=0.001),
        "page_size": Option(200, "facts asked for at a time", least=1),
        "attempts": Option(4, "how often a call is made at most, where that is safe", least=1),
    }

    def __init__(self, **options: Any) -> None:
        given = read_options(self.name, self.OPTIONS, options)
        url = need(self.name, self.OPTIONS, given, "url").rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"option url of adapter http is no http address: '{shown_url(url)}'")
        if parts.password:
            remember(parts.password)
            if given["token"]:
                message = "adapter http takes a token or a user and password in its url, not both"
                raise UsageError(message, "Both are sent as Authorization.")
        self._url = url
        self._headers = _headers(given["token"], given["header"])
        self._timeout_s: float = given["timeout_s"]
        self.page_size = given["page_size"]
        self.calls = Calls(self.name, key="MEMX_HTTP_TOKEN", where=shown_url(url), attempts=given["attempts"])
        self._client: httpx2.Client | None = None

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "url": shown_url(self._url)}

    def ask(self, method: str, params: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        client = self._client or self._connect()
        return _read(
            client.post(f"/v1/{method}", content=messages.encoded(params), timeout=timeout_s or self._timeout_s)
        )

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connect(self) -> httpx2.Client:
        import httpx2

        loopback = urlsplit(self._url).hostname in _LOOPBACK
        self._client = httpx2.Client(base_url=self._url, headers=self._headers, trust_env=not loopback)
        return self._client


def _read(reply: httpx2.Response) -> Mapping[str, Any]:
    if reply.is_redirect:
        to = shown_url(reply.headers.get("location", ""))
        raise AdapterError(f"http: the service redirects to {to}", "Give the address itself, and the same scheme.")
    if is_web_page(reply.text):
        raise ServiceError(reply.text, reply.status_code if reply.is_error else None, reply.headers)
    if not reply.is_error:
        return messages.decoded(reply.content)
    try:
        error: Any = messages.decoded(reply.content).get("error")
    except ValueError:
        error = reply.text[:200]
    said = str((error.get("message") if isinstance(error, Mapping) else error) or reply.reason_phrase)
    raise ServiceError(said, reply.status_code, reply.headers)


def _headers(token: str, extra: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if extra:
        name, colon, value = extra.partition(":")
        if not colon or not name.strip():
            raise UsageError("option header of adapter http is written 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers
