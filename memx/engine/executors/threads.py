"""``threads``: cases in threads of this process."""

from __future__ import annotations

from memx.engine.case_runner import CaseRunner
from memx.engine.executors.contract import Executor, Hands
from memx.engine.workshop import Task, Workshop


class ThreadHands(Hands):
    """Runs cases in the thread that calls."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def run(self, task: Task) -> None:
        CaseRunner(self._shop, task).run()


class Threads(Executor):
    """As many cases at once as ``--concurrency`` says."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop
        self.side_by_side = shop.settings.concurrency

    def hands(self) -> Hands:
        return ThreadHands(self._shop)
