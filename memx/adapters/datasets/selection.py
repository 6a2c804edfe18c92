"""Which questions of a dataset are asked: by number, at random, by category, by id; reproducible from the seed.

A selection is applied while the dataset is read. Where it must know all questions first (a random draw, a list of
ids), only their ids and categories are held, never the histories.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from memx.adapters.contract import Dataset, DatasetInfo, Quirk
from memx.adapters.datasets.reading import decode, kind_of, parse_json, read_bytes
from memx.errors import InputError, UnknownNameError, UsageError
from memx.model import Case

STRATIFIED = "stratified"


@dataclass(frozen=True, slots=True)
class Selection:
    """What to ask of a dataset. Without any filter: everything.

    Attributes:
        limit: how many questions, exactly, if there are as many. The first ones, unless drawn.
        random: draw them from all by the seed.
        sample: ``stratified`` draws them so that the categories keep their shares (largest remainders).
        categories: only these, by name.
        question_ids: only these.
        slice: the name of a ready-made slice, such as ``smoke``.
    """

    limit: int | None = None
    random: bool = False
    seed: int = 0
    sample: str = ""
    categories: tuple[str, ...] = ()
    question_ids: tuple[str, ...] = ()
    slice: str = ""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit is a number of questions from 1, not {self.limit}")
        if self.sample not in ("", STRATIFIED):
            raise UsageError(f"--sample is {STRATIFIED}, not '{self.sample}'")
        if (self.random or self.sample) and self.limit is None:
            raise UsageError("a random draw needs --limit", "Say how many questions to draw: --limit 100")

    @property
    def everything(self) -> bool:
        """True when nothing is left out."""
        return self.limit is None and not self.categories and not self.question_ids

    @property
    def publishable_reasons(self) -> tuple[str, ...]:
        """Why the score of such a run is no measurement of the dataset; empty when everything is asked."""
        reasons = []
        if self.slice:
            reasons.append(f"the slice '{self.slice}' is for trying things out")
        elif self.limit is not None and self.sample:
            reasons.append(f"a stratified sample of {self.limit} questions, seed {self.seed}")
        elif self.limit is not None and self.random:
            reasons.append(f"a random draw of {self.limit} questions, seed {self.seed}")
        elif self.limit is not None:
            reasons.append(f"only the first {self.limit} questions: the first are no fair sample")
        if self.categories:
            reasons.append(f"only the categories {', '.join(self.categories)}")
        if self.question_ids:
            reasons.append(f"only {len(self.question_ids)} questions named by id")
        return tuple(reasons)

    def choose(self, index: Iterable[tuple[str, str]]) -> list[str]:
        """The ids to ask, in the dataset's order.

        Args:
            index: (question id, category) of every question, in the dataset's order.

        Raises:
            UnknownNameError: a category or id that no question has.
            InputError: two questions share an id, or none is left.
        """
        rows = list(islice(index, self.limit)) if self._only_first else list(index)
        self._refuse_unknown(rows)
        wanted_ids, wanted = set(self.question_ids), set(self.categories)
        left = [row for row in rows if (not wanted_ids or row[0] in wanted_ids) and (not wanted or row[1] in wanted)]
        if not left:
            raise InputError("no question is left to ask", "Give other categories or ids, or leave them out.")
        if self.limit is None or self.limit >= len(left):
            return [question_id for question_id, _ in left]
        if self.sample:
            drawn = _stratified(left, self.limit, self.seed)
        elif self.random:
            drawn = set(random.Random(self.seed).sample([question_id for question_id, _ in left], self.limit))
        else:
            return [question_id for question_id, _ in left[: self.limit]]
        return [question_id for question_id, _ in left if question_id in drawn]

    @property
    def _only_first(self) -> bool:
        return self.limit is not None and not (self.random or self.sample or self.categories or self.question_ids)

    def _refuse_unknown(self, rows: Sequence[tuple[str, str]]) -> None:
        known = dict(rows)
        if len(known) != len(rows):
            seen: set[str] = set()
            repeated = next(i for i, _ in rows if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise InputError(f"the question id '{repeated}' stands twice in the dataset", "Give each its own id.")
        for question_id in self.question_ids:
            if question_id not in known:
                raise UnknownNameError("question", question_id, known)
        categories = set(known.values())
        for category in self.categories:
            if category not in categories:
                raise UnknownNameError("category", category, categories)


def _stratified(rows: Sequence[tuple[str, str]], count: int, seed: int) -> set[str]:
    """Exactly ``count`` ids, each category in proportion (Hamilton's method of largest remainders)."""
    by_category: dict[str, list[str]] = {}
    for question_id, category in rows:
        by_category.setdefault(category, []).append(question_id)
    shares = {category: count * len(ids) / len(rows) for category, ids in by_category.items()}
    quota = {category: int(share) for category, share in shares.items()}
    # Ties go to the larger category, then by name, so that the draw depends on nothing but dataset and seed.
    order = sorted(shares, key=lambda name: (quota[name] - shares[name], -len(by_category[name]), name))
    for category in order[: count - sum(quota.values())]:
        quota[category] += 1
    rng = random.Random(seed)
    return {
        question_id
        for category in sorted(by_category)
        for question_id in rng.sample(by_category[category], quota[category])
    }


def question_index(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """(question id, category) of every question in the dataset's order; a dataset may offer a quicker way."""
    quick = getattr(dataset, "question_index", None)
    if quick is not None:
        yield from quick()
        return
    for case in dataset.cases():
        for question in case.questions:
            yield question.question_id, question.category


def read_question_ids(path: Path) -> tuple[str, ...]:
    """The ids of a file for ``--question-ids``: one a line (``#`` begins a comment), or a JSON list of texts.

    Raises:
        InputError: the file cannot be read, or holds no id.
    """
    text = decode(read_bytes(path), path)
    if text.lstrip().startswith("["):
        found = parse_json(text, path)
        for position, item in enumerate(found):
            if not isinstance(item, str):
                raise InputError(f"should be a question id, is {kind_of(item)}", path=path, place=f"[{position}]")
    else:
        found = [line.partition(" #")[0].strip() for line in text.splitlines()]
        found = [line for line in found if line and not line.startswith("#")]
    if not found:
        raise InputError("holds no question id", "Write one id a line.", path=path)
    return tuple(dict.fromkeys(found))


class SelectedDataset(Dataset):
    """A dataset of which only the selected questions are asked; cases without one are not handed out."""

    needs_source: ClassVar[bool] = False

    def __init__(self, dataset: Dataset, selection: Selection) -> None:
        self.dataset = dataset
        self.selection = selection
        self._ids: frozenset[str] | None = None

    @classmethod
    def load(cls, source: Path | None = None, **options: Any) -> Dataset:
        """A selection is made of a dataset that is open; see :func:`select`."""
        raise UsageError("a selection is no dataset of its own", "Open the dataset, then select from it.")

    @property
    def info(self) -> DatasetInfo:
        """The dataset's own, with the slice named."""
        info = self.dataset.info
        named = " ".join(part for part in (info.slice, self.selection.slice or "; ".join(self.reasons)) if part)
        return info if self.selection.everything else dataclasses.replace(info, slice=named)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a run over these questions is no measurement, those of a slice within a slice too."""
        inner = self.dataset.reasons if isinstance(self.dataset, SelectedDataset) else ()
        return (*inner, *self.selection.publishable_reasons)

    def cases(self) -> Iterator[Case]:
        """The cases that hold a selected question, with those questions only."""
        if self.selection.everything:
            yield from self.dataset.cases()
            return
        wanted = self._chosen()
        left = len(wanted)
        for case in self.dataset.cases():
            questions = tuple(question for question in case.questions if question.question_id in wanted)
            if questions:
                yield case if len(questions) == len(case.questions) else dataclasses.replace(case, questions=questions)
                left -= len(questions)
                if not left:
                    return

    def question_index(self) -> Iterator[tuple[str, str]]:
        """Ids and categories of the selected questions."""
        chosen = None if self.selection.everything else self._chosen()
        return (row for row in question_index(self.dataset) if chosen is None or row[0] in chosen)

    def question_count(self) -> int | None:
        """How many questions are asked; None when only reading a large file through would tell."""
        if not self.selection.everything:
            return len(self._chosen())
        if isinstance(self.dataset, SelectedDataset):
            return self.dataset.question_count()
        if getattr(self.dataset, "streamed", False):
            return None
        return sum(1 for _ in question_index(self.dataset))

    def quirks(self) -> list[Quirk]:
        """Those of the whole dataset."""
        return self.dataset.quirks()

    def _chosen(self) -> frozenset[str]:
        if self._ids is None:
            self._ids = frozenset(self.selection.choose(question_index(self.dataset)))
        return self._ids


def select(dataset: Dataset, selection: Selection) -> SelectedDataset:
    """The dataset with only the selected questions."""
    return SelectedDataset(dataset, selection)


#: Ready-made slices, ``NAME:smoke`` and ``NAME:mini``.
SLICES: Mapping[str, Selection] = {
    "smoke": Selection(limit=5, slice="smoke"),
    "mini": Selection(limit=50, slice="mini"),
}
