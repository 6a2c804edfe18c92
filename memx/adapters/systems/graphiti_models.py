"""The models that Graphiti is given: an OpenAI-compatible chat model, memx's embedder, and no second reranker."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from memx.adapters.system_models import ReplyParsingError, embedder, llm_address, llm_key, vectors


def chat_model(options: Mapping[str, Any]) -> Any:
    """Graphiti's client for OpenAI-compatible endpoints.

    Its requests are repeated by the openai package, which honours ``Retry-After``; Graphiti's own backoff of up to two
    minutes is left out, and a reply that is no JSON, or of another shape, is asked for again at once.
    """
    import openai
    import pydantic

    generic = importlib.import_module("graphiti_core.llm_client.openai_generic_client")
    config = importlib.import_module("graphiti_core.llm_client.config")
    errors = importlib.import_module("graphiti_core.llm_client.errors")
    retries = options["llm_retries"]

    class Client(generic.OpenAIGenericClient):  # type: ignore[misc,name-defined]
        async def _generate_response_with_retry(
            self, messages: Any, response_model: Any = None, *args: Any, **named: Any
        ) -> Any:
            for left in range(retries, -1, -1):
                try:
                    reply = await self._generate_response(messages, response_model, *args, **named)
                    if response_model is not None:
                        response_model.model_validate(reply)  # which Graphiti will do, where no retry helps
                    return reply
                except (json.JSONDecodeError, pydantic.ValidationError, errors.EmptyResponseError) as error:
                    if not left:
                        raise ReplyParsingError(f"the model's reply: {error}") from error
            return None

    address, key = llm_address(options), llm_key(options)
    requests = openai.AsyncOpenAI(api_key=key, base_url=address, timeout=options["llm_timeout"], max_retries=retries)
    settings = config.LLMConfig(
        api_key=key,
        base_url=address,
        model=options["llm"],
        small_model=options["small_llm"] or options["llm"],
        temperature=0,
    )
    return Client(settings, client=requests, structured_output_mode=options["structured"])


def embedding_model(options: Mapping[str, Any]) -> Any:
    """memx's embedder as Graphiti's."""
    base = importlib.import_module("graphiti_core.embedder.client")
    model = embedder(options)

    class Embedder(base.EmbedderClient):  # type: ignore[misc,name-defined]
        async def create(self, input_data: Any) -> list[float]:
            return vectors(model, [input_data if isinstance(input_data, str) else input_data[0]])[0]

        async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
            return vectors(model, input_data_list)

    return Embedder()


def no_reranker() -> Any:
    """Stands where Graphiti would build a reranker that asks OpenAI; the searches used here need none."""
    base = importlib.import_module("graphiti_core.cross_encoder.client")

    class Unused(base.CrossEncoderClient):  # type: ignore[misc,name-defined]
        async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
            raise NotImplementedError("memx searches without a cross-encoder")

    return Unused()
