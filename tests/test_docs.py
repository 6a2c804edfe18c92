"""What the documents show is true: commands and options exist, the example adapter runs, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

import memx
from memx.cli.main import COMMANDS, command
from tests.engine.worlds import Small

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown_commands() -> list[tuple[str, str]]:
    """(document, line) of every memx command in a shell block."""
    found = []
    for path in DOCUMENTS:
        for language, block in _BLOCK.findall(path.read_text()):
            if language in ("bash", "sh", "console", ""):
                for line in block.replace("\\\n", " ").splitlines():
                    match = re.match(r"(?:\$ )?(?:\S*/)?(memx [a-z].*)", line.strip())
                    if match:
                        found.append((path.name, match.group(1).split(" #")[0].strip()))
    return found


def resolve(words: list[str]) -> click.Command:
    """The command that the words name, subcommands included."""
    found: click.Command = command
    context = click.Context(command)
    for word in words:
        if not isinstance(found, click.Group):
            break
        below = found.get_command(context, word)
        if below is None:
            break
        found = below
    return found


@pytest.mark.parametrize(("document", "line"), shown_commands())
def test_a_shown_command_exists_with_its_options(document: str, line: str) -> None:
    words = shlex.split(line)[1:]
    assert words[0] in COMMANDS, f"{document}: {line}"
    found = resolve(words)
    assert not isinstance(found, click.Group), f"{document}: {line}"
    known = {option for parameter in found.params for option in parameter.opts} | {"--help"}
    used = {word.split("=")[0] for word in words if word.startswith("-") and len(word) > 1 and not word[1].isdigit()}
    assert used <= known, f"{document}: {line}: {used - known}"


def test_commands_are_shown_at_all() -> None:
    assert len(shown_commands()) > 20


def test_the_example_adapter_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "adapters.md").read_text()
    code = next(block for language, block in _BLOCK.findall(text) if language == "python")
    (tmp_path / "notebook_of_the_docs.py").write_text(code)
    run = memx.run(_class_of(tmp_path), Small(1), directory=tmp_path / "runs")
    assert run.summary.questions == 3 and run.summary.errors == 0


def _class_of(folder: Path) -> type[memx.MemoryAdapter]:
    names: dict[str, object] = {"__name__": "notebook_of_the_docs"}
    exec(compile((folder / "notebook_of_the_docs.py").read_text(), "notebook_of_the_docs", "exec"), names)
    found = names["Notebook"]
    assert isinstance(found, type) and issubclass(found, memx.MemoryAdapter)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name}: {target}"
