"""``processes``: cases in processes of their own, for memory systems in Python that threads cannot speed up."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from memx.engine.executors.contract import Executor, Hands
from memx.engine.executors.serving import STOP_S, Service, WorkerLost, kit_of
from memx.engine.executors.wire import Kit
from memx.engine.workshop import Task, Workshop


class Processes(Executor):
    """A process per case under way, as many as there are cores, and no more than ``--concurrency``."""

    def __init__(self, shop: Workshop, dataset: tuple[str, str]) -> None:
        self._shop = shop
        self._kit = kit_of(shop, dataset)
        self.side_by_side = min(shop.settings.concurrency, os.cpu_count() or 1)

    def hands(self) -> Hands:
        return ProcessHands(self._shop, self._kit)


class ProcessHands(Hands):
    """One worker process, started at the first case, and again when it was lost."""

    def __init__(self, shop: Workshop, kit: Kit) -> None:
        self._shop = shop
        self._kit = kit
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def run(self, task: Task) -> None:
        connection = self._connection or self._start()
        try:
            Service(self._shop, connection).serve(task)
        except WorkerLost:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            # The end of the connection ends the worker.
            self._connection.close()
        if self._process is not None:
            self._process.join(STOP_S)
            if self._process.is_alive():
                self._process.kill()
            self._process.join()
        self._process = self._connection = None

    def _start(self) -> Connection:
        # Not fork: the threads of this process, and those of its libraries, do not survive it.
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        self._process = context.Process(target=_main, args=(there,), daemon=True, name="memx-worker")
        self._process.start()
        there.close()
        # A worker that cannot even start is noticed when the first case is handed over.
        with contextlib.suppress(OSError):
            here.send(self._kit)
        self._connection = here
        return here


def _main(connection: Connection) -> None:
    # Ctrl-C reaches all processes of the terminal; the run's own tells this one when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from memx.engine.executors.worker import work

    work(connection, on_lost=lambda: os._exit(1))
