"""``letta`` through the real SDK against a double of a Letta server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.systems.letta import Letta
from memx.errors import AdapterError, AdapterTimeoutError
from tests.systems.doubles.letta import LettaDouble
from tests.systems.doubles.server import KEY
from tests.systems.hosted import (
    NEW,
    OLD,
    PET,
    ask,
    by_turn,
    check_conformance,
    check_faults,
    check_hang,
    check_options,
    check_start,
    filled,
    many,
    need_sdk,
    sessions,
    whole_run,
    without_pauses,
)

need_sdk("letta-client")


@pytest.fixture
def double() -> Iterator[LettaDouble]:
    with LettaDouble() as server:
        yield server


def letta(double: LettaDouble, **options: object) -> Letta:
    return Letta(**{"api_key": KEY, "base_url": double.url, "mode": "archival", **options})


def test_in_archival_mode_every_turn_is_a_passage_with_time_and_tags(double: LettaDouble) -> None:
    facts = by_turn(filled(letta(double)))
    assert set(facts) == {OLD, PET, "march:3", NEW, "june:2"}
    assert facts[PET].content == "Lena: I have a dog called Łucja – 犬."
    assert facts[OLD].created_at == datetime(2024, 3, 4, 18, 30, tzinfo=UTC)
    assert facts[OLD].metadata["tags"] == [f"turn:{OLD}", "session:march", "speaker:Lena"]


def test_in_agent_mode_the_block_is_rewritten_and_credited_to_both_sessions(double: LettaDouble) -> None:
    adapter = letta(double, mode="agent")
    march, june = sessions()
    adapter.ingest_session(march)
    before = adapter.export_state("case-1").facts
    adapter.ingest_session(june)
    after = adapter.export_state("case-1").facts
    assert "[2024-03-04 18:30] Lena: I live in Graz." in double.seen("POST", "/async")[0].body["messages"][0]["content"]
    assert len(before) == len(after) == 1 and before[0].fact_id == after[0].fact_id
    assert "Graz" in before[0].content and "Graz" not in after[0].content and "Linz" in after[0].content
    assert before[0].source_turn_ids == tuple(turn.turn_id for turn in march.turns)
    assert set(after[0].source_turn_ids) == {turn.turn_id for turn in (*march.turns, *june.turns)}
    assert [f.fact_id for f in ask(adapter).facts] == [after[0].fact_id]


def test_search_gives_at_most_k_with_the_ids_of_the_snapshot(double: LettaDouble) -> None:
    adapter = letta(double)
    facts = filled(adapter).by_id()
    found = ask(adapter, top_k=2).facts
    assert len(found) == 2 and {f.fact_id for f in found} <= set(facts)
    assert found[0].score is None and found[0].metadata["source_turn_ids"] == [OLD]


def test_a_store_of_many_pages_is_read_whole(double: LettaDouble) -> None:
    adapter = letta(double)
    adapter.ingest_session(many(250))
    assert len(adapter.export_state("case-1").facts) == 250


def test_entities_are_apart_another_process_finds_them_and_reset_forgets_one(double: LettaDouble) -> None:
    filled(letta(double), "one")
    filled(letta(double), "two")
    later = letta(double)
    assert by_turn(later.export_state("one"))[OLD].source_turn_ids == (OLD,)
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and ask(later, "one").facts == ()
    assert len(later.export_state("two").facts) == 5 and len(double.archives) == 1


def test_a_run_that_fails_or_never_ends_is_told(double: LettaDouble) -> None:
    double.run_end = "failed"
    with pytest.raises(AdapterError, match=r"run failed: error, at session march; stored so far: 0 of 3"):
        letta(double, mode="agent").ingest_session(sessions()[0])
    double.polls = 10**6
    with pytest.raises(AdapterTimeoutError, match="still at session march"):
        letta(double, mode="agent", run_timeout_s=0.1).ingest_session(sessions()[0])


def test_every_fault_is_named_and_nothing_is_stored_twice(double: LettaDouble) -> None:
    passages = "/archival-memory$"
    check_start(partial(letta, double), double)
    check_hang(partial(letta, double), double, ingest="/archival-memory$", attempts=1)
    check_faults(partial(letta, double), double, ingest=passages, listing=passages, search="/search", skip=1)
    adapter = letta(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    double.fail("429", path=passages)
    assert len(filled(adapter, "again").facts) == 5 and pauses == [7]
    for fault in ("late", "drop"):
        double.fail(fault, method="POST", path=passages)
        with pytest.raises(AdapterError, match=r"failed inside.*stored so far: 0 of 3 turns"):
            adapter.ingest_session(sessions(fault)[0])
    assert len(adapter.export_state("late").facts) == 1


def test_the_conformance_kit_passes(double: LettaDouble) -> None:
    double.polls = 0
    check_conformance(partial(letta, double))


def test_options_are_checked_and_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    check_options(Letta, key="LETTA_API_KEY", needed="letta-client 1", monkeypatch=monkeypatch)
    monkeypatch.undo()
    monkeypatch.setenv("LETTA_BASE_URL", "http://localhost:8283")
    Letta()


def test_a_whole_run_in_agent_mode(double: LettaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTA_API_KEY", KEY)
    ran = whole_run(tmp_path, "letta", "--snapshots", "session", base_url=double.url)
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    assert ran.question("home")["diff"]["added"] == 1
    (block,) = ran.snapshot.facts
    assert "Linz" in block.content and "Graz" not in block.content
