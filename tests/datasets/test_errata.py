"""The overlays: well-formed, pointing at real questions and turns, and never silently wider than known."""

from __future__ import annotations

from pathlib import Path

from memx.adapters.datasets.errata import errata_for
from memx.adapters.datasets.locomo import Locomo


def test_a_dataset_without_overlay_has_an_empty_one() -> None:
    assert len(errata_for("demo")) == len(errata_for("../errata/locomo")) == 0


def test_each_entry_names_a_kind_that_is_explained() -> None:
    for name, count in (("locomo", 156), ("longmemeval", 7)):
        errata = errata_for(name)
        assert len(errata) == count and errata.source
        assert {entry["kind"] for entry in errata.values()} <= set(errata.kinds)


def test_a_wrong_citation_leaves_the_gold_standing() -> None:
    errata = errata_for("locomo")
    assert not errata.disputes_gold("conv-26:q1")
    assert errata["conv-26:q1"]["corrected_evidence"] == ["D1:14"]
    assert errata.disputes_gold("conv-26:q2") and not errata.disputes_gold("conv-26:q0")


def test_what_the_cleaned_edition_mended_is_no_erratum_of_it() -> None:
    assert "ad7109d1" in errata_for("longmemeval", "s, original")
    assert "ad7109d1" not in errata_for("longmemeval", "s, cleaned")
    assert "370a8ff4" in errata_for("longmemeval", "s, cleaned")


def test_locomo_entries_point_at_questions_and_turns_that_exist(shared_data: Path) -> None:
    errata = errata_for("locomo")
    found = 0
    for case in Locomo.load(shared_data / "data").cases():
        turns = case.turns()
        for question in case.questions:
            entry = errata.get(question.question_id)
            if entry is None:
                continue
            found += 1
            assert set(entry.get("corrected_evidence", ())) <= set(turns)
            assert entry.get("corrected_gold", "") != question.gold
    assert found == len(errata)
