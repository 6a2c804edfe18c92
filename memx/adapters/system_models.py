"""The models that memory systems run by memx itself are given: a chat model for extraction, an embedder for search.

mem0, Graphiti and LangMem are libraries that ask a model of one's own. The options here are the same for all of them;
vectors come from memx's own embedders by default, so that nothing is downloaded and runs compare.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memx.adapters.options import Option, need
from memx.llm.endpoint import OPENAI_URL

if TYPE_CHECKING:
    from memx.memory.embedding import Embedder

MODEL_OPTIONS: Mapping[str, Option] = {
    "llm": Option("gpt-4o-mini", "the chat model that extracts facts"),
    "llm_base_url": Option("", "address of its OpenAI-compatible endpoint", env="OPENAI_BASE_URL"),
    "llm_api_key": Option("", "an API key for the chat model", env="OPENAI_API_KEY", secret=True),
    "llm_timeout": Option(60.0, "seconds that one request to it may take", least=0.1),
    "llm_retries": Option(3, "how often a failed request to it is made again", least=0),
    "embedder": Option("minilm", "minilm, st:NAME or openai:NAME"),
}


class ReplyParsingError(Exception):
    """A chat model's reply is empty, cut off or no JSON, where the library that asked would make nothing of it."""


def need_llm(adapter: str, options: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse a missing key, which only OpenAI's own endpoint surely needs.

    Raises:
        UsageError: neither a key nor another endpoint is given; names the variable.
    """
    if not values["llm_base_url"]:
        need(adapter, options, values, "llm_api_key")


def llm_address(values: Mapping[str, Any]) -> str:
    """The address of the chat model."""
    return str(values["llm_base_url"] or OPENAI_URL)


def llm_key(values: Mapping[str, Any]) -> str:
    """The key of the chat model; a word for endpoints that take any."""
    return str(values["llm_api_key"] or "none")


def embedder(values: Mapping[str, Any]) -> Embedder:
    """The embedder of the options.

    Raises:
        UsageError: no such embedder.
    """
    from memx.memory.embedders import embedder_named

    return embedder_named(values["embedder"])


def vectors(model: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Unit vectors as plain lists, one per text, as the systems' own interfaces want them."""
    rows: list[list[float]] = model.embed(texts).tolist()
    return rows


def described(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest should hold about the models."""
    signature = embedder(values).signature
    return {
        "llm": values["llm"],
        "embedder": signature.model,
        "embedding_dimension": signature.dimension,
        "embedding_sha256": signature.sha256,
    }


def silence(*loggers: str, **environment: str) -> None:
    """Before a library is imported: its log lines no longer reach a terminal that nobody set up logging for, and
    variables that switch off telemetry are set unless the user set them."""
    for name in loggers:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
    for name, value in environment.items():
        os.environ.setdefault(name, value)
