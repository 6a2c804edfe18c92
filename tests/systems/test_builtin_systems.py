"""The built-in systems through the adapter contract, with the real embedding model."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from memx.adapters.contract import MemoryAdapter
from memx.adapters.registry import ADAPTERS, adapter_class
from memx.errors import MemxError
from memx.model import Question, Session, Turn

SAID = [
    [("Ana", "I adopted a beagle called Pretzel last week."), ("Ben", "Lovely! I am training for the Oslo marathon.")],
    [("Ana", "My sister moved to Lisbon in spring."), ("Ben", "I sprained my ankle, so no race for me.")],
]


def sessions(entity: str) -> list[Session]:
    return [
        Session(
            f"s{number}",
            entity,
            tuple(Turn(f"D{number}:{i}", who, "user", what) for i, (who, what) in enumerate(turns, start=1)),
            at=datetime(2024, 3, number, 18, 30),
        )
        for number, turns in enumerate(SAID, start=1)
    ]


def filled(name: str, entity: str = "e", **options: object) -> MemoryAdapter:
    adapter = adapter_class(name)(**options)
    for session in sessions(entity):
        adapter.ingest_session(session)
    return adapter


@pytest.mark.parametrize("name", sorted(n for n, path in ADAPTERS.items() if path.startswith("memx.adapters.systems.")))
def test_every_name_in_the_table_is_a_class_with_that_name(name: str) -> None:
    assert adapter_class(name).name == name


@pytest.mark.parametrize("name", ["local", "word-overlap", "no-context", "full-context", "oracle"])
def test_store_is_verbatim_dated_and_stable_between_runs(name: str) -> None:
    first, second = filled(name).export_state("e"), filled(name, "other").export_state("other")
    assert [fact.content for fact in first.facts][:2] == [f"{who}: {what}" for who, what in SAID[0]]
    assert [fact.source_turn_ids for fact in first.facts] == [("D1:1",), ("D1:2",), ("D2:1",), ("D2:2",)]
    assert first.facts[2].created_at == datetime(2024, 3, 2, 18, 30)
    assert first.facts[2].metadata["speaker"] == "Ana"
    assert [fact.fact_id for fact in first.facts] == [fact.fact_id for fact in second.facts]


@pytest.mark.parametrize("name", ["local", "word-overlap", "no-context", "full-context", "oracle"])
def test_entities_are_apart_and_reset_forgets_one(name: str) -> None:
    adapter = filled(name, "one")
    for session in sessions("two"):
        adapter.ingest_session(session)
    adapter.reset("one")
    assert adapter.export_state("one").facts == ()
    assert len(adapter.export_state("two").facts) == 4
    assert adapter.query("beagle", "one", 5).facts == ()
    with pytest.raises(MemxError, match="no_such"):
        adapter_class(name)(no_such=1)


@pytest.mark.parametrize("mode", ["dense", "bm25", "raw", "fusion", "full"])
def test_local_finds_the_turn_and_shows_its_signals(mode: str) -> None:
    result = filled("local", mode=mode).query("What is the name of Ana's beagle?", "e", 2)
    assert len(result.facts) <= 2
    best = result.facts[0]
    assert (best.fact_id, best.metadata["source_turn_ids"]) == ("m:D1:1", ["D1:1"])
    assert 0 < best.signals["semantic"] <= 1 and best.signals["token"] > 0
    assert best.score is not None and best.score > 0
    assert result.declared["sources"]["failed"] == {} and result.declared["finish_reason"] == "all_completed"


def test_deep_and_shallow_queries_agree_on_the_order() -> None:
    adapter = filled("local")
    deep, shallow = adapter.query("Ben's race", "e", 50), adapter.query("Ben's race", "e", 2)
    assert [f.fact_id for f in deep.facts[:2]] == [f.fact_id for f in shallow.facts]


def test_cache_of_embeddings_gives_the_same_result(tmp_path: Path) -> None:
    results = []
    for _ in range(2):
        adapter = adapter_class("local")()
        adapter.cache_dir = tmp_path
        for session in sessions("e"):
            adapter.ingest_session(session)
        results.append([(f.fact_id, f.score) for f in adapter.query("moving abroad", "e", 4).facts])
        adapter.close()
    assert results[0] == results[1]


def test_indexed_case_is_read_back_under_another_entity(tmp_path: Path) -> None:
    results = []
    for entity in ("first", "second"):
        adapter = adapter_class("local")(mode="full", dataset_sha256="abc")
        adapter.cache_dir = tmp_path
        for session in sessions(entity):
            adapter.ingest_session(session)
        adapter.wait_until_ready(entity, 60)
        results.append([(f.fact_id, f.signals) for f in adapter.query("Who moved abroad?", entity, 4).facts])
        adapter.close()
    assert results[0] == results[1]
    assert len(list((tmp_path / "cases").iterdir())) == 1


def test_store_is_whole_before_anything_is_indexed_and_grows_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memx.adapters.systems.local.MOST_WAITING", 3)
    adapter = adapter_class("local")()
    first, second = sessions("e")
    adapter.ingest_session(first)
    assert len(adapter.export_state("e").facts) == 2
    assert adapter.query("beagle", "e", 5).facts[0].fact_id == "m:D1:1"
    adapter.ingest_session(second)
    assert [f.fact_id for f in adapter.export_state("e").facts] == ["m:D1:1", "m:D1:2", "m:D2:1", "m:D2:2"]
    assert adapter.query("Who moved to Lisbon?", "e", 1).facts[0].fact_id == "m:D2:1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "hybrid"}, "no retrieval mode named 'hybrid'"),
        ({"embedder": "bert"}, "no embedder 'bert'"),
        ({"timeout_s": "soon"}, "timeout_s"),
        ({"skip_embedding": "maybe"}, "skip_embedding"),
        ({"workers": -1}, "workers"),
        ({"weights": "no/such/file.json"}, "no/such/file.json"),
    ],
)
def test_option_that_cannot_be_used_is_one_clear_error(options: dict[str, object], message: str) -> None:
    with pytest.raises(MemxError, match=message):
        adapter_class("local")(**options).describe()


def test_weights_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text('{"semantic": 0, "token": 2.5, "novelty": 0}')
    result = filled("local", mode="full", weights=str(path)).query("beagle", "e", 2)
    weights = result.declared["ranking"]["weights"]
    assert weights["semantic"] == 0 and weights["token"] == 2.5 and weights["novelty"] == 0
    for broken in ("[1]", "{", '{"semantic": "much"}', '{"other": 1}'):
        path.write_text(broken)
        with pytest.raises(MemxError):
            adapter_class("local")(weights=str(path))


def test_manifest_facts_name_the_embedding_model() -> None:
    facts = adapter_class("local")(mode="full").describe()
    assert facts["embedding_dimension"] == 384 and len(facts["embedding_sha256"]) == 64
    assert facts["retrieval_mode"] == "full" and facts["sources"] == ["faiss", "bm25", "graph", "phrase", "attribute"]


def test_controls_answer_as_controls_should() -> None:
    question = Question("q", "e", "Who hurt themselves?", "Ben", "single-hop", evidence=("D2:2", "D1:2", "gone"))
    oracle = filled("oracle")
    assert oracle.sees_gold and oracle.shares_entity_ids
    assert oracle.query(question.text, "e", 10).facts == ()
    oracle.show_gold(question)
    assert [f.fact_id for f in oracle.query(question.text, "e", 1).facts] == ["m:D2:2", "m:D1:2"]
    assert filled("no-context").query(question.text, "e", 10).facts == ()
    full = filled("full-context")
    assert full.ignores_top_k and len(full.query(question.text, "e", 1).facts) == 4
    overlap = filled("word-overlap").query("Oslo marathon training", "e", 3).facts
    assert [(f.fact_id, f.score) for f in overlap] == [("m:D1:2", 1.0)]


def test_same_session_twice_is_refused_with_one_clear_error() -> None:
    adapter = filled("local")
    with pytest.raises(MemxError, match="D1:1"):
        adapter.ingest_session(sessions("e")[0])
