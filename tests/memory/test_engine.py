"""The engine: modes, workers, ranking, diagnostics, and what it does with bad input."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from memx.errors import MemxError, UsageError
from memx.memory import engine as engine_module
from memx.memory.dense import DenseIndex
from memx.memory.embedding import EmbeddingError
from memx.memory.engine import MODES, MemoryEngine
from memx.memory.fusion import reciprocal_rank_fusion
from memx.memory.lexical import Bm25Index
from memx.memory.query import Query
from memx.memory.ranking import Weights
from memx.memory.rows import Memory
from memx.memory.signals import registry
from memx.memory.workers import WORKERS, Bm25Worker, best
from tests.memory.fixtures import HashedWords, history

WORDS = st.sampled_from(["run", "dog", "sea", "name", "race", "blue"])


def filled(mode: str = "full", **options: Any) -> MemoryEngine:
    engine = MemoryEngine(HashedWords(), mode, **options)
    engine.insert_batch(history())
    return engine


def found(engine: MemoryEngine, query: str, limit: int = 3) -> list[str]:
    return [hit.memory.memory_id for hit in engine.recall(query, limit).hits]


# ----------------------------------------------------------------------------------------------------------- indexes


@given(st.lists(st.lists(WORDS, max_size=8), min_size=1, max_size=12), st.lists(WORDS, max_size=6))
def test_bm25_scores_are_rank_bm25s(texts: list[list[str]], query: list[str]) -> None:
    index = Bm25Index.build(texts)
    expected = BM25Okapi(texts).get_scores(query) if any(texts) else np.zeros(len(texts))
    assert np.allclose(index.scores(query), expected, atol=1e-5)
    assert all(index.shares(query) <= 1 + 1e-5)


@given(st.lists(st.floats(-1, 5, width=32), max_size=40), st.integers(1, 10))
def test_best_is_a_stable_sort_of_the_positive_scores(scores: list[float], limit: int) -> None:
    expected = sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: -scores[i])[:limit]
    assert [position for position, _ in best(np.array(scores, dtype=np.float32), limit)] == expected


def test_fusion_adds_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([[7, 3], [3, 9]], k=60)
    assert list(fused) == [3, 7, 9]
    assert fused[3] == pytest.approx(1 / 62 + 1 / 61)


def test_index_of_another_dimension_is_refused() -> None:
    index = DenseIndex(4)
    index.add(np.eye(4, dtype=np.float32))
    with pytest.raises(MemxError, match="dimension 4"):
        DenseIndex(8, index.faiss_index)
    with pytest.raises(MemxError, match="do not fit"):
        index.add(np.ones((1, 8), dtype=np.float32))


# ------------------------------------------------------------------------------------------------------------- modes


def test_modes_submit_the_workers_they_name() -> None:
    assert {name: mode.workers for name, mode in MODES.items()} == {
        "dense": ("faiss",),
        "bm25": ("bm25",),
        "raw": ("faiss", "bm25"),
        "fusion": ("fusion",),
        "full": ("faiss", "bm25", "graph", "phrase", "attribute"),
    }
    with pytest.raises(UsageError, match="no retrieval mode 'hybrid'"):
        MemoryEngine(HashedWords(), "hybrid")


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_text_and_reports(mode: str) -> None:
    recall = filled(mode).recall("Oslo marathon training", 3)
    first = recall.hits[0]
    assert first.memory.memory_id == "m3"
    assert {"semantic", "token", "score", "mmr_score", "final_score"} <= set(first.signals)
    assert first.ranks[MODES[mode].workers[0]] == 1
    report = recall.diagnostics
    assert report["sources"]["completed"] == list(MODES[mode].workers)
    assert report["finish_reason"] == "all_completed" and report["returned"] == len(recall.hits)
    assert {"prepare", "sources", "rank", "rows", "total"} == set(report["timings_ms"])


def test_raw_takes_its_sources_in_turn() -> None:
    engine = filled("raw")
    query = "kilometres by the river"
    orders = {}
    for mode in ("dense", "bm25", "raw"):
        engine.mode = mode
        orders[mode] = found(engine, query, 8)
    interleaved = [one for pair in zip(orders["dense"], orders["bm25"], strict=False) for one in pair]
    assert orders["raw"][: len(set(interleaved))] == list(dict.fromkeys(interleaved))


def test_score_of_full_is_the_weighted_sum_and_order_follows_mmr() -> None:
    recall = filled().recall("How many kilometres does Ben run?", 8)
    weights = recall.diagnostics["ranking"]["weights"]
    names = set(registry())
    for hit in recall.hits:
        assert names <= set(hit.signals)
        assert hit.signals["score"] == pytest.approx(sum(weights[name] * hit.signals[name] for name in names), rel=1e-5)
        penalty = weights["novelty"] * (1 - hit.signals["novelty"])
        assert hit.signals["mmr_score"] == pytest.approx(hit.signals["score"] - penalty, rel=1e-5)
    scores = [hit.signals["mmr_score"] for hit in recall.hits]
    assert scores == sorted(scores, reverse=True)
    assert recall.hits[0].score == 1.0 and all(0 < hit.score <= 1 for hit in recall.hits)


def test_mmr_sets_a_repetition_back() -> None:
    engine = MemoryEngine(HashedWords(), "full", weights=Weights(novelty=50.0))
    texts = ["The red boat sails to the island.", "The red boat sails to the island.", "A boat was painted green."]
    engine.insert_batch([Memory(f"m{i}", text) for i, text in enumerate(texts)])
    recall = engine.recall("Where does the red boat sail?", 3)
    assert [hit.memory.memory_id for hit in recall.hits] == ["m0", "m2", "m1"]
    assert recall.diagnostics["ranking"]["mmr"]["moved"] == 2
    engine.weights = Weights(novelty=0.0)
    assert found(engine, "Where does the red boat sail?") == ["m0", "m1", "m2"]


# ----------------------------------------------------------------------------------------------------------- signals


def signal(name: str, query: str) -> dict[str, float]:
    engine = filled()
    indexes = engine.indexes()
    assert indexes.features is not None
    values = registry()[name].compute(Query(query, indexes, engine.embedder.embed), indexes.features)
    return {f"m{i}": round(float(value), 3) for i, value in enumerate(values)}


def test_attribute_boost_knows_speaker_kind_and_time() -> None:
    speaker = signal("attribute_boost", "What does Ben like?")
    assert {name for name, value in speaker.items() if value > 0} == {"m1", "m3", "m5", "m7"}
    number = signal("attribute_boost", "How many kilometres?")
    assert {name for name, value in number.items() if value > 0} == {"m2", "m5"}
    when = signal("attribute_boost", "When was the dog adopted?")
    assert {name for name, value in when.items() if value > 0} == {"m0", "m6"}
    told = signal("attribute_boost", "What happened on 19 July 2024?")
    assert told["m6"] == told["m7"] > 0.8 > 0.01 > told["m3"]
    mine = signal("attribute_boost", "Where does my sister live?")
    assert {name for name, value in mine.items() if value > 0} == {"m0", "m2", "m4", "m6"}


def test_graph_reaches_neighbours_and_phrase_wants_order() -> None:
    graph = signal("graph", "Lakeside shelter puppies")
    assert graph["m1"] > graph["m4"]
    assert signal("phrase", "Oslo marathon")["m3"] == 1.0
    assert signal("phrase", "marathon Oslo")["m3"] == 0.0
    thread = signal("thread", "marathon")
    assert thread["m3"] == thread["m4"] == thread["m5"] > thread["m0"]


@given(st.lists(st.tuples(WORDS, st.sampled_from(["", "a", "b", "c"])), min_size=1, max_size=12), WORDS)
@settings(max_examples=25, deadline=None)
def test_thread_is_its_words_and_its_best_cosine(texts: list[tuple[str, str]], query: str) -> None:
    engine = MemoryEngine(HashedWords(), "full")
    engine.insert_batch([Memory(f"m{i}", word, thread=thread) for i, (word, thread) in enumerate(texts)])
    indexes = engine.indexes()
    assert indexes.features is not None
    asked = Query(query, indexes, engine.embedder.embed)
    values = registry()["thread"].compute(asked, indexes.features)
    shares = indexes.features.threads.shares(asked.stems)[indexes.features.thread]
    names = [thread or str(i) for i, (_, thread) in enumerate(texts)]  # a text without a thread is one of its own
    best = [max(asked.semantic[i] for i, other in enumerate(names) if other == name) for name in names]
    assert np.allclose(values - shares, 0.75 * np.array(best), atol=1e-6)


def test_importance_recency_and_feedback() -> None:
    importance = signal("importance", "anything")
    assert importance["m2"] > importance["m1"]
    recency = signal("recency", "anything")
    assert recency["m7"] == 1.0 > recency["m3"] > recency["m0"]
    engine = filled()
    query = "race running ankle"
    before = {hit.memory.memory_id: hit.signals["score"] for hit in engine.recall(query, 8).hits}
    engine.give_feedback("m3", 3.0)
    engine.give_feedback("m7", -3.0)
    after = {hit.memory.memory_id: hit.signals for hit in engine.recall(query, 8).hits}
    assert after["m3"]["feedback"] > 0.99 and after["m3"]["score"] > before["m3"]
    assert after["m7"]["feedback"] < -0.99 and after["m7"]["score"] < before["m7"]
    with pytest.raises(KeyError):
        engine.give_feedback("none", 1.0)


def test_weights_refuse_what_is_no_signal_or_number() -> None:
    with pytest.raises(UsageError, match="no signal named 'semantics'"):
        Weights({"semantics": 1.0})
    with pytest.raises(UsageError, match="no number"):
        Weights({"semantic": float("nan")})


# -------------------------------------------------------------------------------------------------- failing and slow


class Broken(Bm25Worker):
    name = "phrase"

    def search(self, query: Query, limit: int) -> Any:
        raise RuntimeError("index is gone")


def test_worker_that_fails_is_reported_and_sinks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine_module.WORKERS, "phrase", Broken)
    recall = filled().recall("Oslo marathon", 3)
    assert recall.hits[0].memory.memory_id == "m3"
    assert recall.diagnostics["sources"]["failed"] == {"phrase": "RuntimeError: index is gone"}
    assert recall.diagnostics["finish_reason"] == "source_failed"


def test_worker_that_is_late_is_reported_and_sinks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    class Late(Bm25Worker):
        name = "phrase"

        def search(self, query: Query, limit: int) -> Any:
            release.wait(20)
            return []

    monkeypatch.setitem(engine_module.WORKERS, "phrase", Late)
    try:
        recall = filled(timeout_s=0.5).recall("Oslo marathon", 3)
    finally:
        release.set()
    assert recall.hits[0].memory.memory_id == "m3"
    assert recall.diagnostics["sources"]["pending"] == ["phrase"] and recall.diagnostics["finish_reason"] == "deadline"


class FailsOnQueries(HashedWords):
    def encode(self, texts: Sequence[str]) -> Any:
        if len(texts) == 1:
            return np.full((1, self.dimension), np.nan)
        return super().encode(texts)


@pytest.mark.parametrize("mode", MODES)
def test_embedder_that_fails_on_a_query_leaves_the_words(mode: str) -> None:
    engine = MemoryEngine(FailsOnQueries(), mode)
    engine.insert_batch(history())
    recall = engine.recall("Oslo marathon", 3)
    assert not recall.diagnostics["semantic_available"]
    if mode in ("bm25", "raw", "full"):
        assert recall.hits[0].memory.memory_id == "m3" and recall.hits[0].signals["semantic"] == 0.0
    else:
        assert recall.hits == () and "not finite" in next(iter(recall.diagnostics["sources"]["failed"].values()))


@pytest.mark.parametrize("mode", MODES)
def test_embedder_that_is_late_on_a_query_holds_up_nobody(mode: str) -> None:
    release = threading.Event()
    waited: list[str] = []

    class LateOnQueries(HashedWords):
        def encode(self, texts: Sequence[str]) -> Any:
            if len(texts) == 1:
                release.wait(20)
                waited.extend(texts)
            return super().encode(texts)

    engine = MemoryEngine(LateOnQueries(), mode, timeout_s=0.2)
    engine.insert_batch(history())
    recall = engine.recall("Oslo marathon", 3)
    assert not waited and not recall.diagnostics["semantic_available"]
    release.set()
    assert [hit.memory.memory_id for hit in recall.hits][:1] == (["m3"] if mode in ("bm25", "raw", "full") else [])


# --------------------------------------------------------------------------------------------------------- bad input


def test_failing_embedder_stores_nothing_and_says_so() -> None:
    class Short(HashedWords):
        def encode(self, texts: Sequence[str]) -> Any:
            return super().encode(texts)[:-1]

    engine = MemoryEngine(Short())
    with pytest.raises(EmbeddingError, match="returned shape"):
        engine.insert_batch(history())
    assert len(engine.rows) == len(engine.dense) == 0


@pytest.mark.parametrize("mode", MODES)
def test_odd_texts_ids_and_duplicates_are_kept_and_found(mode: str) -> None:
    odd = [
        "",
        "a",
        "word " * 20_000,
        "twin text",
        "twin text",
        "lone \ud83d surrogate",
        "[bold]\x1b[31mred\x00",
        "日本語",
    ]
    ids = ["", "ü", "a/b'c\"d", "x" * 5000, "\ud800", "new\nline", " ", "%s"]
    engine = MemoryEngine(HashedWords(), mode)
    assert engine.recall("anything", 5).hits == ()
    engine.insert_batch([Memory(memory_id, text) for memory_id, text in zip(ids, odd, strict=True)], batch_size=3)
    assert [(one.memory_id, one.text) for one in engine.rows.all()] == list(zip(ids, odd, strict=True))
    for query in ("twin", "", "?!", "word " * 5000, "\ud83d", "a"):
        assert len(engine.recall(query, 3).hits) <= 3
    assert {"x" * 5000, "\ud800"} <= set(found(engine, "twin text", 3))


def test_id_stored_twice_and_metadata_that_is_no_json_are_refused() -> None:
    engine = filled("bm25")
    with pytest.raises(ValueError, match="'m0' is stored already"):
        engine.insert_batch(history()[:1])
    with pytest.raises(ValueError, match="'x' is no JSON"):
        engine.insert_batch([Memory("x", "text", metadata={"key": object()})])
    assert len(engine.rows) == 8 and found(engine, "Oslo marathon")[0] == "m3"


def test_skipped_embedding_is_found_by_words_only() -> None:
    embedder = HashedWords()
    engine = MemoryEngine(embedder, "full")
    engine.insert_batch(history(), skip_embedding=True)
    assert found(engine, "Oslo marathon")[0] == "m3" and embedder.asked == 0
    engine.insert_batch([Memory("later", "Oslo is cold in winter")])
    engine.mode = "dense"
    assert found(engine, "Oslo") == ["later"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=20), st.lists(WORDS, min_size=1, max_size=4)
)
def test_batches_threads_and_limits_never_change_the_result(texts: list[list[str]], query: list[str]) -> None:
    memories = [Memory(str(i), " ".join(words), thread=str(i % 3)) for i, words in enumerate(texts)]
    orders = []
    for options in ({"batch_size": 2, "max_workers": 3}, {"parallel_extract": False}):
        engine = MemoryEngine(HashedWords(), "full")
        engine.insert_batch(memories, **options)  # type: ignore[arg-type]
        orders.append(found(engine, " ".join(query), 20))
        assert found(engine, " ".join(query), 2) == orders[-1][:2]
    assert orders[0] == orders[1]
    assert set(WORKERS) == {"faiss", "bm25", "fusion", "graph", "phrase", "attribute"}


def test_topic_leaves_out_main_speakers_in_full_only() -> None:
    engine = filled()
    indexes = engine.indexes()
    topics = {
        "What is Ben's race about, Ana?": "What is race about, ?",
        "Ben?": "Ben?",
        "Benjamin's user manual": "Benjamin's user manual",
    }
    for text, topic in topics.items():
        assert Query(text, indexes, engine.embedder.embed).topic == topic
    engine.insert_batch([Memory(f"c{i}", f"Person {i}: hello", attributes={"speaker": f"p{i}"}) for i in range(40)])
    assert Query("Ben's race", engine.indexes(), engine.embedder.embed).topic == "Ben's race"
    engine = filled("dense")
    assert Query("Ben's race", engine.indexes(), engine.embedder.embed).topic == "Ben's race"
