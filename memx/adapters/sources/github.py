"""``github``: a local repository, or its exported issues. No network."""

from __future__ import annotations

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
        yield from self.files()
        yield from self.symbols()

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
        """The text of every file, in pieces that begin with its path; of a Python file what is outside of symbols."""
        for file in self._files():
            text = self._parsed(file)[1]
            for number, piece in enumerate(pieces(text), start=1):
                own = self._metadata("file", f"{file.path}#{number}", file.at, file.path)
                yield Record(f"{file.path}\n{piece}", own)

    def symbols(self) -> Iterator[Record]:
        """Classes and functions of the Python files, in pieces that begin with what they are and where they stand."""
        for file in self._files():
            for symbol in self._parsed(file)[0]:
                head = f"{symbol.kind} {symbol.name} in {file.path}, lines {symbol.first} to {symbol.last}"
                for number, piece in enumerate(pieces(textwrap.dedent(symbol.text)), start=1):
                    identity = f"{file.path}:{symbol.first}:{symbol.name}#{number}"
                    own = self._metadata("symbol", identity, file.at, file.path) | _symbol(symbol)
                    yield Record(f"{head}\n{piece}", own)

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

    def _parsed(self, file: File) -> tuple[list[Symbol], str]:
        """The symbols of a file and the text outside of them; none of what is no Python."""
        if not file.path.endswith(".py"):
            return [], file.text
        try:
            return symbols_of(file)
        except SyntaxError as error:
            told = f"{file.path}: read without its symbols: {error.msg}"
            if told not in self.findings:
                self.findings.append(told)
            return [], file.text

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
