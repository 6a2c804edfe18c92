"""Importing the package of a memory system: what is missing, too old or too new is one clear error."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from memx.errors import UsageError


def load_package(extra: str, module: str, package: str, versions: tuple[str, ...] = ()) -> ModuleType:
    """Import a memory system's own package.

    Args:
        extra: the extra of memx that installs it: ``memx[EXTRA]``.
        module: what to import, for example ``zep_cloud.client``.
        package: its name on the package index, for example ``zep-cloud``.
        versions: the versions that the adapter is written for, as beginnings: ``("4",)``, ``("0.30", "0.31")``; empty
            for any.

    Raises:
        UsageError: it is not installed, is of another version, or cannot be imported; names the one pip command.
    """
    way_out = f"pip install 'memx[{extra}]'"
    try:
        installed = version(package)
    except PackageNotFoundError:
        raise UsageError(f"adapter {extra} needs the package {package}, which is not installed", way_out) from None
    if versions and not any(installed == v or installed.startswith(f"{v}.") for v in versions):
        wanted = " or ".join(f"{v}.*" for v in versions)
        raise UsageError(f"adapter {extra} is written for {package} {wanted}; {installed} is installed", way_out)
    try:
        return importlib.import_module(module)
    except Exception as error:  # a package may raise anything while it is imported
        said = f"{type(error).__name__}: {error}"
        raise UsageError(f"importing {module} of {package} {installed} failed: {said}", way_out) from error
