"""Reading exported issues and pull requests: JSON as the GitHub API and ``gh issue list --json`` write it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memx.errors import InputError


@dataclass(frozen=True, slots=True)
class Said:
    """An issue's text or one comment on it. ``at`` is ISO 8601, empty where the export does not say."""

    author: str
    text: str
    at: str
    url: str


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue or pull request."""

    number: int
    kind: str
    title: str
    state: str
    labels: tuple[str, ...]
    opened: Said
    comments: tuple[Said, ...]


def issues_in(path: Path) -> list[Path]:
    """The JSON files of a path that hold issues."""
    files = [path] if path.is_file() else sorted(path.rglob("*.json"))
    return [file for file in files if _looks_right(file)]


def read_issues(file: Path, findings: list[str]) -> Iterator[Issue]:
    """The issues of a file, in its order.

    Args:
        findings: is told which entries were left out, and why.

    Raises:
        InputError: it is no JSON.
    """
    for place, entry in enumerate(_entries(_loaded(file)), start=1):
        try:
            yield _issue(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            findings.append(f"{file.name}: entry {place} is left out: {type(error).__name__}: {error}")


def _looks_right(file: Path) -> bool:
    try:
        entries = _entries(_loaded(file))
    except InputError:
        return False
    return any(isinstance(entry, Mapping) and "number" in entry and "title" in entry for entry in entries[:20])


def _loaded(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", "Export issues as JSON.", path=file) from None


def _entries(loaded: Any) -> list[Any]:
    """A list of issues, one issue, or an object with a list of them."""
    if isinstance(loaded, list):
        return loaded
    if isinstance(loaded, Mapping):
        if "number" in loaded:
            return [loaded]
        for name in ("issues", "pullRequests", "pull_requests", "items"):
            if isinstance(loaded.get(name), list):
                return list(loaded[name])
    return []


def _issue(entry: Mapping[str, Any]) -> Issue:
    pull = "pull_request" in entry or "/pull/" in _text(entry, "html_url", "url") or "mergedAt" in entry
    comments = entry.get("comments")
    return Issue(
        number=int(entry["number"]),
        kind="pull request" if pull else "issue",
        title=str(entry["title"]),
        state=str(entry.get("state", "")).lower(),
        labels=tuple(_name(label) for label in entry.get("labels") or ()),
        opened=_said(entry),
        # The API gives the number of comments here, an export the comments.
        comments=tuple(_said(one) for one in comments) if isinstance(comments, list) else (),
    )


def _said(entry: Mapping[str, Any]) -> Said:
    author = entry.get("author") or entry.get("user") or ""
    return Said(
        author=str(author.get("login") or author.get("name") or "") if isinstance(author, Mapping) else str(author),
        text=str(entry.get("body") or "").replace("\r\n", "\n"),
        at=_text(entry, "createdAt", "created_at"),
        url=_text(entry, "html_url", "url"),
    )


def _name(label: Any) -> str:
    return str(label["name"]) if isinstance(label, Mapping) else str(label)


def _text(entry: Mapping[str, Any], *names: str) -> str:
    return next((str(entry[name]) for name in names if entry.get(name)), "")
