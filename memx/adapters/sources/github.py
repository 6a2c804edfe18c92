"""``github``: a local repository, or its exported issues. No network."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memx.adapters.sources.contract import Record, Source
from memx.adapters.sources.github_issues import Issue, Said, issues_in, read_issues
from memx.adapters.sources.github_repository import File, Repository, Symbol, files_of, repository_at, symbols_of
from memx.adapters.sources.pieces import pieces
from memx.errors import InputError


class GitHubSource(Source):
    """A checkout, a folder of source files, or a JSON file or folder of issues.

    A repository gives records of type ``repository``, ``directory``, ``file`` (text in pieces) and ``symbol`` (classes
    and functions of Python files); issues give ``issue`` and ``comment``.
    """

    name = "github"

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        is_checkout = (self.root / ".git").exists()
        self._issues = [] if is_checkout else issues_in(self.root)
        if self.root.is_file() and not self._issues:
            raise InputError("holds no issues", "Give a folder, or a JSON file of exported issues.", path=path)
        self._read: list[File] | None = None

    def iter_records(self) -> Iterator[Record]:
        """Repository, directories, files and symbols by path; or issues and their comments by number."""
        self.findings.clear()
        if self._issues:
            yield from self.issues()
            return
        self._read = None
        yield from self.repository()
        yield from self.directories()
        for file in self._files():
            yield from self._file_records(file)
            yield from self._symbol_records(file)

    def repository(self) -> Iterator[Record]:
        """One record that says what the repository is."""
        facts = repository_at(self.root)
        files = self._files()
        if not files:
            raise InputError("there is no text file in it", "Give the folder of a repository.", path=self.root)
        kinds: dict[str, int] = {}
        for file in files:
            ending = Path(file.path).suffix or "no ending"
            kinds[ending] = kinds.get(ending, 0) + 1
        most = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))[:8]
        about = [f"Repository {facts.name}: {len(files)} text files", ", ".join(f"{n} {kind}" for kind, n in most)]
        if facts.origin:
            about.append(f"origin {facts.origin}")
        if facts.commit:
            about.append(f"branch {facts.branch}, commit {facts.commit}")
        yield Record("\n".join(about), self._metadata("repository", facts.name, files[0].at) | _of(facts))

    def directories(self) -> Iterator[Record]:
        """A record per folder: what stands in it."""
        holds: dict[str, list[str]] = {}
        for file in self._files():
            folder, _, name = file.path.rpartition("/")
            holds.setdefault(folder, []).append(name)
        for folder in sorted(holds):
            if folder:
                for number, piece in enumerate(pieces(", ".join(holds[folder])), start=1):
                    own = self._metadata("directory", f"{folder}/#{number}", "") | {"path": folder}
                    yield Record(f"Folder {folder} holds {piece}", own)

    def files(self) -> Iterator[Record]:
        """The text of every file, in pieces that begin with its path."""
        for file in self._files():
            yield from self._file_records(file)

    def symbols(self) -> Iterator[Record]:
        """Classes and functions of the Python files."""
        for file in self._files():
            yield from self._symbol_records(file)

    def issues(self) -> Iterator[Record]:
        """Issues, pull requests and comments of an export."""
        seen: set[int] = set()
        for path in self._issues:
            for issue in read_issues(path, self.findings):
                if issue.number in seen:
                    self.findings.append(f"{path.name}: issue {issue.number} stands twice; the first counts")
                    continue
                seen.add(issue.number)
                yield from self._issue_records(issue)

    def stats(self) -> dict[str, Any]:
        """Counts by type of record; of a repository its files too."""
        found = super().stats()
        if self._read is not None:
            found["text files"] = len(self._read)
        return found

    def _files(self) -> list[File]:
        if self._read is None:
            self._read = list(files_of(self.root, self.findings))
        return self._read

    def _file_records(self, file: File) -> Iterator[Record]:
        for number, piece in enumerate(pieces(file.text), start=1):
            yield Record(f"{file.path}\n{piece}", self._metadata("file", f"{file.path}#{number}", file.at, file.path))

    def _symbol_records(self, file: File) -> Iterator[Record]:
        if not file.path.endswith(".py"):
            return
        try:
            found = symbols_of(file)
        except SyntaxError as error:
            self.findings.append(f"{file.path}: its symbols are left out: {error.msg}")
            return
        for symbol in found:
            head = f"{symbol.kind} {symbol.name} in {file.path}, lines {symbol.first} to {symbol.last}"
            said = next(pieces(_documented(symbol)), "")
            own = self._metadata("symbol", f"{file.path}:{symbol.first}:{symbol.name}", file.at, file.path)
            yield Record(f"{head}\n{said}", own | _symbol(symbol))

    def _issue_records(self, issue: Issue) -> Iterator[Record]:
        labels = f" [{', '.join(issue.labels)}]" if issue.labels else ""
        head = f"{issue.kind} #{issue.number} {issue.title} ({issue.state}){labels}"
        yield from self._said(issue, issue.opened, "issue", f"#{issue.number}", head)
        for number, comment in enumerate(issue.comments, start=1):
            where = f"comment on {issue.kind} #{issue.number} {issue.title}"
            yield from self._said(issue, comment, "comment", f"#{issue.number}/{number}", where)

    def _said(self, issue: Issue, said: Said, kind: str, identity: str, head: str) -> Iterator[Record]:
        by = f", by {said.author}" if said.author else ""
        own = {
            "number": issue.number, "title": issue.title, "state": issue.state, "labels": list(issue.labels),
            "author": said.author, "url": said.url,
        }  # fmt: skip
        for number, piece in enumerate([*pieces(said.text)] or [""], start=1):
            metadata = self._metadata(kind, f"{identity}.{number}", said.at) | own
            yield Record(f"{head}{by}\n{piece}".strip(), metadata)

    def _metadata(self, kind: str, identity: str, at: str, path: str = "") -> dict[str, Any]:
        found = {"source": self.name, "id": f"{kind}:{identity}", "record_type": kind, "at": at or None}
        return found | {"repository": self.root.name} | ({"path": path} if path else {})


def _of(facts: Repository) -> dict[str, Any]:
    return {"origin": facts.origin, "commit": facts.commit, "branch": facts.branch}


def _symbol(symbol: Symbol) -> dict[str, Any]:
    return {
        "symbol": symbol.name, "symbol_type": symbol.kind, "line_start": symbol.first, "line_end": symbol.last,
        "bases": list(symbol.bases), "parent": symbol.parent,
    }  # fmt: skip


def _documented(symbol: Symbol) -> str:
    """A symbol's first lines, and what its docstring says: what it is for comes before how it does it."""
    try:
        node = ast.parse(textwrap.dedent(symbol.text)).body[0]
        said = (
            ast.get_docstring(node) if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else ""
        )
    except (SyntaxError, IndexError, ValueError, RecursionError):
        said = ""
    return f"{said}\n\n{symbol.text}" if said else symbol.text
