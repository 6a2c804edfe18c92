"""From the word after ``--executor`` to an executor."""

from __future__ import annotations

from memx.engine.executors.contract import Executor
from memx.engine.workshop import Workshop


def build_executor(shop: Workshop, dataset: tuple[str, str]) -> Executor:
    """The executor that the settings name.

    Args:
        dataset: its name and version.

    Raises:
        UsageError: it cannot be had here.
    """
    kind, _, address = shop.settings.executor.partition(":")
    if kind == "threads":
        from memx.engine.executors.threads import Threads

        return Threads(shop)
    _refuse_what_cannot_be_sent(shop)
    if kind == "processes":
        from memx.engine.executors.processes import Processes

        return Processes(shop, dataset)
    from memx.engine.executors.dask import Dask

    return Dask(shop, dataset, address)


def shown(name: str) -> str:
    """What a user should know of an executor before the run starts; nothing of threads."""
    kind, _, address = name.partition(":")
    if kind == "threads":
        return ""
    where = {"processes": "in worker processes", "dask": f"on the Dask cluster {address or 'of this machine'}"}[kind]
    return f"cases {where}; this process writes the store and asks the models, behind one gate"


def _refuse_what_cannot_be_sent(shop: Workshop) -> None:
    from memx.adapters.registry import adapter_class
    from memx.errors import MemxError, UsageError

    try:
        found = adapter_class(shop.settings.adapter)
    except MemxError:
        found = None
    if found is not shop.adapter_class:
        raise UsageError(
            f"a worker cannot find the class {shop.settings.adapter}",
            "Put it at the top of a module that can be imported, or use --executor threads.",
        )
