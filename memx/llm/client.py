"""One model at one endpoint, asked with retries, cache, counting and caps. Nothing else in memx calls a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from memx.errors import ContextTooLongError, ModelError, UnreadableReply
from memx.llm.cache import KeyedLocks, ResponseCache, cache_key
from memx.llm.endpoint import Endpoint, Reply
from memx.llm.failures import Failure, Kind
from memx.llm.ledger import Ledger
from memx.llm.reading import Unread
from memx.llm.retries import ATTEMPTS, PREFLIGHT_TIMEOUT_S, Retries
from memx.llm.tokens import estimate_messages

T = TypeVar("T")
Message = Mapping[str, str]

#: So long a passed preflight holds, so that a run repeated from the cache asks nothing at all.
PREFLIGHT_HOLDS_S = 3600.0
#: With one reply in five unreadable or empty, one question in 78,000 stays unread after this many re-asks.
REASKS = 6
#: So many characters of an unreadable reply are shown back to the model when it is asked again.
ECHOED_REPLY = 2000
#: So many characters of an unreadable reply are kept in its error.
SHOWN_REPLY = 500
#: Reasoning models spend output tokens before they write; a reply cut off empty is asked again with more, up to this.
MOST_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply.

    Attributes:
        cached: it came from the cache and cost nothing.
        truncated: the model stopped because ``max_tokens`` was used up.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached: bool = False
    truncated: bool = False


@dataclass(slots=True)
class _Room:
    """How many tokens a reply may take; grows when the model uses them up before it writes anything."""

    max_tokens: int
    grown: bool = False

    def grow(self) -> bool:
        """Four times as many, up to the most; False when there is no room left."""
        grown = min(self.max_tokens * 4, MOST_TOKENS)
        if grown <= self.max_tokens:
            return False
        self.max_tokens, self.grown = grown, True
        return True


class LLM:
    """One model, for every role that asks it. Safe to call from several threads.

    Args:
        attempts: how often a request is sent in all when transient faults strike; rate limits do not count.
        reasks: how often an unreadable reply is asked for again.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        ledger: Ledger,
        *,
        cache: ResponseCache | None = None,
        locks: KeyedLocks | None = None,
        attempts: int = ATTEMPTS,
        reasks: int = REASKS,
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self._ledger = ledger
        self._cache = cache
        self._locks = locks or KeyedLocks()
        self._attempts = attempts
        self._reasks = reasks
        self._broken: ModelError | None = None
        self._checked = False
        self._least_tokens = 0  # what replies of this model were found to need

    def __repr__(self) -> str:
        return f"LLM({self.model!r}, {self.endpoint!r})"

    def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        max_tokens: int = 512,
        temperature: float = 0.0,
        salt: str = "",
    ) -> Completion:
        """The model's text for a list of ``{"role", "content"}`` messages.

        Args:
            purpose: what it is counted under: ``judge``, ``answer``, ``diagnose``.
            salt: tells apart requests that are to be answered anew though they are equal, such as repeated votes.

        Raises:
            ModelError: refused, or failed after its retries; see the subclasses for what can be done about it.
            Interrupted: the run was stopped.
        """
        _, completion = self.ask(
            messages, lambda text: text, purpose=purpose, max_tokens=max_tokens, temperature=temperature, salt=salt
        )
        return completion

    def ask(
        self,
        messages: Sequence[Message],
        read: Callable[[str], T],
        *,
        purpose: str,
        reminder: str = "",
        max_tokens: int = 512,
        temperature: float = 0.0,
        json_mode: bool = False,
        salt: str = "",
    ) -> tuple[T, Completion]:
        """A reply that ``read`` can read, asked again with ``reminder`` while it raises ``Unread``.

        Only replies that were read are cached, under the first request, so that a later run can ask again.

        Raises:
            UnreadableReply: no reply could be read; holds the last one.
            ModelError, Interrupted: as :meth:`complete`.
        """
        parameters = {"max_tokens": max_tokens, "temperature": temperature, "json": json_mode}
        key = cache_key(self.model, self.endpoint.base_url, messages, parameters, salt)
        with self._locks.hold(key):
            if (kept := self._cached(key, read, purpose)) is not None:
                return kept
            value, reply = self._ask_until_read(
                messages, read, purpose, reminder, _Room(max(max_tokens, self._least_tokens)), temperature, json_mode
            )
            if self._cache is not None:
                self._cache.put(key, asdict(reply))
        return value, _completion(reply)

    def preflight(self) -> None:
        """Check address, key and model by one tiny request, before anything dear is begun; once per model.

        Raises:
            ModelError: in one line, what is wrong and how to mend it.
        """
        if self._checked:
            return
        self.endpoint.require_key()
        self._ledger.require_price(self.model)
        key = self.endpoint.preflight_key(self.model)
        passed = self._cache.get(key) if self._cache is not None else None
        if passed is not None and 0 <= time.time() - float(passed.get("passed_at", 0)) < PREFLIGHT_HOLDS_S:
            self._checked = True
            return
        self._send(
            [{"role": "user", "content": "Reply with the word OK."}], "preflight", _Room(16), 0.0, False, preflight=True
        )
        self._checked = True
        if self._cache is not None:
            self._cache.put(key, {"passed_at": time.time()})

    def _cached(self, key: str, read: Callable[[str], T], purpose: str) -> tuple[T, Completion] | None:
        kept = self._cache.get(key) if self._cache is not None else None
        if kept is None:
            return None
        try:
            reply = Reply(**kept)
            value = read(reply.text)
        except (TypeError, Unread):
            return None  # kept by another version of memx; ask again
        self._ledger.count_cached(purpose)
        return value, _completion(reply, cached=True)

    def _ask_until_read(
        self,
        messages: Sequence[Message],
        read: Callable[[str], T],
        purpose: str,
        reminder: str,
        room: _Room,
        temperature: float,
        json_mode: bool,
    ) -> tuple[T, Reply]:
        asked: list[Message] = list(messages)
        text = why = ""
        for _ in range(self._reasks + 1):
            reply = self._send(asked, purpose, room, temperature, json_mode)
            text = reply.text
            try:
                return read(text), reply
            except Unread as unread:
                why = str(unread)
                if reply.finish_reason == "length":
                    room.grow()
                asked = [
                    *messages,
                    {"role": "assistant", "content": text[:ECHOED_REPLY]},
                    {"role": "user", "content": f"That reply could not be read: {why}. {reminder}".strip()},
                ]
        said = self.endpoint.redact(" ".join(text.split()))
        raise UnreadableReply(
            f"{self.model} gave no readable reply in {self._reasks + 1} tries: {why}",
            f'The last one was: "{said[:SHOWN_REPLY]}"',
            reply=text,
        )

    def _send(
        self,
        messages: Sequence[Message],
        purpose: str,
        room: _Room,
        temperature: float,
        json_mode: bool,
        *,
        preflight: bool = False,
    ) -> Reply:
        """One reply that is not empty, through gate and retries."""
        retries = Retries(self.endpoint, self._attempts, preflight=preflight)
        empty = 0
        while True:
            known_refusals = self.endpoint.refuses(self.model)
            result = self._send_once(messages, purpose, room, temperature, json_mode, preflight)
            if isinstance(result, Reply):
                if result.text.strip() or preflight:
                    self.endpoint.count_given_up(False)
                    if room.grown:
                        self._least_tokens = max(self._least_tokens, room.max_tokens)
                    return result
                grew = result.finish_reason == "length" and room.grow()
                empty += 0 if grew else 1
                if empty > self._reasks:
                    raise UnreadableReply(f"{self.model} sent {empty} empty replies")
                continue
            if result.kind is Kind.ADAPT and result.refused not in known_refusals:
                self.endpoint.remember_refusal(self.model, result.refused)
                continue
            if result.kind is Kind.ADAPT or result.kind is Kind.REJECTED:
                raise self._with_size(result.error, messages)
            if result.kind is Kind.FATAL:
                self._broken = result.error
                if result.whole_endpoint:
                    self.endpoint.gate.close(result.error)
                raise result.error
            retries.hold_back(result)

    def _send_once(
        self,
        messages: Sequence[Message],
        purpose: str,
        room: _Room,
        temperature: float,
        json_mode: bool,
        preflight: bool,
    ) -> Reply | Failure:
        estimate = estimate_messages(messages)
        with self.endpoint.gate.slot(estimate + room.max_tokens):
            if self._broken is not None:
                raise type(self._broken)(self._broken.message, self._broken.hint)
            reservation = self._ledger.reserve(self.model, estimate, room.max_tokens)
            try:
                reply = self.endpoint.post(
                    self.model,
                    messages,
                    max_tokens=room.max_tokens,
                    temperature=temperature,
                    json_mode=json_mode,
                    timeout_s=min(PREFLIGHT_TIMEOUT_S, self.endpoint.timeout_s) if preflight else None,
                )
            except BaseException as error:
                self._ledger.release(reservation, purpose)
                if not isinstance(error, Exception):
                    raise
                return self.endpoint.failure(error, self.model, preflight=preflight)
            self._ledger.settle(reservation, purpose, reply.input_tokens, reply.output_tokens)
        return reply

    def _with_size(self, error: ModelError, messages: Sequence[Message]) -> ModelError:
        if isinstance(error, ContextTooLongError):
            return ContextTooLongError(
                f"{error.message}; it is about {estimate_messages(messages):,} tokens",
                "Set --context-budget, or a smaller --top-k.",
            )
        return error


def _completion(reply: Reply, *, cached: bool = False) -> Completion:
    return Completion(
        reply.text,
        reply.input_tokens,
        reply.output_tokens,
        cached=cached,
        truncated=reply.finish_reason == "length",
    )
