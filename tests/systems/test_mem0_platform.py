"""``mem0`` on the platform: the real client against a double of its API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from memx.adapters.conformance import check_adapter
from memx.adapters.systems.mem0 import Mem0
from memx.errors import AdapterError, AdapterTimeoutError, MemxError
from memx.model import FactStatus
from tests.systems.doubles.mem0 import Mem0Double
from tests.systems.doubles.server import KEY
from tests.systems.hosted import (
    NEW,
    OLD,
    PET,
    ask,
    by_turn,
    check_faults,
    filled,
    many,
    need_sdk,
    sessions,
    whole_run,
    without_pauses,
)

need_sdk("mem0ai")


@pytest.fixture
def double() -> Iterator[Mem0Double]:
    with Mem0Double() as server:
        yield server


def platform(double: Mem0Double, **options: object) -> Mem0:
    return Mem0(api_key=KEY, host=double.url, **options)


def test_each_turn_goes_with_its_time_speaker_and_id_and_what_replaced_it_is_seen(double: Mem0Double) -> None:
    facts = by_turn(filled(platform(double)))
    sent = double.seen("POST", "/add/")[0].body
    assert sent["messages"] == [{"role": "user", "content": "Lena: I live in Graz."}]
    assert sent["timestamp"] == datetime(2024, 3, 4, 18, 30, tzinfo=UTC).timestamp()
    assert sent["metadata"]["turn_id"] == OLD and sent["user_id"] == "case-1"
    assert set(facts) == {OLD, PET, "march:3", NEW, "june:2"}
    assert facts[OLD].status is FactStatus.SUPERSEDED and facts[NEW].supersedes == (facts[OLD].fact_id,)
    assert facts[NEW].status is FactStatus.ACTIVE and facts[NEW].created_at == datetime(2024, 6, 21, 9, tzinfo=UTC)


def test_a_merged_duplicate_is_retired_and_told(double: Mem0Double) -> None:
    adapter = platform(double)
    filled(adapter)
    snapshot = filled(adapter)
    assert len(snapshot.facts) == 10
    merged = [fact for fact in snapshot.facts if fact.content == "Tom works at Siemens."]
    assert [str(fact.status) for fact in merged] == ["active", "superseded"]
    assert any("name no memory that took their place" in note for note in adapter.take_notes())


def test_search_gives_at_most_k_with_scores_and_their_parts(double: Mem0Double) -> None:
    adapter = platform(double)
    facts = filled(adapter).by_id()
    adapter.asked_at = datetime(2024, 7, 1)
    found = ask(adapter, top_k=2).facts
    assert len(found) == 2 and found[0].signals["semantic"] == found[0].score
    assert found[0].metadata["source_turn_ids"] == list(facts[found[0].fact_id].source_turn_ids)
    assert double.seen("POST", "/search/")[0].body["reference_date"] == "2024-07-01"
    current = ask(platform(double, latest_only=True)).facts
    assert OLD not in {fact.metadata["turn_id"] for fact in current}
    assert adapter.deep_query is False


def test_many_pages_are_read_whole_and_a_short_one_is_refused(double: Mem0Double) -> None:
    double.polls = 0
    adapter = platform(double, page_size=100)
    adapter.ingest_session(many(250))
    adapter.wait_until_ready("case-1", 10)
    assert len(adapter.export_state("case-1").facts) == 250
    double.most_rows = 90
    with pytest.raises(AdapterError, match="250 rows were promised"):
        adapter.export_state("case-1")


def test_entities_are_apart_and_reset_forgets_one(double: Mem0Double) -> None:
    filled(platform(double), "one")
    filled(platform(double), "two")
    later = platform(double)
    later.reset("one")
    later.reset("never-seen")
    assert later.export_state("one").facts == () and len(later.export_state("two").facts) == 5
    with pytest.raises(MemxError, match="needs an entity"):
        later.reset("")


def test_ready_means_every_event_is_worked_off_and_a_failed_one_is_told(double: Mem0Double) -> None:
    double.polls = 10**6
    adapter = platform(double)
    adapter.ingest_session(sessions()[0])
    with pytest.raises(AdapterTimeoutError, match="3 of 3 additions are pending"):
        adapter.wait_until_ready("case-1", 0.05)
    double.polls, double.fails = 0, 1
    failing = platform(double)
    failing.ingest_session(sessions("other")[0])
    with pytest.raises(AdapterError, match="add turn march:1 failed on the platform: the model refused"):
        failing.wait_until_ready("other", 5)


def test_every_fault_is_named_and_an_addition_is_repeated_only_at_the_door(double: Mem0Double) -> None:
    check_faults(partial(platform, double), double, ingest="/add/", listing="/v3/memories/$", search="/search/")
    adapter = platform(double)
    pauses = without_pauses(adapter)
    double.retry_after = "7"
    double.fail("429", path="/add/")
    assert len(filled(adapter, "again").facts) == 5 and pauses == [7]
    double.fail("late", path="/add/")
    with pytest.raises(AdapterError, match="failed inside"):
        adapter.ingest_session(sessions("once")[0])
    assert len([call for call in double.seen("POST", "/add/") if call.body["user_id"] == "once"]) == 1
    double.fail("hang", path="/add/")
    with pytest.raises(AdapterTimeoutError, match="no answer in time"):
        platform(double, timeout=0.2).ingest_session(sessions("hung")[0])


def test_a_wrong_key_is_refused_at_sign_in(double: Mem0Double) -> None:
    with pytest.raises(AdapterError, match=r"sign in failed: refused \(401\).*MEM0_API_KEY"):
        Mem0(api_key="another-key", host=double.url).describe()
    with pytest.raises(MemxError, match="Set MEM0_API_KEY"):
        Mem0(mode="platform")


def test_whole_sessions_and_words_as_they_are(double: Mem0Double) -> None:
    snapshot = filled(platform(double, infer="off", unit="session"))
    assert [fact.content for fact in snapshot.facts][:2] == [
        "Lena: I live in Graz.",
        "Lena: I have a dog called Łucja – 犬.",
    ]
    assert snapshot.facts[0].source_turn_ids == (OLD, PET, "march:3")
    assert len(double.seen("POST", "/add/")) == 2


def test_a_whole_run_sees_what_the_platform_replaced(
    double: Mem0Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_API_KEY", KEY)
    ran = whole_run(tmp_path, "mem0", "--top-k", "1", host=double.url)
    assert ran.code == 0 and ran.record["summary"]["errors"] == 0
    assert by_turn(ran.snapshot)[OLD].status is FactStatus.SUPERSEDED
    assert KEY not in (tmp_path / ".memx" / "last_run.json").read_text()


def test_a_refused_turn_is_named_and_the_rest_goes_on(double: Mem0Double) -> None:
    double.fail("422", path="/add/", skip=1)
    adapter = platform(double)
    assert PET not in by_turn(filled(adapter))
    assert adapter.take_notes() == ["content was refused, and is not stored: fault 422"]


def test_the_conformance_kit_finds_no_fault(double: Mem0Double) -> None:
    double.polls = 1
    report = check_adapter(partial(platform, double))
    assert report.failed == (), [result for result in report.results if result.name in report.failed]
