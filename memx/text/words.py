"""Words of a text for matching and ranking: lower-cased, English stop words dropped, stemmed (Snowball English).

Stemmer and stop words come from libraries (PyStemmer; NLTK's English list as bm25s carries it); only the splitting is
ours, so that ``don't`` and ``3.5`` stay one word each.
"""

from __future__ import annotations

import importlib.util
import re
import runpy
import threading
import unicodedata
from functools import lru_cache
from pathlib import Path

# Japanese has no blanks: a run of one script (kanji, katakana, hiragana), or a number with its counter, is a word.
_KANJI_NUMBER = "[一二三四五六七八九十百千万]"
WORD = re.compile(
    r"\d+(?:[.,:]\d+)+|[^\W\u3040-\u30ff\u3400-\u9fff]+(?:['’]\w+)*"
    rf"|{_KANJI_NUMBER}+[\u3400-\u9fff]?|(?:(?!{_KANJI_NUMBER})[々\u3400-\u9fff])+|[\u30a0-\u30ff]+|[\u3040-\u309f]+"
)
_per_thread = threading.local()


def words(text: str) -> list[str]:
    """The words of a text in order, lower-cased, with compatibility forms folded (NFKC)."""
    return [word.replace("’", "'") for word in WORD.findall(unicodedata.normalize("NFKC", text).lower())]


def stems(text: str) -> list[str]:
    """The stemmed words of a text in order, stop words dropped: what BM25 and the text rules compare."""
    stop = stop_words()
    return [stem(word) for word in words(text) if word not in stop]


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """The English stop words: NLTK's list of 179, which ``bm25s`` carries."""
    package = importlib.util.find_spec("bm25s")
    assert package is not None and package.submodule_search_locations
    # Loaded by path: the package's own __init__ costs a quarter of a second and needs numpy.
    path = Path(package.submodule_search_locations[0]) / "stopwords.py"
    return frozenset(runpy.run_path(str(path))["STOPWORDS_EN_PLUS"])


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """The Snowball (English) stem of one lower-cased word, a possessive ending dropped."""
    stemmer = getattr(_per_thread, "stemmer", None)
    if stemmer is None:
        import Stemmer

        # One per thread: a PyStemmer object must not be shared between threads.
        stemmer = _per_thread.stemmer = Stemmer.Stemmer("english")
    stemmed: str = stemmer.stemWord(word.removesuffix("'s"))
    return stemmed
