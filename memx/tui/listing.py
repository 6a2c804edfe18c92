"""The filtered, sorted list of a run's questions: keys of all of them, rows of the pages that were looked at."""

from __future__ import annotations

from collections import OrderedDict

from memx.engine.store import filters
from memx.engine.store.reader import QuestionRow, RunRow, Store, Where

#: Orders of the list, and what each is called; the first is the one a list begins with.
ORDERS: tuple[tuple[str, str], ...] = (
    ("verdict", "failed first"), ("position", "as asked"), ("stage", "by stage"), ("rank", "by rank"),
    ("category", "by category"), ("confidence", "surest first"),
)  # fmt: skip
_PAGE = 64
_PAGES_KEPT = 16


class Listing:
    """The questions of one run under a filter and an order.

    Args:
        store: where rows are read from, in the thread that shows them.
        run: the run.
        base: holds for every question of the list, whatever the filter.
        name: what the questions of ``base`` are called.
    """

    def __init__(self, store: Store, run: RunRow, base: Where | None = None, name: str = "questions") -> None:
        self.store = store
        self.base = base or Where()
        self.name = name
        self.run = run
        self.filter = ""
        self.order = 0
        self.total = 0
        self.gone = False
        self._keys: list[int] = []
        self._pages: OrderedDict[int, dict[int, QuestionRow]] = OrderedDict()

    @property
    def order_name(self) -> str:
        """What the order is called."""
        return ORDERS[self.order][1]

    def __len__(self) -> int:
        return len(self._keys)

    def where(self, text: str) -> Where:
        """The condition of a filter on this list.

        Raises:
            UsageError: the filter cannot be read.
        """
        where = filters.parse(text)
        if self.base == Where() or where == Where():
            return where if self.base == Where() else self.base
        return Where(f"({self.base.sql}) AND ({where.sql})", (*self.base.params, *where.params))

    def key(self, index: int) -> int:
        """The key of a row."""
        return self._keys[index]

    @property
    def keys(self) -> list[int]:
        """The keys of all rows, in order; not to be changed."""
        return self._keys

    def search(self, text: str, order: int, store: Store | None = None) -> tuple[list[int], int]:
        """Keys that meet a filter, in an order, and how many questions the run has in all. Changes nothing here, so
        that it may run in another thread with that thread's own ``store``.

        Raises:
            UsageError: the filter cannot be read.
            StoreError: the store cannot be read.
        """
        store = store or self.store
        where = self.where(text)
        keys = store.question_keys(self.run.run_id, where, sort=ORDERS[order][0])
        total = len(keys) if where == self.base else store.count(self.run.run_id, self.base)
        return keys, total

    def accept(self, text: str, order: int, keys: list[int], total: int) -> None:
        """Take what a search found."""
        self.filter, self.order, self.total = text, order, total
        self._keys = keys
        self._pages.clear()

    def reload(self) -> None:
        """Search again with the same filter and order."""
        self.gone = self.run.run_id not in {run.run_id for run in self.store.runs()}
        self.accept(self.filter, self.order, *self.search(self.filter, self.order))

    def row(self, index: int) -> QuestionRow | None:
        """The row at a place of the list; None when its question was deleted meanwhile."""
        if not 0 <= index < len(self._keys):
            return None
        number = index // _PAGE
        page = self._pages.get(number)
        if page is None:
            page = self.store.rows(self._keys[number * _PAGE : (number + 1) * _PAGE])
            self._pages[number] = page
            while len(self._pages) > _PAGES_KEPT:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(number)
        return page.get(self._keys[index])

    def index_of(self, question_id: str) -> int | None:
        """Where a question stands in the list; None when the filter leaves it out."""
        exact = Where("question_id = ?", (question_id,))
        keys = self.store.question_keys(self.run.run_id, exact)
        return self._keys.index(keys[0]) if keys and keys[0] in self._keys else None
