"""Datasets given as an archive (``.zip``, ``.tar``, ``.tar.gz``): unpacked once, and into the cache only."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from memx.adapters.datasets.cache import cache_dir, known_sha256
from memx.errors import InputError

_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def is_archive(path: Path) -> bool:
    """True when the file's name is that of an archive."""
    return path.name.lower().endswith(_SUFFIXES) and path.is_file()


def unpacked(archive: Path) -> Path:
    """The folder that holds the archive's files, or the one file, unpacked on the first call.

    Raises:
        InputError: no archive, damaged, or a member whose path leads out of it or that is no plain file.
    """
    folder = cache_dir() / "unpacked" / known_sha256(archive)[:16]
    if folder.is_dir():
        return _innermost(folder)
    scratch = folder.with_name(folder.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        for name, content in _members(archive):
            target = scratch / _inside(name, archive)
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as stream:
                shutil.copyfileobj(content, stream, 1 << 20)
        if not scratch.is_dir():
            raise InputError("the archive holds no file", "Give the one that was published.", path=archive)
        scratch.replace(folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"is no sound archive: {error}", "Fetch it again.", path=archive) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be unpacked into {folder}: {reason}", "Set MEMX_CACHE_DIR.", path=archive) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return _innermost(folder)


def _innermost(folder: Path) -> Path:
    """Past folders that hold a single folder; the file itself where there is only one."""
    found = list(folder.iterdir())
    while len(found) == 1:
        folder = found[0]
        if not folder.is_dir():
            break
        found = list(folder.iterdir())
    return folder


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Names and contents of the plain files. A link or device is refused: no dataset needs one."""
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    yield info.filename, packed.open(info)
        return
    with tarfile.open(archive) as packed_tar:
        for member in packed_tar:
            content = packed_tar.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content
            elif not member.isdir():
                raise InputError("is a link or device", "Unpack by hand.", path=archive, place=member.name)


def _inside(name: str, archive: Path) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or not path.parts:
        raise InputError("leads out of the archive", "Do not trust this file.", path=archive, place=name[:200])
    return Path(*path.parts)
