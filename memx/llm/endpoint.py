"""One OpenAI-compatible endpoint: its address, key, HTTP client and gate, and what its models were found to refuse."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memx.errors import ModelError, QuotaError, UsageError
from memx.llm.failures import SYSTEM_ROLE, Failure, Kind, read_failure, redactor, shown_url, web_page
from memx.llm.gate import Gate

if TYPE_CHECKING:
    from openai import OpenAI

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT_S = 10.0
CHAT, EMBEDDINGS = "/chat/completions", "/embeddings"


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's reply. Token counts are None where it told none."""

    text: str
    finish_reason: str
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Vectors:
    """A server's vectors in the order of the texts, as many as it sent. The token count is None where it told none."""

    rows: list[list[float]]
    input_tokens: int | None


class NotAnApiReply(Exception):
    """A reply with status 200 that is not what was asked for; ``web_page`` where it is HTML, ``said`` where it is an
    error that a router sends with that status."""

    def __init__(self, *, web_page: bool = False, said: str = "") -> None:
        super().__init__(said or "not an API reply")
        self.web_page = web_page
        self.said = said


class Endpoint:
    """Where models are asked. Safe to share between threads; its key is in no ``repr``, error or log.

    Args:
        base_url: with the version, as in ``https://api.openai.com/v1``.
        api_key: empty where none is set; local servers take any.
        timeout_s: seconds until a silent server counts as failed.
    """

    def __init__(self, base_url: str, api_key: str, gate: Gate, *, timeout_s: float = 120.0) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise UsageError(
                f"base URL '{shown_url(base_url) or base_url}' is no http(s) address", f"Give it as in {OPENAI_URL}."
            )
        self.base_url = base_url.rstrip("/")
        self.gate = gate
        self.timeout_s = timeout_s
        self.has_key = bool(api_key)
        self.redact = redactor(api_key)
        self._api_key = api_key
        self._guard = threading.Lock()
        self._client: OpenAI | None = None
        self._refused: dict[str, frozenset[str]] = {}
        self._given_up = 0

    def __repr__(self) -> str:
        return f"Endpoint({shown_url(self.base_url)!r})"

    def require_key(self, instead: str = "go without a model (--judge-model offline)") -> None:
        """Refuse to go on where a key is surely needed and none is set; ``instead`` is the way around it.

        Raises:
            QuotaError: OpenAI itself is asked without a key.
        """
        if not self.has_key and self.base_url == OPENAI_URL:
            raise QuotaError(
                "no API key is set for the model",
                f"Set OPENAI_API_KEY, or --base-url for another server, or {instead}.",
            )

    def preflight_key(self, model: str) -> str:
        """What a passed preflight is remembered under: another key, address or model is checked anew. One-way: a key
        cannot be had back from it."""
        return hashlib.sha256(json.dumps(["preflight", self.base_url, model, self._api_key]).encode()).hexdigest()

    def post(
        self,
        model: str,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float | None,
        json_mode: bool,
        timeout_s: float | None = None,
    ) -> Reply:
        """Send one request, once.

        Raises:
            openai.OpenAIError: the request failed.
            NotAnApiReply: it succeeded, with a body that is no chat completion.
        """
        refused = self._refused.get(model, frozenset())
        sent = _without_system(messages) if SYSTEM_ROLE in refused else [dict(message) for message in messages]
        arguments: dict[str, Any] = {"model": model, "messages": sent}
        arguments["max_completion_tokens" if "max_tokens" in refused else "max_tokens"] = max_tokens
        if temperature is not None and "temperature" not in refused:
            arguments["temperature"] = temperature
        if json_mode and "response_format" not in refused:
            arguments["response_format"] = {"type": "json_object"}
        return self._read_chat(self._post(CHAT, arguments, timeout_s))

    def embed(self, model: str, texts: Sequence[str], *, timeout_s: float | None = None) -> Vectors:
        """Ask once for the vectors of texts, of which none is empty.

        Raises:
            openai.OpenAIError: the request failed.
            NotAnApiReply: it succeeded, with a body that holds no vectors.
        """
        arguments = {"model": model, "input": list(texts), "encoding_format": "float"}
        return self._read_vectors(self._post(EMBEDDINGS, arguments, timeout_s))

    def failure(self, error: Exception, model: str, *, path: str = CHAT, preflight: bool = False) -> Failure:
        """What an error of :meth:`post` or :meth:`embed` means; one that is none of theirs is raised again."""
        import openai

        if isinstance(error, NotAnApiReply) and error.web_page:
            failure = web_page(self.base_url)
            # In the middle of a run it is a proxy's error page; before it, a wrong address.
            return Failure(Kind.FATAL, failure.error) if preflight else failure
        if isinstance(error, NotAnApiReply) and error.said:
            where, said = shown_url(self.base_url), self.redact(error.said)
            return Failure(Kind.TRANSIENT, ModelError(f"{where} answered with an error: {said[:300]}"))
        if not isinstance(error, NotAnApiReply | openai.OpenAIError):
            raise error
        return read_failure(
            error, model=model, base_url=self.base_url, path=path, has_key=self.has_key, redact=self.redact
        )

    def remember_refusal(self, model: str, parameter: str) -> None:
        """Leave a parameter out, or rename it, in every later request to the model."""
        with self._guard:
            self._refused[model] = self._refused.get(model, frozenset()) | {parameter}

    def refuses(self, model: str) -> frozenset[str]:
        """The parameters that a model was found to refuse."""
        return self._refused.get(model, frozenset())

    def count_given_up(self, given_up: bool) -> int:
        """Count calls that were given up in a row; a success starts over. Returns the count."""
        with self._guard:
            self._given_up = self._given_up + 1 if given_up else 0
            return self._given_up

    def close(self) -> None:
        """Close the connections."""
        with self._guard:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _openai(self) -> OpenAI:
        with self._guard:
            if self._client is None:
                import httpx2
                from openai import OpenAI

                self._client = OpenAI(
                    api_key=self._api_key or "none",
                    base_url=self.base_url,
                    max_retries=0,  # retries are made in one place, where they are counted and shown
                    timeout=httpx2.Timeout(self.timeout_s, connect=min(CONNECT_TIMEOUT_S, self.timeout_s)),
                )
            return self._client

    def _post(self, path: str, body: dict[str, Any], timeout_s: float | None) -> Any:
        import httpx2

        # The package's raw request: its typed one walks through every message twice, 2 ms of CPU for each call.
        return self._openai().post(
            path, body=body, cast_to=httpx2.Response, options={} if timeout_s is None else {"timeout": timeout_s}
        )

    def _read_chat(self, response: Any) -> Reply:
        body: Any = None
        try:
            body = response.json()
            choice = body["choices"][0]
            message = choice["message"]
            said = message.get("content") or message.get("refusal") or ""
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _not_an_api_reply(response.text, body) from None
        said = said if isinstance(said, str) else "".join(_part_text(part) for part in said)
        if self.has_key:
            said = said.replace(self._api_key, "[key]")  # a server that echoes what it was sent
        input_tokens, output_tokens = _counts(body, "prompt_tokens", "completion_tokens")
        return Reply(said, str(choice.get("finish_reason") or ""), input_tokens, output_tokens)

    def _read_vectors(self, response: Any) -> Vectors:
        body: Any = None
        try:
            body = response.json()
            rows = [row["embedding"] for row in sorted(body["data"], key=lambda row: int(row["index"]))]
            if not all(isinstance(value, int | float) for row in rows for value in row[:1]):
                raise TypeError
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _not_an_api_reply(response.text, body) from None
        return Vectors(rows, _counts(body, "prompt_tokens")[0])


def _not_an_api_reply(text: str, body: Any) -> NotAnApiReply:
    if isinstance(body, dict) and body.get("error"):
        return NotAnApiReply(said=json.dumps(body["error"]))
    opening = text[:200].lower()
    return NotAnApiReply(web_page="<html" in opening or "<!doctype html" in opening)


def _counts(body: Mapping[str, Any], *names: str) -> list[int | None]:
    """Token counts of a reply, None where the server told none."""
    usage = body.get("usage") or {}
    counts = [usage.get(name) for name in names]
    return [count if isinstance(count, int) and count >= 0 else None for count in counts]


def _without_system(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The messages with system texts put in front of the first user text."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    rest = [dict(message) for message in messages if message["role"] != "system"]
    if system and rest:
        rest[0]["content"] = f"{system}\n\n{rest[0]['content']}"
    return rest


def _part_text(part: Any) -> str:
    """The text of one part, where a server sends a message's content as a list of parts."""
    return str(part.get("text") or "") if isinstance(part, dict) else str(part)
