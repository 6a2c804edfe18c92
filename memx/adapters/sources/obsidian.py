"""``obsidian``: a vault of Markdown notes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memx.adapters.sources.contract import Record, Source, inside
from memx.adapters.sources.obsidian_notes import Note, read_note
from memx.adapters.sources.pieces import pieces
from memx.errors import InputError

#: Bytes of a note that is read; a larger file is no note that a person wrote.
_MOST = 5_000_000


class ObsidianVault(Source):
    """The notes of a vault. A note becomes one record per section, longer sections several; templates are left out."""

    name = "obsidian"

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        if not self.root.is_dir() or next(self._files(), None) is None:
            raise InputError("there is no note (*.md) in it", "Give the folder of the vault.", path=path)

    def notes(self) -> Iterator[Note]:
        """The notes in order of their path, templates among them; what cannot be read is told in ``findings``."""
        self.findings.clear()
        for path in self._files():
            where = path.relative_to(self.root).as_posix()
            try:
                if path.stat().st_size > _MOST:
                    self.findings.append(f"{where} is left out: larger than {_MOST:,} bytes")
                    continue
                note = read_note(path, self.root)
            except OSError as error:
                self.findings.append(f"{where} is left out: {error.strerror}")
                continue
            if note.problem:
                self.findings.append(f"{where}: {note.problem}")
            yield note

    def iter_notes(self) -> Iterator[Record]:
        """One record per note, whole."""
        for note in self.notes():
            yield Record(note.text, _metadata(note) | {"id": note.path, "record_type": "note"})

    def iter_records(self) -> Iterator[Record]:
        """The records in pieces; each begins with the note's title and headings, so that it says what it is about."""
        for note in self.notes():
            if note.template:
                continue
            part = 0
            parts = [((), note.facts), *((section.path, section.text) for section in note.sections)]
            for headings, text in parts:
                # A heading that repeats the title says nothing more.
                path = [note.title, *(title for title in headings if title != note.title)]
                for piece in pieces(text):
                    part += 1
                    own = {"id": f"{note.path}#{part}", "record_type": "piece", "heading": " > ".join(headings)}
                    yield Record(f"{' > '.join(path)}\n{piece}", _metadata(note) | own)

    def stats(self) -> dict[str, Any]:
        """Notes, templates, linked notes, tasks (done), tags and records."""
        notes = list(self.notes())
        findings = list(self.findings)
        tasks = [done for note in notes for _, done in note.tasks]
        found = {
            "source": self.name,
            "path": str(self.root),
            "notes": len(notes),
            "templates": sum(note.template for note in notes),
            "linked notes": sum(bool(note.links) for note in notes),
            "tasks": len(tasks),
            "tasks done": sum(tasks),
            "tags": len({tag for note in notes for tag in note.tags}),
            "records": sum(1 for _ in self.iter_records()),
        }
        self.findings = findings
        return found

    def _files(self) -> Iterator[Path]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if name.lower().endswith(".md") and not name.startswith(".") and inside(path, self.root):
                    yield path


def _metadata(note: Note) -> dict[str, Any]:
    return {
        "source": "obsidian",
        "path": note.path,
        "title": note.title,
        "folder": note.folder,
        "at": note.at,
        "tags": list(note.tags),
        "aliases": list(note.aliases),
        "links": list(note.links),
        "headings": list(note.headings),
        "tasks": [{"text": text, "done": done} for text, done in note.tasks],
        "frontmatter": {name: _plain(value) for name, value in note.properties.items()},
        "template": note.template,
    }


def _plain(value: Any) -> Any:
    """A value of front matter as JSON has it."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
