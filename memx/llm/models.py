"""What a run builds once: the endpoint, the counting and a client for each model that a role names."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from memx.errors import UsageError
from memx.llm.cache import KeyedLocks, ResponseCache
from memx.llm.client import LLM
from memx.llm.embeddings import EmbeddingModel
from memx.llm.endpoint import OPENAI_URL, Endpoint
from memx.llm.failures import shown_url
from memx.llm.gate import Clock, Gate, Wait
from memx.llm.ledger import Ledger
from memx.llm.prices import load_prices

DEFAULT_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How models are asked, as options give it; holds no key, so that it may be stored with a run.

    Attributes:
        base_url: None: ``MEMX_BASE_URL``, ``OPENAI_BASE_URL``, else OpenAI itself.
        concurrency: requests at once, over all roles.
        timeout_s: seconds until a silent server counts as failed; None: ``MEMX_MODEL_TIMEOUT``, else 120.
        requests_per_minute, tokens_per_minute: None: ``MEMX_REQUESTS_PER_MINUTE`` and ``MEMX_TOKENS_PER_MINUTE``, else
            no limit but the server's own.
        max_cost: US dollars.
        prices: a price file; None: ``MEMX_PRICES``, else the shipped table alone.
    """

    base_url: str | None = None
    concurrency: int = 16
    timeout_s: float | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    prices: Path | None = None


class Models:
    """Clients for the models of one run, behind one gate and one ledger.

    The key is read from ``MEMX_API_KEY`` or else ``OPENAI_API_KEY``, and stays inside the endpoint.

    Args:
        cache: where replies are kept; None to keep none.
        stop: set it to refuse every further call, waiting ones within a quarter of a second.
        on_wait: told of every wait as it begins.

    Raises:
        UsageError: an option out of range.
        InputError: a price file that cannot be read.
    """

    def __init__(
        self,
        settings: ModelSettings | None = None,
        *,
        cache: ResponseCache | None = None,
        stop: threading.Event | None = None,
        on_wait: Callable[[Wait], None] | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        settings = settings or ModelSettings()
        timeout_s = settings.timeout_s or _number(environ, "MEMX_MODEL_TIMEOUT") or DEFAULT_TIMEOUT_S
        if not 0 < timeout_s < float("inf"):
            raise UsageError(f"the model timeout is more than 0 seconds, not {timeout_s:g}")
        self.settings = settings
        prices = settings.prices or (Path(environ["MEMX_PRICES"]) if environ.get("MEMX_PRICES") else None)
        self.ledger = Ledger(load_prices(prices), max_calls=settings.max_calls, max_cost=settings.max_cost)
        base_url = settings.base_url or environ.get("MEMX_BASE_URL") or environ.get("OPENAI_BASE_URL") or OPENAI_URL
        gate = Gate(
            shown_url(base_url),
            concurrency=settings.concurrency,
            requests_per_minute=settings.requests_per_minute or _count(environ, "MEMX_REQUESTS_PER_MINUTE"),
            tokens_per_minute=settings.tokens_per_minute or _count(environ, "MEMX_TOKENS_PER_MINUTE"),
            stop=stop,
            on_wait=on_wait,
            clock=clock,
        )
        key = environ.get("MEMX_API_KEY") or environ.get("OPENAI_API_KEY") or ""
        self.endpoint = Endpoint(base_url, key.strip(), gate, timeout_s=timeout_s)
        self._cache = cache
        self._locks = KeyedLocks()
        self._clients: dict[str, LLM] = {}
        self._embedding_models: dict[str, EmbeddingModel] = {}

    def llm(self, model: str) -> LLM:
        """The client for a model; the same one each time."""
        if not model:
            raise UsageError("a model's name is empty", "Name one, as in --judge-model gpt-4o-mini.")
        return self._clients.setdefault(
            model, LLM(model, self.endpoint, self.ledger, cache=self._cache, locks=self._locks)
        )

    def embeddings(self, model: str) -> EmbeddingModel:
        """The client for an embedding model; the same one each time."""
        return self._embedding_models.setdefault(
            model, EmbeddingModel(model, self.endpoint, self.ledger, cache=self._cache)
        )

    def summary(self) -> dict[str, int | float | None]:
        """The counts as they stand in ``last_run.json``: calls, cached, input_tokens, output_tokens, cost (US dollars,
        None when it is not known)."""
        usage = self.ledger.usage()
        return {
            "calls": usage.calls,
            "cached": usage.cached,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": usage.cost,
        }

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()

    def __enter__(self) -> Models:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _number(environ: Mapping[str, str], name: str) -> float | None:
    value = environ.get(name)
    if not value:
        return None
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{name} is a number, not '{value}'") from None


def _count(environ: Mapping[str, str], name: str) -> int | None:
    number = _number(environ, name)
    if number is not None and (number != number // 1 or number < 1):
        raise UsageError(f"{name} is a whole number from 1, not '{environ[name]}'")
    return None if number is None else int(number)
