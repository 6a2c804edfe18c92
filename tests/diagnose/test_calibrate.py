"""Planted faults on the demo dataset: the report's figures, and that faults are what they say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from memx.adapters.contract import Dataset, DatasetInfo
from memx.adapters.datasets.demo import Demo
from memx.diagnose.calibrate import calibrate
from memx.diagnose.faults import Planter
from memx.diagnose.perfect import StoreKind, perfect_store
from memx.errors import InputError, UsageError
from memx.model import CAUSES_OF, Case, Cause, Stage
from tests.diagnose.talk import ask, case


def test_stages_come_out_right_and_the_figures_add_up() -> None:
    report = calibrate(Demo.load(), seeds=(7,))
    assert {one.planted for one in report.outcomes} == set(Cause)
    assert report.stage_accuracy >= 0.97 and report.macro_f1 >= 0.95 and report.cause_accuracy >= 0.97
    assert sum(report.confusion.values()) == len(report.outcomes)
    assert sum(planted for _, planted in report.cause_recall().values()) == len(report.outcomes)
    assert sum(count for *_, count in report.confidence_bins()) == len(report.outcomes)
    assert f"stage accuracy {report.stage_accuracy:.3f}" in report.text()


def test_a_seed_reproduces_and_faults_are_counted_per_seed() -> None:
    first = calibrate(Demo.load(), seeds=(1, 2), faults=20, provenance=False)
    again = calibrate(Demo.load(), seeds=(1, 2), faults=20, provenance=False)
    assert first.outcomes == again.outcomes and len(first.outcomes) == 40
    assert first.text().splitlines()[0].startswith("demo: verbatim store without provenance, 40 faults (seeds 1, 2)")


def test_a_wrong_diagnosis_lowers_the_figures() -> None:
    report = calibrate(Demo.load(), faults=20)
    right = next(one for one in report.outcomes if one.found.stage is not Stage.EXTRACTION)
    wrong = replace(right, found=replace(right.found, stage=Stage.EXTRACTION, cause=Cause.NEVER_STORED))
    worse = replace(report, outcomes=tuple(wrong if one is right else one for one in report.outcomes))
    assert worse.stage_accuracy < report.stage_accuracy and worse.macro_f1 < report.macro_f1
    stage = next(stage for stage, causes in CAUSES_OF.items() if right.planted in causes)
    assert worse.confusion[stage, Stage.EXTRACTION] >= 1


def test_the_perfect_store_retires_what_was_replaced() -> None:
    asked = ask("When does Ines's choir rehearse?", "Monday at 8 pm", "b4", metadata={"stale_evidence": ["a3"]})
    store = perfect_store(Demo.load(), case(asked), StoreKind.VERBATIM)
    (old,), (new,) = store.carriers["a3"], store.carriers["b4"]
    assert not store.facts[old].active and store.facts[new].supersedes == (old,)
    planted = Planter(store, ["Friday at noon"], random.Random(0)).plant(Cause.BOTH_ACTIVE, asked)
    assert planted is not None
    by_id = {fact.fact_id: fact for fact in planted.facts}
    assert by_id[old].active and by_id[new].active and by_id[new].supersedes == ()


def test_a_single_piece_can_not_be_partly_stored() -> None:
    asked = ask("What are the names of Tomas's dogs?", "Pixel and Moss", "a4")
    planter = Planter(perfect_store(Demo.load(), case(asked), StoreKind.VERBATIM), ["Rex"], random.Random(0))
    assert planter.plant(Cause.PARTLY_STORED, asked) is None
    distorted = planter.plant(Cause.DISTORTED, asked)
    assert distorted is not None
    assert not any("Pixel and Moss" in fact.content for fact in distorted.facts)


class WithoutEvidence(Dataset):
    name = "bare"

    @classmethod
    def load(cls, source: Any = None, **options: Any) -> WithoutEvidence:
        return cls()

    @property
    def info(self) -> DatasetInfo:
        return DatasetInfo("bare")

    def cases(self) -> Iterator[Case]:
        return iter([case(ask("Where does Karin work?", "Trondheim"))])


def test_what_can_not_be_calibrated_says_why() -> None:
    with pytest.raises(InputError, match="bare has no question whose evidence turns"):
        calibrate(WithoutEvidence())
    with pytest.raises(UsageError, match="brings no extracted facts"):
        calibrate(Demo.load(), store="extracted")


def test_locomo_keeps_its_figures(shared_data: Any) -> None:
    from memx.adapters.datasets.locomo import Locomo

    dataset = Locomo.load(shared_data / "data" / "locomo10.json")
    for store, least in ((StoreKind.VERBATIM, 0.97), (StoreKind.EXTRACTED, 0.95)):
        report = calibrate(dataset, store=store, cases=["conv-30"], faults=60)
        assert report.stage_accuracy >= least
