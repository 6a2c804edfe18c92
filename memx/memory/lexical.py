"""BM25 over stemmed words. The statistics are rank-bm25's; scoring reads only the texts that hold a query's word.

Formula (ATIRE BM25, Trotman et al. 2014, as ``rank_bm25.BM25Okapi``): a word's weight in a text is
``idf * tf (k1 + 1) / (tf + k1 (1 - b + b |d| / avgdl))``, negative idf raised to ``epsilon * average idf``.
rank-bm25 walks over all texts for every word of a query; the postings kept here give the same sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Scores = np.ndarray[Any, np.dtype[np.float32]]


class Bm25Index:
    """BM25 scores of tokenised texts; immutable.

    Args:
        tokens: the words of each text, already stemmed.
    """

    def __init__(self, tokens: Sequence[Sequence[str]]) -> None:
        import numpy as np

        self.size = len(tokens)
        self._postings: dict[str, tuple[Any, Any]] = {}
        if not any(tokens):  # rank-bm25 divides by the number of words
            return
        from rank_bm25 import BM25Okapi

        okapi = BM25Okapi(tokens)
        length_norm = okapi.k1 * (1 - okapi.b + okapi.b * np.array(okapi.doc_len) / okapi.avgdl)
        texts: defaultdict[str, list[int]] = defaultdict(list)
        counts: defaultdict[str, list[int]] = defaultdict(list)
        for position, frequencies in enumerate(okapi.doc_freqs):
            for word, count in frequencies.items():
                texts[word].append(position)
                counts[word].append(count)
        for word, positions in texts.items():
            where = np.array(positions, dtype=np.int32)
            tf = np.array(counts[word], dtype=np.float64)
            weights = okapi.idf[word] * tf * (okapi.k1 + 1) / (tf + length_norm[where])
            self._postings[word] = (where, weights.astype(np.float32))

    def scores(self, query: Sequence[str]) -> Scores:
        """The BM25 score of every text for a query's words, shape ``(size,)``; a repeated word counts again."""
        import numpy as np

        total = np.zeros(self.size, dtype=np.float32)
        for word in query:
            if word in self._postings:
                where, weights = self._postings[word]
                total[where] += weights
        return total
