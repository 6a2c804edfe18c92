"""The graph databases that Graphiti can keep its graph in: two embedded ones and two servers."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import warnings
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from memx.adapters.packages import load_package
from memx.errors import UsageError
from memx.text.secrets import remember

#: Backends whose data lies in a file of this process.
EMBEDDED = ("kuzu", "falkordblite")
BACKENDS = (*EMBEDDED, "falkordb", "neo4j")
_NEO4J_RETRY_S = 2.0
_WHERE = {"falkordb": "redis://localhost:6379", "neo4j": "bolt://localhost:7687"}
#: What each backend needs beside Graphiti: module, package, the extra that brings both.
_NEEDS = {
    "kuzu": ("kuzu", "kuzu", "graphiti"),
    "falkordblite": ("redislite.async_falkordb_client", "falkordblite", "graphiti-falkordb"),
    "falkordb": ("falkordb", "falkordb", "graphiti-falkordb"),
    "neo4j": ("neo4j", "neo4j", "graphiti"),
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A driver for the graph of one entity, the scratch folder that goes with it, and what ends its server at exit."""

    driver: Any
    backend: str
    scratch: TemporaryDirectory[str] | None = None
    guard: weakref.finalize[[int, int], Any] | None = None

    async def prepare(self) -> None:
        """Make the indices that searching needs; those that stand already are kept."""
        if self.backend != "kuzu":
            await self.driver.build_indices_and_constraints()
            return
        # This driver makes none by itself, and has no word for "if there is none yet".
        queries = importlib.import_module("graphiti_core.graph_queries")
        for query in queries.get_fulltext_indices(self.driver.provider):
            try:
                await self.driver.execute_query(query)
            except RuntimeError as error:
                if "already exists" not in str(error):
                    raise

    async def close(self) -> None:
        """Release the database, and remove it where it was a scratch one."""
        # A database that is gone already has nothing left to release.
        with contextlib.suppress(Exception):
            if self.backend == "kuzu":
                self.driver.client.close()
                self.driver.db.close()
            elif self.backend == "falkordblite":
                # Closing the client leaves its server running.
                await self.driver.client.client.shutdown(save=self.scratch is None, nosave=self.scratch is not None)
                await self.driver.client.close()
                if self.guard is not None:
                    self.guard.detach()
            else:
                await self.driver.close()
        if self.scratch is not None:
            self.scratch.cleanup()


def check(backend: str) -> None:
    """Refuse a backend whose package is not installed.

    Raises:
        UsageError: names the one pip command.
    """
    if backend == "falkordblite" and sys.version_info < (3, 12):
        raise UsageError(
            "adapter graphiti: falkordblite needs Python 3.12", "Choose --adapter-option backend=kuzu, or a server."
        )
    module, package, extra = _NEEDS[backend]
    load_package(extra, module, package)


def address(options: Mapping[str, Any]) -> str:
    """Where the database is, to be shown: a server's address without user and password, a folder, or nowhere."""
    if options["backend"] in EMBEDDED:
        return str(options["path"])
    parts = _server(options)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def open_driver(options: Mapping[str, Any], entity_id: str) -> Opened:
    """A driver of the chosen backend whose graph is the entity's own."""
    backend = options["backend"]
    if backend == "kuzu":
        return _kuzu(options, entity_id)
    if backend == "neo4j":
        module = importlib.import_module("graphiti_core.driver.neo4j_driver")
        parts = _server(options)
        user = options["user"] or unquote(parts.username or "neo4j")
        password = options["password"] or unquote(parts.password or "")
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        driver = module.Neo4jDriver(url, user, password, options["database"])
        # Its own client asks a server that is down for half a minute before it says so.
        neo4j = importlib.import_module("neo4j")
        driver.client = neo4j.AsyncGraphDatabase.driver(
            url, auth=(user, password), max_transaction_retry_time=_NEO4J_RETRY_S
        )
        return Opened(driver, backend)
    module = importlib.import_module("graphiti_core.driver.falkordb_driver")
    if backend == "falkordblite":
        lite = importlib.import_module("redislite.async_falkordb_client")
        scratch = None if options["path"] else TemporaryDirectory(prefix="memx-graphiti-", ignore_cleanup_errors=True)
        folder = Path(scratch.name) if scratch else _folder(options)
        database = lite.AsyncFalkorDB(dbfilename=str(folder / f"{entity_id}.rdb"))
        driver = module.FalkorDriver(falkor_db=database, database=entity_id)
        # By itself it leaves its server running when a process ends that did not come to close it.
        how = signal.SIGKILL if scratch else signal.SIGTERM
        guard = weakref.finalize(driver, _end, database.client.pid, how)
        return Opened(driver, backend, scratch, guard)
    parts = _server(options)
    user, password = (
        options["user"] or unquote(parts.username or ""),
        options["password"] or unquote(parts.password or ""),
    )
    driver = module.FalkorDriver(parts.hostname, parts.port or 6379, user or None, password or None, database=entity_id)
    return Opened(driver, backend)


def absent(options: Mapping[str, Any], entity_id: str) -> bool:
    """Nothing was ever stored of the entity below ``path``: looking for it must not make a database."""
    kept = options["backend"] in EMBEDDED and options["path"]
    return bool(kept) and not any(_folder(options).glob(f"{entity_id}.*"))


def remove_files(options: Mapping[str, Any], entity_id: str) -> None:
    """Delete the entity's own database below ``path``, where the backend is an embedded one."""
    if options["backend"] in EMBEDDED and options["path"]:
        for file in _folder(options).glob(f"{entity_id}.*"):
            file.unlink(missing_ok=True)


def _end(pid: int, how: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, how)


def _kuzu(options: Mapping[str, Any], entity_id: str) -> Opened:
    module = importlib.import_module("graphiti_core.driver.kuzu_driver")
    file = str(_folder(options) / f"{entity_id}.kuzu") if options["path"] else ":memory:"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        driver = module.KuzuDriver(db=file)
    # Graphiti looks for the name of the database, which this driver does not set.
    driver._database = entity_id
    return Opened(driver, "kuzu")


def _folder(options: Mapping[str, Any]) -> Path:
    folder = Path(options["path"]).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _server(options: Mapping[str, Any]) -> SplitResult:
    """The server's address.

    Raises:
        UsageError: it cannot be read.
    """
    usual = _WHERE[options["backend"]]
    given = options["url"] or usual
    try:
        parts = urlsplit(given if "://" in given else f"{usual.partition('://')[0]}://{given}")
        readable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        readable = False
    if not readable:
        raise UsageError("option url of adapter graphiti is no address", f"Give it as in {usual}.")
    remember(unquote(parts.password or ""))
    return parts
