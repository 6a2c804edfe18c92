"""Selections: exactly as many as asked, reproducible, in the dataset's order, without holding histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.adapters.contract import Dataset, DatasetInfo
from memx.adapters.datasets.opening import open_dataset
from memx.adapters.datasets.selection import Selection, read_question_ids, select
from memx.errors import InputError, UnknownNameError, UsageError
from memx.model import Case, Question, Session, Turn
from tests.datasets.builders import locomo_sample, write


class Numbered(Dataset):
    """``sizes`` cases of as many questions each; counts the histories that it built."""

    def __init__(self, sizes: list[int], categories: int = 3) -> None:
        self.sizes, self.categories = sizes, categories
        self.built = 0

    @classmethod
    def load(cls, source: Path | None = None, **options: Any) -> Dataset:
        raise NotImplementedError

    @property
    def info(self) -> DatasetInfo:
        return DatasetInfo("numbered")

    def cases(self) -> Iterator[Case]:
        for number, size in enumerate(self.sizes):
            self.built += 1
            case_id = f"c{number}"
            session = Session("S1", case_id, (Turn("S1:1", "Ada", "user", "hello"),))
            questions = tuple(
                Question(f"{case_id}:q{n}", case_id, "?", "!", f"k{(number + n) % self.categories}")
                for n in range(size)
            )
            yield Case(case_id, case_id, (session,), questions)


def ids(dataset: Dataset) -> list[str]:
    return [question.question_id for case in dataset.cases() for question in case.questions]


SIZES = st.lists(st.integers(min_value=0, max_value=6), min_size=1, max_size=6).filter(any)


@given(SIZES, st.integers(min_value=1, max_value=40), st.integers(), st.sampled_from(["first", "random", "stratified"]))
def test_a_limit_is_exact_ordered_and_reproducible(sizes: list[int], limit: int, seed: int, how: str) -> None:
    selection = Selection(
        limit=limit, seed=seed, random=how == "random", sample="stratified" if how == "stratified" else ""
    )
    whole = ids(Numbered(sizes))
    picked = ids(select(Numbered(sizes), selection))
    assert len(picked) == min(limit, len(whole)) == select(Numbered(sizes), selection).question_count()
    assert picked == [one for one in whole if one in set(picked)]
    assert picked == ids(select(Numbered(sizes), selection))
    if how == "first":
        assert picked == whole[:limit]


@given(SIZES, st.integers(min_value=1, max_value=20), st.integers())
def test_a_stratified_sample_keeps_the_shares(sizes: list[int], limit: int, seed: int) -> None:
    dataset = Numbered(sizes)
    total = sum(sizes)
    shares = Counter(q.category for case in dataset.cases() for q in case.questions)
    chosen = select(dataset, Selection(limit=limit, sample="stratified", seed=seed))
    taken = Counter(q.category for case in chosen.cases() for q in case.questions)
    for category, count in shares.items():
        assert abs(taken[category] - min(limit, total) * count / total) < 1


def test_the_seed_matters_and_the_first_questions_read_one_case_only() -> None:
    draws = {tuple(ids(select(Numbered([20, 20]), Selection(limit=5, random=True, seed=s)))) for s in range(5)}
    assert len(draws) > 1
    dataset = Numbered([4, 4, 4])
    assert ids(select(dataset, Selection(limit=3))) == ["c0:q0", "c0:q1", "c0:q2"]
    assert dataset.built == 2  # once for the index, once for the case itself


def test_categories_and_ids() -> None:
    chosen = select(Numbered([3, 3]), Selection(categories=("k1",)))
    assert ids(chosen) == ["c0:q1", "c1:q0"] and chosen.question_count() == 2
    assert ids(select(Numbered([3, 3]), Selection(question_ids=("c1:q2", "c0:q0")))) == ["c0:q0", "c1:q2"]
    with pytest.raises(UnknownNameError, match="no category named 'k7'"):
        ids(select(Numbered([3]), Selection(categories=("k7",))))
    with pytest.raises(UnknownNameError, match="Did you mean c0:q1"):
        ids(select(Numbered([3]), Selection(question_ids=("c0:q11",))))
    with pytest.raises(InputError, match="no question is left"):
        ids(select(Numbered([3, 3]), Selection(question_ids=("c0:q0",), categories=("k1",))))


def test_everything_is_publishable_and_nothing_else() -> None:
    assert not Selection().publishable_reasons
    for selection in (
        Selection(limit=3),
        Selection(limit=3, random=True),
        Selection(limit=3, sample="stratified"),
        Selection(categories=("a",)),
        Selection(question_ids=("q",)),
    ):
        assert len(selection.publishable_reasons) == 1
        assert select(Numbered([3]), selection).info.slice == selection.publishable_reasons[0]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"random": True}, {"sample": "odd", "limit": 2}])
def test_selections_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Selection(**wrong)


def test_question_ids_from_a_file(tmp_path: Path) -> None:
    lines = "# those that failed\nconv-1:q0\n\nconv-1:q2 # again\nconv-1:q0\n"
    assert read_question_ids(write(tmp_path / "ids.txt", lines)) == ("conv-1:q0", "conv-1:q2")
    assert read_question_ids(write(tmp_path / "ids.json", ["a", "b"])) == ("a", "b")
    with pytest.raises(InputError, match="holds no question id"):
        read_question_ids(write(tmp_path / "none.txt", "# nothing\n"))
    with pytest.raises(InputError, match=r"\[1\]: should be a question id"):
        read_question_ids(write(tmp_path / "bad.json", ["a", 2]))


def test_names_parts_and_slices(tmp_path: Path) -> None:
    path = write(tmp_path / "locomo10.json", [locomo_sample()])
    assert len(ids(open_dataset("locomo", path))) == 5
    smoke = open_dataset("locomo:smoke", path)
    assert smoke.info.slice == "smoke" and len(ids(smoke)) == 5
    assert len(ids(open_dataset("locomo", path, captions="off", skip_bad="yes"))) == 5
    with pytest.raises(UnknownNameError, match="Did you mean smoke"):
        open_dataset("locomo:smok", path)
    with pytest.raises(UnknownNameError, match="Did you mean locomo"):
        open_dataset("locom", path)
    with pytest.raises(InputError, match="memx datasets pull beam:500K"):
        open_dataset("beam:500k-smoke")
