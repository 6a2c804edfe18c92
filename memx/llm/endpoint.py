"""One OpenAI-compatible endpoint: its address, key, HTTP client and gate, and what its models were found to refuse."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memx.errors import QuotaError, UsageError
from memx.llm.failures import SYSTEM_ROLE, redactor, shown_url
from memx.llm.gate import Gate

if TYPE_CHECKING:
    from openai import OpenAI

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's reply. Token counts are None where it told none."""

    text: str
    finish_reason: str
    input_tokens: int | None
    output_tokens: int | None


class NotAnApiReply(Exception):
    """A reply with status 200 that is no chat completion; ``web_page`` where it is HTML, ``said`` where it is an error
    that a router sends with that status."""

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

    def require_key(self) -> None:
        """Refuse to go on where a key is surely needed and none is set.

        Raises:
            QuotaError: OpenAI itself is asked without a key.
        """
        if not self.has_key and self.base_url == OPENAI_URL:
            raise QuotaError(
                "no API key is set for the model",
                "Set OPENAI_API_KEY, or --base-url for another server, or go without a model (--judge-model offline).",
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
        import httpx2

        # The package's raw request: its typed one walks through every message twice, 2 ms of CPU for each call.
        response = self._openai().post(
            "/chat/completions",
            body=arguments,
            cast_to=httpx2.Response,
            options={} if timeout_s is None else {"timeout": timeout_s},
        )
        return self._read(response)

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

    def _read(self, response: Any) -> Reply:
        text = response.text
        body: Any = None
        try:
            body = response.json()
            choice = body["choices"][0]
            message = choice["message"]
            said = message.get("content") or message.get("refusal") or ""
        except (ValueError, LookupError, TypeError, AttributeError):
            if isinstance(body, dict) and body.get("error"):
                raise NotAnApiReply(said=json.dumps(body["error"])) from None
            opening = text[:200].lower()
            raise NotAnApiReply(web_page="<html" in opening or "<!doctype html" in opening) from None
        said = said if isinstance(said, str) else "".join(_part_text(part) for part in said)
        if self.has_key:
            said = said.replace(self._api_key, "[key]")  # a server that echoes what it was sent
        usage = body.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        known = [count if isinstance(count, int) and count >= 0 else None for count in counts]
        return Reply(said, str(choice.get("finish_reason") or ""), known[0], known[1])


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
