"""Fetching datasets: ``memx datasets pull``.

A file arrives beside its place under a ``.part`` name, goes on from there after a cut, is checked, and is moved into
place in one step, so that what stands in the cache is whole. Proxies are taken from ``HTTP_PROXY``, ``HTTPS_PROXY`` and
``NO_PROXY``. ``MEMX_MIRROR`` (``https://mirror.example/base``) stands in for scheme and host of every address.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memx.adapters.contract import file_sha256
from memx.adapters.datasets.cache import dataset_dir
from memx.adapters.datasets.downloads import DOWNLOADS, Remote
from memx.adapters.datasets.options import one_of
from memx.errors import InputError, UnknownNameError

#: Told while a file arrives: its path below the dataset's folder, bytes so far, bytes in all (None: not known).
Progress = Callable[[str, int, int | None], None]

_BLOCK = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
#: The service is there but cannot answer now.
_RETRIED = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Pulled:
    """One file in the cache: where, its checksum, whether that was known beforehand, and whether it was fetched now."""

    path: Path
    sha256: str
    pinned: bool
    fetched: bool


@dataclass(frozen=True, slots=True)
class Link:
    """How to reach the servers: the mirror, how long a silence is borne, how often and how patiently to go on."""

    mirror: str = ""
    timeout_s: float = 30.0
    attempts: int = 5
    pause_s: float = 1.0

    def address(self, url: str) -> str:
        """The URL, at the mirror if there is one (``MEMX_MIRROR``; for the Hugging Face hub also ``HF_ENDPOINT``)."""
        parts = urlsplit(url)
        mirror = self.mirror or os.environ.get("MEMX_MIRROR", "")
        if not mirror and parts.hostname == "huggingface.co":
            mirror = os.environ.get("HF_ENDPOINT", "")
        return mirror.rstrip("/") + parts.path if mirror else url


def pull(
    spec: str, *, progress: Progress | None = None, link: Link | None = None, into: Path | None = None
) -> list[Pulled]:
    """Fetch what a dataset's name stands for, unless it is in the cache and sound.

    Args:
        spec: ``locomo``, ``longmemeval`` (part ``s``), ``longmemeval:oracle``, ``beam`` (tier 100K), ``beam:1m``, ...
        into: the folder to put the files in; by default the cache's.

    Raises:
        UnknownNameError: no such dataset or part.
        InputError: a file cannot be fetched, or is not what it should be; says what to do instead.
    """
    name, remotes = _remotes(spec)
    folder = into or dataset_dir(name)
    record = _Record(folder / "pulled.json")
    pulled = []
    for remote in remotes:
        found = _fetch(remote, folder, record, progress or (lambda path, done, total: None), link or Link())
        if found:
            pulled.append(found)
    return pulled


def describe(spec: str) -> list[Remote]:
    """The files that :func:`pull` would fetch."""
    return list(_remotes(spec)[1])


def _remotes(spec: str) -> tuple[str, tuple[Remote, ...]]:
    name, _, part = spec.partition(":")
    if name not in DOWNLOADS:
        raise UnknownNameError("dataset to fetch", name, DOWNLOADS, "Others are given with --source.")
    parts = DOWNLOADS[name]
    return name, parts[one_of(f"part of {name}", part, parts) or next(iter(parts))]


class _Record:
    """``pulled.json``: address and checksum of each file fetched, for those whose checksum is not known beforehand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, str]] = {}
        with contextlib.suppress(OSError, ValueError):
            self.rows = json.loads(path.read_text(encoding="utf-8"))

    def sha256(self, remote: Remote) -> str:
        row = self.rows.get(remote.path, {})
        return row.get("sha256", "") if row.get("url") == remote.url else ""

    def note(self, remote: Remote, sha256: str) -> None:
        self.rows[remote.path] = {"url": remote.url, "sha256": sha256}
        scratch = self.path.with_suffix(".tmp")
        scratch.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
        scratch.replace(self.path)


def _fetch(remote: Remote, folder: Path, record: _Record, progress: Progress, link: Link) -> Pulled | None:
    target = folder / remote.path
    try:
        wanted = remote.sha256 or record.sha256(remote)
        if target.is_file() and wanted and file_sha256(target) == wanted:
            progress(remote.path, target.stat().st_size, target.stat().st_size)
            return Pulled(target, wanted, bool(remote.sha256), False)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        if not _Transfer(remote, link, target, part, progress).run():
            return None
        sha256 = _checked(remote, part)
        part.replace(target)
        record.note(remote, sha256)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "Make room or choose another place by MEMX_CACHE_DIR; what has arrived is kept and gone on from."
        raise InputError(f"cannot be written: {reason}", hint, path=target) from None
    return Pulled(target, sha256, bool(remote.sha256), True)


def _checked(remote: Remote, part: Path) -> str:
    """The checksum of what arrived; what is not the file wanted is removed."""
    size, sha256 = part.stat().st_size, file_sha256(part)
    if (remote.size and size != remote.size) or (remote.sha256 and sha256 != remote.sha256):
        part.unlink()
        expected = f"{remote.size:,} bytes, " if remote.size else ""
        raise InputError(
            f"what {remote.url} served is not the file of the release: {size:,} bytes, sha256 {sha256}; "
            f"expected {expected}sha256 {remote.sha256}",
            "Nothing was kept. Try again; if it stays so, get the file elsewhere and give it by --source.",
        )
    return sha256


class _Failed(Exception):
    """This attempt came to nothing; another may not."""


class _Transfer:
    """One file's way from a server into its ``.part`` file, over as many attempts as it takes."""

    def __init__(self, remote: Remote, link: Link, target: Path, part: Path, progress: Progress) -> None:
        self.remote = remote
        self.link = link
        self.target = target
        self.part = part
        self.progress = progress
        self.url = link.address(remote.url)
        self.tag_file = part.with_name(part.name + ".etag")
        self.opener = urllib.request.build_opener()

    def run(self) -> bool:
        """Fetch until the file is there; False when an optional one does not exist.

        Raises:
            InputError: it cannot be fetched.
        """
        fruitless = 0
        while True:
            before = self._have()
            try:
                found = self._attempt(before)
            except _Failed as error:
                fruitless = 0 if self._have() > before else fruitless + 1
                if fruitless >= self.link.attempts:
                    raise InputError(f"cannot fetch {self.url}: {error}", self._way_out()) from None
                time.sleep(min(self.link.pause_s * 2**fruitless, 30.0))
            else:
                self.tag_file.unlink(missing_ok=True)
                return found

    def _way_out(self) -> str:
        size = f" ({self.remote.size:,} bytes)" if self.remote.size else ""
        kept = f" {self._have():,} bytes have arrived; pull again to go on." if self._have() else ""
        return (
            f"Download it{size} where there is a network and put it at {self.target}, or give it by --source.{kept}"
            " A proxy is taken from HTTPS_PROXY, a mirror from MEMX_MIRROR."
        )

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _attempt(self, have: int) -> bool:
        headers = {"User-Agent": "memx"}
        tag = self.tag_file.read_text(encoding="utf-8") if self.tag_file.exists() else ""
        # Without a checksum or a tag nothing would tell that the file changed between two attempts.
        if have and not (tag or self.remote.sha256):
            have = 0
        if have:
            headers["Range"] = f"bytes={have}-"
            if tag:
                headers["If-Range"] = tag
        try:
            with self.opener.open(
                urllib.request.Request(self.url, headers=headers), timeout=self.link.timeout_s
            ) as reply:
                self._receive(reply, have)
        except urllib.error.HTTPError as error:
            return self._refused(error, have)
        except urllib.error.URLError as error:
            raise _Failed(f"{urlsplit(self.url).hostname} cannot be reached ({_reason(error.reason)})") from None
        except TimeoutError:
            raise _Failed(f"no byte came for {self.link.timeout_s:g} s") from None
        except (http.client.HTTPException, ConnectionError, ssl.SSLError) as error:
            raise _Failed(f"the connection broke ({_reason(error)})") from None
        return True

    def _refused(self, error: urllib.error.HTTPError, have: int) -> bool:
        error.close()
        if error.code in (404, 410) and self.remote.optional:
            return False
        if error.code == 416:
            # Nothing is left to send: either all is here, or the file is another one now.
            if have == self.remote.size:
                return True
            self.part.unlink(missing_ok=True)
            self.tag_file.unlink(missing_ok=True)
            raise _Failed("the part here fits no file there, begun anew")
        if error.code in _RETRIED:
            raise _Failed(f"HTTP {error.code} {error.reason}")
        raise InputError(f"cannot fetch {self.url}: HTTP {error.code} {error.reason}", self._way_out())

    def _receive(self, reply: Any, have: int) -> None:
        if "text/html" in reply.headers.get("Content-Type", ""):
            raise self._web_page()
        given = _RANGE.fullmatch(reply.headers.get("Content-Range", "")) if reply.status == 206 else None
        if reply.status == 206 and (given is None or int(given[1]) != have):
            self.part.unlink(missing_ok=True)
            raise _Failed("the server sent another range than was asked for")
        if given is None:
            have = 0
        length = reply.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() else self.remote.size or None
        if tag := reply.headers.get("ETag", ""):
            self.tag_file.write_text(tag, encoding="utf-8")
        with self.part.open("ab" if have else "wb") as stream:
            # read1 hands out what has come, so that a stall loses nothing.
            while block := reply.read1(_BLOCK):
                if not have and block.lstrip()[:15].lower().startswith((b"<!doctype", b"<html")):
                    raise self._web_page()
                stream.write(block)
                have += len(block)
                self.progress(self.remote.path, have, total)
            stream.flush()
            os.fsync(stream.fileno())
        if total is not None and have < total:
            raise _Failed(f"the connection ended after {have:,} of {total:,} bytes")

    def _web_page(self) -> InputError:
        return InputError(
            f"{self.url} served a web page instead of the file",
            f"A login page of the network, or a mirror that lacks it? {self._way_out()}",
        )


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)
