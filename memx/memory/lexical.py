"""BM25 over stemmed words. The statistics are rank-bm25's; scoring reads only the texts that hold a query's word.

Formula (ATIRE BM25, Trotman et al. 2014, as ``rank_bm25.BM25Okapi``): a word's weight in a text is
``idf * tf (k1 + 1) / (tf + k1 (1 - b + b |d| / avgdl))``, negative idf raised to ``epsilon * average idf``.
rank-bm25 walks over all texts for every word of a query; the postings kept here give the same sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Scores = np.ndarray[Any, np.dtype[np.float32]]


class Bm25Index:
    """BM25 weights of words in texts, as postings; immutable.

    Attributes:
        size: number of texts.
        words: row of each word.
        limits: the most that a word can add to a text's score, by row.
    """

    def __init__(self, size: int, words: Sequence[str], arrays: Mapping[str, Any]) -> None:
        self.size = size
        self.words = {word: row for row, word in enumerate(words)}
        self.limits: Scores = arrays["limits"]
        self._starts, self._texts, self._weights = arrays["starts"], arrays["texts"], arrays["weights"]

    @classmethod
    def build(cls, tokens: Sequence[Sequence[str]], idf_of: Bm25Index | None = None) -> Bm25Index:
        """The index of texts given as their words, already stemmed.

        Args:
            idf_of: take the weights of words from this index, over other texts of the same words. A few long texts say
                little about which words are rare.
        """
        import numpy as np

        if not any(tokens):  # rank-bm25 divides by the number of words
            arrays = {"limits": np.zeros(0, np.float32), "starts": np.zeros(1, np.int64)}
            return cls(len(tokens), [], {**arrays, "texts": np.zeros(0, np.int32), "weights": np.zeros(0, np.float32)})
        from rank_bm25 import BM25Okapi

        okapi = BM25Okapi(tokens)
        length_norm = okapi.k1 * (1 - okapi.b + okapi.b * np.array(okapi.doc_len) / okapi.avgdl)
        texts: defaultdict[str, list[int]] = defaultdict(list)
        counts: defaultdict[str, list[int]] = defaultdict(list)
        for position, frequencies in enumerate(okapi.doc_freqs):
            for word, count in frequencies.items():
                texts[word].append(position)
                counts[word].append(count)
        words = list(texts)
        sizes = np.array([len(texts[word]) for word in words])
        where = np.concatenate([np.array(texts[word], dtype=np.int32) for word in words])
        tf = np.concatenate([np.array(counts[word], dtype=np.float64) for word in words])
        if idf_of is None:
            idf = np.array([okapi.idf[word] for word in words])
        else:
            idf = np.array([idf_of.limits[idf_of.words[word]] / (okapi.k1 + 1) for word in words])
        weights = np.repeat(idf, sizes) * tf * (okapi.k1 + 1) / (tf + length_norm[where])
        return cls(
            len(tokens),
            words,
            {
                "limits": (idf * (okapi.k1 + 1)).astype(np.float32),
                "starts": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
                "texts": where,
                "weights": weights.astype(np.float32),
            },
        )

    def arrays(self) -> dict[str, Any]:
        """The numbers of the index, to be saved beside ``words`` and ``size``."""
        return {"limits": self.limits, "starts": self._starts, "texts": self._texts, "weights": self._weights}

    def scores(self, query: Sequence[str]) -> Scores:
        """The BM25 score of every text for a query's words, shape ``(size,)``; a repeated word counts again."""
        import numpy as np

        total = np.zeros(self.size, dtype=np.float32)
        for word in query:
            if word in self.words:
                part = self._slice(word)
                total[self._texts[part]] += self._weights[part]
        return total

    def shares(self, query: Sequence[str]) -> Scores:
        """:meth:`scores` as a share, at most 1, of the most that any text could score for the query.

        In a few short texts every word can stand in most of them; its weight is then negative, and so may be a share.
        """
        limit = sum(max(0.0, float(self.limits[self.words[word]])) for word in query if word in self.words)
        scores = self.scores(query)
        return scores / limit if limit > 0 else scores * 0

    def positions(self, word: str) -> Any:
        """Positions of the texts that hold a word, ascending."""
        return self._texts[self._slice(word)] if word in self.words else self._texts[:0]

    def _slice(self, word: str) -> slice:
        row = self.words[word]
        return slice(int(self._starts[row]), int(self._starts[row + 1]))
