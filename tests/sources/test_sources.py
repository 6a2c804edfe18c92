"""Vaults, repositories and issue exports as people have them, and broken ones; then questions about them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memx.adapters.sources.contract import Record
from memx.adapters.sources.github import GitHubSource
from memx.adapters.sources.obsidian import ObsidianVault
from memx.adapters.sources.pieces import pieces
from memx.cli.main import run_command
from memx.engine.knowledge import Knowledge
from memx.errors import InputError
from memx.memory.embedding import minilm
from memx.memory.engine import MemoryEngine
from memx.text.gate import printable
from tests.fake_openai import FakeOpenAI

Call = Callable[..., tuple[int, str, str]]

TRIP = """---
tags: [travel, norway]
aliases: Oslo
created: 2024-05-03
cost: 1,240 euros
---
# Oslo trip
We went with [[People/Melanie Smith|Melanie]] by ferry. #boats not#atag
![[map.png]]

## Day 2 ##
Saw the [[Museums#Munch]]. The ticket was 160 kroner. %%hidden%%
- [ ] send photos
- [x] book the ferry

```python
# not a heading, #notatag and [[no link]]
```
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault of five notes with a template, broken front matter and a link that leads out."""
    root = tmp_path / "vault"
    files = {
        "Oslo trip.md": TRIP,
        "Daily/2024-06-01.md": "Met Carla from the bakery. She has two dogs, Pip and Nell.",
        "Templates/daily.md": "# {{title}}\n",
        "broken.md": "---\na: [1\n---\nStill a note about violins.\n",
        "bomb.md": "---\na: &a [x, x]\nb: [*a, *a]\n---\nText after a bomb.\n",
        ".obsidian/workspace.md": "not a note",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "latin1.md").write_bytes(b"caf\xe9 \xff\x00")
    (tmp_path / "secret.md").write_text("a secret")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    return root


def test_a_note_keeps_what_obsidian_knows_of_it(vault: Path) -> None:
    notes = {note.metadata["path"]: note for note in ObsidianVault(vault).iter_notes()}
    assert list(notes) == [
        "Oslo trip.md", "bomb.md", "broken.md", "latin1.md", "Daily/2024-06-01.md", "Templates/daily.md",
    ]  # fmt: skip
    trip = notes["Oslo trip.md"].metadata
    assert trip["tags"] == ["travel", "norway", "boats"] and trip["aliases"] == ["Oslo"]
    assert trip["links"] == ["People/Melanie Smith", "map.png", "Museums"]
    assert trip["headings"] == ["Oslo trip", "Day 2"]
    assert trip["tasks"] == [{"text": "send photos", "done": False}, {"text": "book the ferry", "done": True}]
    assert trip["at"] == "2024-05-03" and trip["frontmatter"]["cost"] == "1,240 euros"
    assert notes["Daily/2024-06-01.md"].metadata["at"].startswith("2024-06-01")
    assert notes["Templates/daily.md"].metadata["template"] is True
    assert "went with Melanie by ferry" in notes["Oslo trip.md"].text
    json.dumps([note.as_dict() for note in notes.values()])


def test_a_vault_gives_pieces_that_say_what_they_are_about(vault: Path) -> None:
    source = ObsidianVault(vault)
    texts = [record.text for record in source.iter_records()]
    assert "Oslo trip\ncost: 1,240 euros" in texts
    day = next(text for text in texts if text.startswith("Oslo trip > Day 2\n"))
    assert "Saw the Museums > Munch. The ticket was 160 kroner." in day and "hidden" not in day
    assert not any("secret" in text or "{{title}}" in text for text in texts)
    assert source.findings == [
        "bomb.md: its front matter cannot be read: aliases are not read",
        "broken.md: its front matter cannot be read: while parsing a flow sequence",
    ]
    stats = source.stats()
    assert (stats["notes"], stats["templates"], stats["tasks"], stats["tasks done"]) == (6, 1, 2, 1)
    assert stats["records"] == len(texts) == len({record.metadata["id"] for record in source.records()})


def test_load_hands_over_every_record(vault: Path) -> None:
    source = ObsidianVault(vault)
    taken: list[str] = []
    assert source.load(lambda text, metadata: taken.append(text)) == len(taken) > 0
    with pytest.raises(TypeError, match="insert must be callable"):
        source.load("no function")  # type: ignore[arg-type]
    for text, metadata in ((1, {}), ("x", []), ("x", {"source": "s"})):
        with pytest.raises((TypeError, ValueError)):
            Record(text, metadata)  # type: ignore[arg-type]


def test_a_source_fills_a_memory_of_ones_own(vault: Path) -> None:
    engine = MemoryEngine(minilm(), "bm25")
    assert ObsidianVault(vault).load_into_memory(engine) == len(engine.rows) > 4
    (hit,) = engine.recall("who has two dogs?", 1).hits
    assert hit.memory.metadata["path"] == "Daily/2024-06-01.md"


@pytest.mark.parametrize("kind", [ObsidianVault, GitHubSource])
def test_nothing_to_read_is_said(tmp_path: Path, kind: type[ObsidianVault] | type[GitHubSource]) -> None:
    with pytest.raises(InputError, match="no such folder"):
        kind(tmp_path / "nowhere")
    with pytest.raises(InputError, match="there is no"):
        list(kind(tmp_path).iter_records())


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout with one commit, a binary file, and a file that Git does not track."""
    root = tmp_path / "shop"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "cart.py").write_text(
        'class Cart(Base):\n    """Holds what a customer chose."""\n\n    @property\n    def total(self):\n'
        "        return 0\n\n\ndef empty(cart):\n    cart.clear()\n"
    )
    (root / "lib" / "old.py").write_text("print 'python 2'\n")
    (root / "README.md").write_text("# Shop\n\nSells violins.\n")
    (root / "logo.bin").write_bytes(b"\x89\x00\x01")
    environ = os.environ | {
        f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environ |= {"GIT_AUTHOR_DATE": "2024-02-03T04:05:06Z", "GIT_COMMITTER_DATE": "2024-02-03T04:05:06Z"}
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"],
                  ["config", "remote.origin.url", "https://u:token@example.org/shop.git"]):  # fmt: skip
        subprocess.run(["git", "-C", str(root), *words], check=True, env=environ)
    (root / "untracked.txt").write_text("not in Git")
    return root


def test_a_clone_gives_repository_folders_files_and_symbols(clone: Path) -> None:
    source = GitHubSource(clone)
    records = source.records()
    kinds = [record.metadata["record_type"] for record in records]
    assert {kind: kinds.count(kind) for kind in kinds} == {"repository": 1, "directory": 1, "file": 2, "symbol": 3}
    assert records[0].metadata["origin"] == "https://example.org/shop.git"
    symbols = {record.metadata["symbol"]: record for record in source.symbols()}
    cart, total = symbols["Cart"].metadata, symbols["Cart.total"].metadata
    assert (cart["symbol_type"], cart["bases"], cart["line_start"], cart["line_end"]) == ("class", ["Base"], 1, 6)
    assert (total["symbol_type"], total["parent"], total["line_start"]) == ("method", "Cart", 4)
    assert symbols["empty"].metadata["symbol_type"] == "function"
    assert {record.metadata["at"] for record in source.files()} == {"2024-02-03T04:05:06+00:00"}
    assert symbols["Cart"].text.endswith('class Cart(Base):\n    """Holds what a customer chose."""')
    assert symbols["Cart.total"].text.endswith("\n@property\ndef total(self):\n    return 0")
    (finding,) = source.findings
    assert finding.startswith("lib/old.py: read without its symbols: Missing parentheses")
    assert not any("token" in json.dumps(record.as_dict()) for record in records)


def test_of_a_python_file_every_line_is_in_one_record(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import os\n\n\ndef outer():\n    x = 1\n\n    def inner():\n        return x\n\n    return inner\n\n\n"
        "if os.name:\n    class Late:\n        y = 2\nelse:\n    z = 3\n"
    )
    source = GitHubSource(tmp_path)
    symbols = {record.metadata["symbol"]: record.text.partition("\n")[2] for record in source.symbols()}
    assert list(symbols) == ["outer", "outer.inner", "Late"]
    assert symbols["outer"] == "def outer():\n    x = 1\n\n\n    return inner"
    (rest,) = [record.text for record in source.files()]
    assert "import os" in rest and "z = 3" in rest and "return" not in rest and "y = 2" not in rest


def test_a_folder_without_git_is_read_as_it_lies(clone: Path) -> None:
    (clone / ".git").rename(clone.parent / "gone")
    paths = {record.metadata["path"] for record in GitHubSource(clone).files()}
    assert paths == {"README.md", "lib/old.py", "untracked.txt"}


def test_issues_of_the_api_and_of_gh_are_read(tmp_path: Path) -> None:
    api = {
        "number": 7, "title": "Crash on start", "body": "It crashes.\r\nAlways.", "state": "open", "comments": 3,
        "user": {"login": "ana"}, "labels": [{"name": "bug"}], "created_at": "2024-01-02T03:04:05Z",
        "html_url": "https://github.com/x/y/issues/7",
    }  # fmt: skip
    gh = {
        "number": 9, "title": "Add a violin", "body": None, "state": "MERGED", "author": {"login": "ben"},
        "url": "https://github.com/x/y/pull/9", "createdAt": "2024-02-02T00:00:00Z", "labels": [],
        "comments": [{"author": {"login": "cy"}, "body": "Nice \ud800", "createdAt": "2024-02-03T00:00:00Z"}],
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps([api, {"number": "x", "title": "bad"}, api]))
    (tmp_path / "b.json").write_text(json.dumps(gh))
    (tmp_path / "other.json").write_text("[1, 2")
    source = GitHubSource(tmp_path)
    issue, pull, comment = source.records()
    assert issue.text == "issue #7 Crash on start (open) [bug], by ana\nIt crashes.\nAlways."
    assert issue.metadata["at"] == "2024-01-02T03:04:05Z" and issue.metadata["labels"] == ["bug"]
    assert pull.text == "pull request #9 Add a violin (merged), by ben"
    assert comment.text.startswith("comment on pull request #9 Add a violin, by cy\nNice")
    assert [finding.partition(":")[0] for finding in source.findings] == ["a.json", "a.json"]


def test_pieces_hold_everything_and_are_never_too_long() -> None:
    text = "one two three. " * 40 + "\n\n" + "x" * 2_500 + "\n" + "line\n" * 300
    found = list(pieces(text, 200))
    assert max(map(len, found)) <= 200
    assert "".join("".join(found).split()) == "".join(text.split())
    assert list(pieces("  \n ")) == []


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in a directory of its own; gives exit code, stdout, stderr."""
    monkeypatch.setenv("MEMX_DIR", str(tmp_path / ".memx"))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_what_was_ingested_is_found_and_answered(call: Call, vault: Path, tmp_path: Path) -> None:
    code, out, err = call("ingest", "obsidian", str(vault), "--dry-run")
    assert code == 0 and "templates     1" in out and not (tmp_path / ".memx").exists()
    code, _, err = call("ingest", "obsidian", str(vault))
    assert code == 0 and "0 changed, 0 removed" in err and "aliases are not read" in err
    code, out, _ = call("ask", "How many dogs does Carla have?", "--top-k", "2")
    assert code == 0 and out.startswith("answer (extractive)\n  She has two dogs, Pip and Nell.")
    assert " 1  1.000  2024-06-01  obsidian piece Daily/2024-06-01.md" in out and "semantic 0." in out
    found = json.loads(call("ask", "museum ticket", "--top-k", "1", "--json", "--answer-model", "none")[1])
    assert found["answer"] is None and found["facts"][0]["metadata"]["heading"] == "Oslo trip > Day 2"


def test_ingesting_again_takes_over_what_changed(call: Call, vault: Path, tmp_path: Path) -> None:
    call("ingest", "obsidian", str(vault))
    before = len(Knowledge(tmp_path / ".memx").memories())
    assert f"0 records added, 0 changed, 0 removed, {before} as before" in call("ingest", "obsidian", str(vault))[2]
    (vault / "broken.md").unlink()
    (vault / "Daily" / "2024-06-01.md").write_text("Carla moved to Bergen.")
    _, _, err = call("ingest", "obsidian", str(vault))
    assert f"0 records added, 1 changed, 1 removed, {before - 2} as before" in err
    assert "Bergen" in call("ask", "Where did Carla move?")[1]
    assert len(list((tmp_path / ".memx" / "cache" / "knowledge").iterdir())) == 1
    (kept,) = Knowledge(tmp_path / ".memx").sources()
    assert (kept.source, kept.records) == ("obsidian", before - 1)


def test_a_model_answers_from_the_facts(call: Call, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("ingest", "obsidian", str(vault))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with FakeOpenAI(lambda body: "Two dogs.") as server:
        code, out, _ = call(
            "ask", "How many dogs?", "--answer-model", "some-model", "--base-url", server.base_url
        )  # fmt: skip
    assert code == 0 and out.startswith("answer (some-model)\n  Two dogs.")


def test_hostile_notes_are_shown_written_out(call: Call, vault: Path) -> None:
    (vault / "evil\x1b[31m.md").write_text("A \x1b[2J violin \u202e costs 5 euros.")
    call("ingest", "obsidian", str(vault))
    code, out, err = call("ask", "What does the violin cost?")
    assert code == 0 and printable(out) and printable(err) and "\\x1b[2J" in out


def test_a_model_without_a_key_is_said_before_it_is_asked(
    call: Call, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("ingest", "obsidian", str(vault))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, err = call("ask", "How many dogs?", "--answer-model", "some-model")
    assert (code, out) == (3, "") and "no API key is set" in err


def test_bad_questions_and_places_are_said(call: Call, tmp_path: Path) -> None:
    assert call("ask", "anything")[0] == 2
    code, _, err = call("ask", " ")
    assert code == 2 and "the question is empty" in err
    code, _, err = call("ingest", "github", str(tmp_path / "nowhere"))
    assert code == 2 and "there is no such folder" in err
    assert call("ingest", "notion", str(tmp_path))[0] == 2
