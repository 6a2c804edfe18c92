"""Reading one note of an Obsidian vault: front matter, headings, wiki links, tags, tasks, dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memx.adapters.sources.contract import modified

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:^---|^\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_WIKI = re.compile(r"(!?)\[\[([^\]|#^\n]*)(?:[#^]([^\]|\n]*))?(?:\|([^\]\n]*))?\]\]")
_MARKDOWN_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(<?([^)\s>]+\.md)(?:#[^)\s]*)?>?\)")
_TAG = re.compile(r"(?<![\w/#&\]])#([\w/-]*[^\W\d][\w/-]*)")
_TASK = re.compile(r"^\s*(?:[-*+]|\d+[.)])[ \t]+\[(.)\][ \t]+(.+)$")
_COMMENT = re.compile(r"%%.*?%%", re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_DAY = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_PLACEHOLDER = re.compile(r"\{\{\s*(?:title|date|time)\b|<%[*_-]?")
#: Properties that say when a note is of, the most telling first.
_DATES = ("date", "created", "date created", "created_at", "updated", "date modified", "modified")
#: Properties about the note as a file, which are no knowledge.
_OF_THE_FILE = {"tags", "tag", "aliases", "alias", "cssclasses", "cssclass", "publish", "template", *_DATES}
#: Bytes of front matter that are read.
_MOST_FRONT = 64_000


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a note under one heading; ``path`` holds the headings above it and its own."""

    path: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """One note as parsed.

    Attributes:
        path: inside the vault, with ``/``.
        properties: its front matter.
        text: the body, links replaced by what they show.
        tasks: text and whether it is done.
        at: when it is of: its front matter, its file name, else when the file was last written. ISO 8601.
        problem: why the front matter could not be read; empty where it could.
    """

    path: str
    title: str
    properties: Mapping[str, Any]
    text: str
    headings: tuple[str, ...]
    links: tuple[str, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    tasks: tuple[tuple[str, bool], ...]
    at: str
    template: bool
    sections: tuple[Section, ...] = field(repr=False)
    problem: str = ""

    @property
    def folder(self) -> str:
        """The folder of the note inside the vault; empty for the vault itself."""
        return self.path.rpartition("/")[0]

    @property
    def facts(self) -> str:
        """The properties that say something of the note's subject, as lines ``name: value``."""
        told = [(name, value) for name, value in self.properties.items() if name.lower() not in _OF_THE_FILE]
        return "\n".join(f"{name}: {_shown(value)}" for name, value in told if value not in (None, "", [], {}))


def read_note(path: Path, root: Path) -> Note:
    """Read a note.

    Raises:
        OSError: the file cannot be read.
    """
    whole = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    properties, problem, body = _front(whole)
    body = _COMMENT.sub("", body)
    lines = list(_lines(body))
    prose = "\n".join("" if code else line for line, code in lines)
    bare = _CODE.sub("", prose)
    found = [*_WIKI.finditer(bare)]
    links = [match[2].strip() for match in found if match[2].strip()]
    links += [match[3] for match in _MARKDOWN_LINK.finditer(bare)]
    tags = [*_listed(properties, "tags", "tag"), *_TAG.findall(_WIKI.sub("", bare))]
    tasks = [(match[2].strip(), match[1] in "xX") for match in map(_TASK.match, prose.splitlines()) if match]
    inside = path.relative_to(root).as_posix()
    sections = tuple(_sections(lines))
    return Note(
        path=inside,
        title=path.stem,
        properties=properties,
        text=_without_links(body).strip(),
        headings=tuple(section.path[-1] for section in sections if section.path),
        links=tuple(dict.fromkeys(links)),
        tags=tuple(dict.fromkeys(tag.lstrip("#") for tag in tags)),
        aliases=tuple(_listed(properties, "aliases", "alias")),
        tasks=tuple(tasks),
        at=_time(properties, path),
        template=_is_template(inside, properties, whole),
        sections=sections,
        problem=problem,
    )


def _front(whole: str) -> tuple[dict[str, Any], str, str]:
    """Properties, why they could not be read, and the text after them."""
    match = _FRONT.match(whole)
    if match is None:
        return {}, "", whole.removeprefix("\ufeff")
    body = whole[match.end() :]
    if len(match[1]) > _MOST_FRONT:
        return {}, f"its front matter is longer than {_MOST_FRONT:,} characters", body
    import yaml

    class Plain(yaml.SafeLoader):
        """No aliases: a few lines of them can stand for gigabytes."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    try:
        loaded = yaml.load(match[1], Plain)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return {}, f"its front matter cannot be read: {str(error).splitlines()[0]}", body
    if loaded is None:
        return {}, "", body
    if not isinstance(loaded, dict):
        return {}, "its front matter is no list of properties", body
    return {str(name): value for name, value in loaded.items()}, "", body


def _lines(body: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a block of code."""
    fence = ""
    for line in body.split("\n"):
        match = _FENCE.match(line)
        if fence:
            yield line, True
            if match and match[1][0] == fence[0] and len(match[1]) >= len(fence):
                fence = ""
        elif match:
            fence = match[1]
            yield line, True
        else:
            yield line, False


def _sections(lines: list[tuple[str, bool]]) -> Iterator[Section]:
    above: list[tuple[int, str]] = []
    held: list[str] = []

    def section() -> Section:
        return Section(tuple(title for _, title in above), _without_links("\n".join(held)).strip())

    for line, code in lines:
        match = None if code else _HEADING.match(line)
        if match is None:
            held.append(line)
            continue
        if above or "".join(held).strip():
            yield section()
        level = len(match[1])
        above = [*(one for one in above if one[0] < level), (level, _without_links(match[2]))]
        held = []
    if above or "".join(held).strip():
        yield section()


def _without_links(text: str) -> str:
    """The text with each link replaced by the words that a reader sees."""

    def wiki(match: re.Match[str]) -> str:
        target = match[2].strip().rpartition("/")[2]
        return (match[4] or " > ".join(part for part in (target, match[3] or "") if part)).strip()

    return _MARKDOWN_LINK.sub(lambda match: match[2], _WIKI.sub(wiki, text))


def _listed(properties: Mapping[str, Any], *names: str) -> list[str]:
    """A property that holds a list, or one text with commas or blanks between."""
    found: list[str] = []
    for name in names:
        value = properties.get(name)
        if isinstance(value, str):
            found += [part.strip() for part in re.split(r"[,\n]" if "," in value else r"\s+", value)]
        elif isinstance(value, list):
            found += [str(part).strip() for part in value if part is not None]
    return [part for part in found if part]


def _time(properties: Mapping[str, Any], path: Path) -> str:
    lower = {name.lower(): value for name, value in properties.items()}
    for name in _DATES:
        value = lower.get(name)
        if isinstance(value, datetime | date):
            return value.isoformat()
        if isinstance(value, str) and (found := _read_time(value)):
            return found
    day = _DAY.search(path.stem)
    return (_read_time(day[1]) if day else "") or modified(path)


def _read_time(text: str) -> str:
    from dateutil import parser

    try:
        return parser.parse(text, default=datetime(2000, 1, 1)).isoformat()
    except (ValueError, OverflowError, TypeError):
        return ""


def _is_template(inside: str, properties: Mapping[str, Any], whole: str) -> bool:
    folders = {part.lower() for part in inside.split("/")[:-1]}
    return bool(folders & {"templates", "template", "_templates"} or properties.get("template") is True or
                _PLACEHOLDER.search(whole))  # fmt: skip


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return _without_links(str(value))
