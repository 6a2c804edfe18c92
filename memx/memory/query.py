"""A query and what is known about it. Everything dear is computed once, by the worker that asks first."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memx.errors import MemxError
from memx.memory.dense import DenseIndex
from memx.memory.features import Features
from memx.memory.lexical import Bm25Index
from memx.text.dates import dates_in
from memx.text.names import names_in
from memx.text.words import stems, words

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]

_ASKS_DATE = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|month|date|day|week)\b|\bhow long\b", re.IGNORECASE)
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|often|old|long|far)\b|\bwhat (?:number|percentage|age)\b", re.IGNORECASE)
#: Speakers that are called by their part are no names: a question about "user logins" names nobody.
_PARTS = frozenset(("user", "assistant", "system", "tool"))
_MAIN_SPEAKER = 0.2
_FIRST_PERSON = frozenset(("i", "me", "my", "mine", "i'm", "i've", "i'd", "i'll"))


@dataclass(frozen=True, slots=True)
class Indexes:
    """What workers read.

    Attributes:
        embedded: some texts have vectors; a text stored without has the zero vector.
        features: only ranking and the workers of mode ``full`` need them.
    """

    dense: DenseIndex
    bm25: Bm25Index
    embedded: bool = True
    features: Features | None = None


class Query:
    """A query over one state of the store. Safe to share between workers.

    Args:
        embed: texts to unit vectors.
        today: relative dates and dates without a year are read against it.
    """

    def __init__(
        self, text: str, indexes: Indexes, embed: Callable[[list[str]], Floats], today: date | None = None
    ) -> None:
        self.text = text
        self.indexes = indexes
        self.stems = stems(text)
        self.words = words(text)
        self._embed = embed
        self._today = today
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._known: dict[str, Any] = {}

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """A value that is computed by whoever asks first, while others that want it wait; each name has its own lock,
        so that one value that never comes holds up nobody who does not need it."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        if name not in self._known:
            with lock:
                if name not in self._known:
                    self._known[name] = compute()
        return self._known[name]

    @property
    def vector(self) -> Floats:
        """The unit vector of :attr:`topic`, shape ``(dimension,)``; who asks after a failure gets the same error."""
        vector: Floats | MemxError = self.once("vector", self._embedded)
        if isinstance(vector, MemxError):
            raise vector
        return vector

    def _embedded(self) -> Floats | MemxError:
        try:
            vector: Floats = self._embed([self.topic])[0]
        except MemxError as error:
            return error
        return vector

    @cached_property
    def topic(self) -> str:
        """What the query's vector is of: the text; with features, the text without the main speakers that it names.

        The name of one who said a fifth of all texts or more draws the vector to all of them and tells them apart from
        none. Who spoke is an attribute, which ranking weighs apart.
        """
        features = self.indexes.features
        if features is None:
            return self.text
        names = [
            value
            for name, value in self._named(features)
            if name == "speaker" and len(features.attributes[name, value]) >= _MAIN_SPEAKER * features.size
        ]
        if not names:
            return self.text
        pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        rest = re.sub(rf"(?<!\w)(?:{pattern})(?:['’]s)?(?!\w)", "", self.text, flags=re.IGNORECASE)
        return " ".join(rest.split()) if words(rest) else self.text

    @property
    def semantic(self) -> Floats:
        """The cosine of every text with the query; zeros where there are no vectors."""
        import numpy as np

        dense = self.indexes.dense
        if not self.indexes.embedded:
            return np.zeros(len(dense), dtype=np.float32)
        found: Floats = self.once("semantic", lambda: dense.similarities(self.vector))
        return found

    def cosines(self, positions: list[int]) -> list[float]:
        """The cosines of some texts, without those of all others."""
        if "semantic" in self._known or not self.indexes.embedded:
            return [float(self.semantic[position]) for position in positions]
        found: list[float] = (self.indexes.dense.rows(positions) @ self.vector).tolist()
        return found

    @property
    def has_vector(self) -> bool:
        """The query's vector has come, or is not needed."""
        vector = self._known.get("vector")
        return not self.indexes.embedded or not (vector is None or isinstance(vector, MemxError))

    def wait_for_nobody(self) -> None:
        """Compute anew what a worker that is late has begun to compute."""
        with self._guard:
            self._locks = {}

    def drop_semantic(self) -> bool:
        """Go on without the query's vector if it has not come; True when it has not."""
        import numpy as np

        if self.has_vector:
            return False
        self._known["semantic"] = np.zeros(len(self.indexes.dense), dtype=np.float32)
        return True

    @property
    def token(self) -> Floats:
        """The BM25 share of every text."""
        found: Floats = self.once("token", lambda: self.indexes.bm25.shares(self.stems))
        return found

    @cached_property
    def dates(self) -> list[tuple[int, int]]:
        """First and last day, as ordinals, of every date the query names."""
        return [(d.start.toordinal(), d.end.toordinal()) for d in dates_in(self.text, self._today)]

    @cached_property
    def asks_date(self) -> bool:
        """The answer is a date or a duration."""
        return bool(_ASKS_DATE.search(self.text))

    @cached_property
    def asks_number(self) -> bool:
        """The answer is a number."""
        return bool(_ASKS_NUMBER.search(self.text))

    def attributes(self, features: Features) -> list[tuple[str, str]]:
        """Attributes of the store that the query asks for: a value that it names, when it names no other value of that
        attribute; and, when it names no speaker and says "I" or "my", what the user said."""
        named: dict[str, list[tuple[str, str]]] = {}
        for name, value in self._named(features):
            named.setdefault(name, []).append((name, value))
        found = [attributes[0] for attributes in named.values() if len(attributes) == 1]
        if "speaker" not in named and _FIRST_PERSON & set(self.words) and ("role", "user") in features.attributes:
            found.append(("role", "user"))
        return found

    def _named(self, features: Features) -> list[tuple[str, str]]:
        """The attributes of the store whose value stands in the query."""
        plain = [word.removesuffix("'s") for word in self.words]
        asked, padded = set(plain), f" {' '.join(plain)} "
        return [
            (name, value)
            for name, value in features.attributes
            if name != "role" and value not in _PARTS and (value in asked or (" " in value and f" {value} " in padded))
        ]

    def entities(self, features: Features) -> list[str]:
        """Names in the query that the store knows as entities."""
        return [key for key in dict.fromkeys(n.key for n in names_in(self.text)) if key in features.entities]
