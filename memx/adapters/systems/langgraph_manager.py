"""LangMem's memory manager over a LangGraph store, with the failures of its model brought to light.

LangMem applies the model's tool calls through trustcall, which takes any failure of the model (no key, a rate limit)
for a faulty call and asks again, with the error in the prompt, until its recursion limit; a call that cannot be read
is left out without a word.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memx.adapters.provenance import said, said_at
from memx.adapters.system_models import ReplyParsingError, llm_address, llm_key
from memx.model import Session, Turn


class Manager:
    """The manager.

    Args:
        namespace: parts of the store's namespace, ``{entity}`` standing for the entity.
        note: takes what is odd and no failure.
    """

    def __init__(
        self, options: Mapping[str, Any], store: Any, namespace: tuple[str, ...], note: Callable[[str], None]
    ) -> None:
        self._note = note
        openai, langmem = importlib.import_module("langchain_openai"), importlib.import_module("langmem")
        model = openai.ChatOpenAI(
            model=options["llm"],
            base_url=llm_address(options),
            api_key=llm_key(options),
            timeout=options["llm_timeout"],
            max_retries=options["llm_retries"],
            temperature=0,
        )
        self._manager = langmem.create_memory_store_manager(
            model,
            namespace=namespace,
            store=store,
            enable_deletes=options["deletes"],
            query_limit=options["query_limit"],
        )

    def invoke(self, session: Session, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """What the manager put into the store for these turns; raises what its model failed with."""
        listener = _listener()
        config = {"configurable": {"entity": session.entity_id}, "callbacks": [listener]}
        messages = [_message(session, turn) for turn in turns]
        try:
            puts: list[dict[str, Any]] = self._manager.invoke({"messages": messages}, config=config)
        except Exception:
            if listener.failure is None:
                raise
            puts = []
        if listener.failure is not None:
            raise listener.failure
        if not listener.calls:
            self._note("the model that remembers answered without a call: nothing was stored of what it was given")
        return puts


def _message(session: Session, turn: Turn) -> dict[str, str]:
    at = said_at(session, turn)
    when = f"[{at.isoformat(' ', 'minutes')}] " if at else ""
    return {"role": "assistant" if turn.role == "assistant" else "user", "content": when + said(turn)}


def _listener() -> Any:
    """Keeps the first failure of the model, and lets no further request leave after it."""
    base = importlib.import_module("langchain_core.callbacks").BaseCallbackHandler

    class Listener(base):  # type: ignore[misc,valid-type]
        raise_error = True
        failure: BaseException | None = None
        calls = 0

        def on_chat_model_start(self, *args: Any, **named: Any) -> None:
            if self.failure is not None:
                raise RuntimeError("the model failed before")

        def on_llm_error(self, error: BaseException, **named: Any) -> None:
            self.failure = self.failure or error

        def on_llm_end(self, response: Any, **named: Any) -> None:
            for message in (one.message for several in response.generations for one in several):
                self.calls += len(message.tool_calls)
                unread = message.invalid_tool_calls
                if unread:
                    self._fail(f"calls {unread[0].get('name')} with {unread[0].get('args')!r:.80}")
                elif message.response_metadata.get("finish_reason") == "length":
                    self._fail("is cut off")
                elif not message.tool_calls and not message.content:
                    self._fail("is empty")

        def _fail(self, how: str) -> None:
            self.failure = self.failure or ReplyParsingError(f"the model's reply {how}")

    return Listener()
