"""Reading a local repository: its files, what Git says of them, and the symbols of Python files."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memx.adapters.sources.contract import inside, modified

#: Folders of a source tree that hold what tools made.
_MADE = {
    "node_modules", "__pycache__", "venv", "env", "build", "dist", "target", "vendor", "site-packages", "htmlcov",
}  # fmt: skip
#: Bytes of a file that is read; larger ones are data.
MOST = 500_000
_GIT_S = 60


@dataclass(frozen=True, slots=True)
class Repository:
    """What Git says of a checkout; empty texts outside of one. ``origin`` is without user and password."""

    name: str
    origin: str
    commit: str
    branch: str


@dataclass(frozen=True, slots=True)
class File:
    """One text file. ``path`` is inside the repository, ``at`` when it last changed, in ISO 8601."""

    path: str
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A class or function of a Python file.

    Attributes:
        kind: ``class``, ``function`` or ``method``.
        name: qualified inside the file: ``Outer.method``.
        first, last: its lines, from 1.
        bases: of a class, as written.
        parent: the symbol around it; empty at the top.
        text: its lines without those of the symbols inside it, which are symbols of their own.
    """

    kind: str
    name: str
    first: int
    last: int
    bases: tuple[str, ...]
    parent: str
    text: str


def repository_at(root: Path) -> Repository:
    """The repository of a folder."""
    origin = _git(root, "config", "--get", "remote.origin.url").strip()
    return Repository(
        name=root.name,
        origin=re.sub(r"(?<=://)[^/\s@]+@", "", origin),
        commit=_git(root, "rev-parse", "HEAD").strip(),
        branch=_git(root, "rev-parse", "--abbrev-ref", "HEAD").strip(),
    )


def files_of(root: Path, findings: list[str]) -> Iterator[File]:
    """The text files, by path: those that Git tracks, or all of a folder that is no checkout.

    Args:
        findings: is told what was left out.
    """
    changed = _changed(root)
    for inner in sorted(_tracked(root) or _walked(root)):
        path = root / inner
        try:
            if not path.is_file() or not inside(path, root):
                continue
            if path.stat().st_size > MOST:
                findings.append(f"{inner} is left out: larger than {MOST:,} bytes")
                continue
            raw = path.read_bytes()
        except OSError as error:
            findings.append(f"{inner} is left out: {error.strerror}")
            continue
        if b"\0" in raw[:8_000]:
            continue
        text = raw.decode("utf-8", "replace").replace("\r\n", "\n")
        yield File(inner, text, changed.get(inner) or modified(path))


def symbols_of(file: File) -> tuple[list[Symbol], str]:
    """Classes and functions of a Python file, in the order they stand, and the text outside of them all.

    Raises:
        SyntaxError: it is no Python of this version.
    """
    lines = file.text.splitlines()
    found: list[Symbol] = []

    def visit(node: ast.AST, parent: str, in_class: bool, first: int, last: int) -> str:
        """The lines of a node that belong to no symbol inside it."""
        own, at = [], first
        for child in _inside(node):
            begin = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            end = child.end_lineno or child.lineno
            own += lines[at - 1 : begin - 1]
            at = end + 1
            is_class = isinstance(child, ast.ClassDef)
            kind = "class" if is_class else "method" if in_class else "function"
            name = f"{parent}.{child.name}" if parent else child.name
            bases = tuple(ast.unparse(base) for base in child.bases) if isinstance(child, ast.ClassDef) else ()
            place = len(found)
            text = visit(child, name, is_class, begin, end)
            found.insert(place, Symbol(kind, name, begin, end, bases, parent, text))
        return "\n".join([*own, *lines[at - 1 : last]])

    try:
        rest = visit(ast.parse(file.text), "", False, 1, len(lines))
    except (RecursionError, ValueError) as error:
        raise SyntaxError(str(error)) from None
    return found, rest


def _inside(node: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The nearest symbols inside a node, in the order they stand; those in branches and loops too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _inside(child)


def _tracked(root: Path) -> list[str]:
    return [name for name in _git(root, "ls-files", "-z").split("\0") if name] if (root / ".git").exists() else []


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _MADE)
        for name in names:
            if not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


def _changed(root: Path) -> dict[str, str]:
    """When each tracked file was last committed."""
    if not (root / ".git").exists():
        return {}
    found: dict[str, str] = {}
    at = ""
    log = _git(root, "log", "-z", "--format=%x01%cI", "--name-only", "--no-renames")
    for part in log.split("\0"):
        # After its time, a commit's first name begins on a new line.
        if part.startswith("\1"):
            at, _, part = part[1:].partition("\n")
        if name := part.strip("\n"):
            found.setdefault(name, at)
    return found


def _git(root: Path, *arguments: str) -> str:
    """What Git prints; nothing where it is missing, refuses or takes too long. Nothing of the checkout is run."""
    if not (root / ".git").exists():
        return ""
    safe = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"]
    try:
        done = subprocess.run(
            ["git", *safe, "-C", str(root), *arguments],
            capture_output=True, timeout=_GIT_S, check=False, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
