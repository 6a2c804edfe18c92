"""One embedding model at one endpoint, asked through the same gate, retries, counting and caps as chat models."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from memx.errors import ModelError
from memx.llm.cache import ResponseCache
from memx.llm.client import PREFLIGHT_HOLDS_S
from memx.llm.endpoint import EMBEDDINGS, Endpoint, Vectors
from memx.llm.failures import Failure, Kind, shown_url
from memx.llm.ledger import Ledger
from memx.llm.retries import ATTEMPTS, PREFLIGHT_TIMEOUT_S, Retries
from memx.llm.tokens import estimate_tokens

#: What its calls are counted under.
PURPOSE = "embed"


class EmbeddingModel:
    """An embedding model. Safe to call from several threads.

    Args:
        attempts: how often a request is sent in all when transient faults strike; rate limits do not count.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        ledger: Ledger,
        *,
        cache: ResponseCache | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self._ledger = ledger
        self._cache = cache
        self._attempts = attempts
        self._broken: ModelError | None = None
        self._asking = threading.Lock()
        self._dimension = 0

    def __repr__(self) -> str:
        return f"EmbeddingModel({self.model!r}, {self.endpoint!r})"

    def preflight(self) -> int:
        """Check address, key and model by one tiny request, once; the dimension of the model's vectors.

        A check that passed within the last hour, with the same key, is not repeated.

        Raises:
            ModelError: in one line, what is wrong and how to mend it.
        """
        with self._asking:
            if not self._dimension:
                self.endpoint.require_key("take the embedder that needs none (minilm)")
                self._ledger.require_price(self.model)
                self._dimension = self._remembered() or self._probed()
            return self._dimension

    def embed(self, texts: Sequence[str], *, preflight: bool = False) -> list[list[float]]:
        """The vectors of texts, of which none is empty, by one request; as many as texts, all of one length.

        Raises:
            ContextTooLongError: a text, or all together, is too long for the model.
            ModelError: refused, or failed after its retries, or the reply holds no such vectors.
            Interrupted: the run was stopped.
        """
        retries = Retries(self.endpoint, self._attempts, preflight=preflight)
        while True:
            result = self._send(texts, preflight)
            if isinstance(result, Vectors):
                self.endpoint.count_given_up(False)
                return self._checked(result.rows, len(texts))
            if result.kind is Kind.ADAPT or result.kind is Kind.REJECTED:
                raise result.error
            if result.kind is Kind.FATAL:
                self._broken = result.error
                if result.whole_endpoint:
                    self.endpoint.gate.close(result.error)
                raise result.error
            retries.hold_back(result)

    def _checked(self, rows: list[list[float]], texts: int) -> list[list[float]]:
        found = {len(row) for row in rows}
        what = ""
        if len(rows) != texts:
            what = f"{len(rows)} vectors for {texts} texts"
        elif len(found) > 1:
            what = f"vectors of several dimensions: {', '.join(map(str, sorted(found)))}"
        elif self._dimension and found != {self._dimension}:
            what = f"vectors of dimension {found.pop()}, and of {self._dimension} before"
            if self._cache is not None:
                self._cache.put(self._key(), {"passed_at": 0})  # the next run asks which it is
        if what:
            where = shown_url(self.endpoint.base_url)
            raise ModelError(f"{self.model} at {where} returned {what}", "Is it one embedding model?")
        return rows

    def _send(self, texts: Sequence[str], preflight: bool) -> Vectors | Failure:
        estimate = sum(map(estimate_tokens, texts))
        with self.endpoint.gate.slot(estimate):
            if self._broken is not None:
                raise type(self._broken)(self._broken.message, self._broken.hint)
            reservation = self._ledger.reserve(self.model, estimate, 0)
            timeout_s = min(PREFLIGHT_TIMEOUT_S, self.endpoint.timeout_s) if preflight else None
            try:
                vectors = self.endpoint.embed(self.model, texts, timeout_s=timeout_s)
            except BaseException as error:
                self._ledger.release(reservation, PURPOSE)
                if not isinstance(error, Exception):
                    raise
                return self.endpoint.failure(error, self.model, path=EMBEDDINGS, preflight=preflight)
            known = vectors.input_tokens
            self._ledger.settle(reservation, PURPOSE, known, None if known is None else 0)
        return vectors

    def _remembered(self) -> int:
        kept = self._cache.get(self._key()) if self._cache is not None else None
        if kept is None or not 0 <= time.time() - float(kept.get("passed_at", 0)) < PREFLIGHT_HOLDS_S:
            return 0
        return int(kept.get("dimension", 0))

    def _probed(self) -> int:
        dimension = len(self.embed(["probe"], preflight=True)[0])
        if self._cache is not None:
            self._cache.put(self._key(), {"passed_at": time.time(), "dimension": dimension})
        return dimension

    def _key(self) -> str:
        return self.endpoint.preflight_key(f"{EMBEDDINGS} {self.model}")
