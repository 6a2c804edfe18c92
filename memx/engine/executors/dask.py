"""``dask[:ADDRESS]``: cases on the workers of a Dask cluster; without an address, of one made on this machine.

A case is one Dask task. Its worker connects back to the run and is served as a process of this machine is, so that
every finished question is stored at once; the run must be reachable from the workers. Use it on a network you trust:
options of the memory system go over it as they are.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import socket
import threading
from multiprocessing.connection import Client as connect
from multiprocessing.connection import Connection, Listener
from typing import Any
from urllib.parse import urlsplit

from memx.engine.executors.contract import Executor, Hands
from memx.engine.executors.serving import Service, WorkerLost, kit_of
from memx.engine.executors.wire import Kit
from memx.engine.workshop import Task, Workshop
from memx.errors import UsageError

#: How long a scheduler may take to answer at first, in seconds.
_ANSWER_S = 15
_LOOK_S = 0.2


class Dask(Executor):
    """As many cases at once as the cluster has threads, and no more than ``--concurrency``.

    Raises:
        UsageError: the extra is not installed, or no scheduler answers at the address.
    """

    def __init__(self, shop: Workshop, dataset: tuple[str, str], address: str = "") -> None:
        self._shop = shop
        self._cluster: Any = None
        self._client = self._connected(address, shop.settings.concurrency)
        here = kit_of(shop, dataset)
        # Another machine has directories of its own.
        self._kit = Kit(
            **{name: getattr(here, name) for name in Kit.__slots__} | ({"cache_dir": None} if address else {})
        )
        self._host = _host_towards(self._client.scheduler.address)
        threads = sum(self._client.nthreads().values())
        self.side_by_side = max(1, min(shop.settings.concurrency, threads))

    def hands(self) -> Hands:
        return DaskHands(self._shop, self._client, self._kit, self._host)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=2)

    def _connected(self, address: str, concurrency: int) -> Any:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise UsageError("--executor dask needs Dask", "pip install 'memx[cluster]'") from None
        if not address:
            workers = min(concurrency, os.cpu_count() or 1)
            self._cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
            )
            return Client(self._cluster)
        try:
            return Client(address, timeout=_ANSWER_S)
        except (OSError, ValueError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "Start one with: dask scheduler, and workers that have memx installed."
            raise UsageError(f"no Dask scheduler answers at {address}: {said}", hint) from None


class DaskHands(Hands):
    """Hands one case after another to the cluster."""

    def __init__(self, shop: Workshop, client: Any, kit: Kit, host: str) -> None:
        self._shop = shop
        self._client = client
        self._kit = kit
        self._key = secrets.token_bytes(32)
        self._listener = Listener((host, 0), authkey=self._key)
        self._arrived: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        threading.Thread(target=self._accept, daemon=True, name="dask-accept").start()

    def run(self, task: Task) -> None:
        name = f"memx-{task.case.case_id}-{secrets.token_hex(4)}"
        future = self._client.submit(serve_case, self._listener.address, self._key, key=name, pure=False, retries=0)
        connection = self._connection(future)
        if connection is None:
            future.cancel()
            return
        with connection, contextlib.suppress(WorkerLost):
            connection.send(self._kit)
            Service(self._shop, connection).serve(task)
        future.release()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                self._arrived.put(self._listener.accept())
            except OSError:
                return
            except Exception:  # someone else knocked, without the key
                continue

    def _connection(self, future: Any) -> Connection | None:
        """The worker's connection; None when the run is stopped before it comes.

        Raises:
            UsageError: the worker cannot run the case.
        """
        while not self._shop.stop.is_set():
            with contextlib.suppress(queue.Empty):
                return self._arrived.get(timeout=_LOOK_S)
            if future.status == "error":
                error = future.exception()
                said = f"{type(error).__name__}: {error}"
                hint = "Install the same memx on the workers, and let them reach this machine."
                raise UsageError(f"a Dask worker cannot work off a case: {said}", hint)
        return None


def serve_case(address: tuple[str, int], key: bytes) -> None:
    """What a Dask worker does: connect to the run and work off what it hands over."""
    from memx.engine.executors.worker import work

    with connect(address, authkey=key) as connection:
        work(connection)


def _host_towards(address: str) -> str:
    """The address of this machine on the network of a scheduler."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: this only asks which way a packet would go.
            probe.connect((parts.hostname or "127.0.0.1", parts.port or 1))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
