"""``memx adapters list | show | new | check``."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memx.cli.main import say
from memx.cli.options import directory_option, pairs

if TYPE_CHECKING:
    from memx.adapters.conformance.report import Report, Result
    from memx.adapters.contract import MemoryAdapter

_TRAITS = {
    "deep_query": "may be asked for more facts than --top-k at no extra price",
    "keeps_data": "what is stored outlives the run: see memx run --cleanup",
    "shares_entity_ids": "its data is keyed by the dataset's own ids",
    "ignores_top_k": "returns as much as it likes, whatever --top-k says",
    "sees_gold": "is shown the gold evidence: a control",
}


@click.group(name="adapters", short_help="List memory systems, show, write or check one.")
def command() -> None:
    """The memory systems that memx can drive."""


@command.command(name="list")
def list_() -> None:
    """List the memory systems that are built in or installed."""
    from memx.adapters.registry import adapter_class, names
    from memx.cli.table import table
    from memx.errors import MemxError

    rows = []
    for name, origin in sorted(names("adapter").items()):
        try:
            summary = first_sentence(adapter_class(name).__doc__)
        except MemxError as error:
            summary = f"cannot be used: {error}"
        rows.append([name, "built in" if ":" in origin and "installed" not in origin else origin, summary])
    click.echo(table(["name", "from", "what it is"], rows))
    click.echo("\nYour own: memx run --adapter module.path:Class    (memx adapters new NAME writes a template)")


@command.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show what NAME is: options, environment variables, what its snapshots show and what they cannot."""
    from memx.adapters.registry import adapter_class
    from memx.text.gate import safe

    found = adapter_class(name)
    rows = _option_rows(found)
    traits = [trait for trait in _TRAITS if getattr(found, trait)]
    if as_json:
        keys = ("option", "default", "environment", "what")
        told = {
            "name": name,
            "class": f"{found.__module__}:{found.__qualname__}",
            "options": [dict(zip(keys, row, strict=True)) for row in rows],
            "exports": list(found.exports),
            "cannot_see": list(found.cannot_see),
            "traits": traits,
        }
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"{name}  ({found.__module__}:{found.__qualname__})")
    for paragraph in inspect.cleandoc(found.__doc__ or "").replace("``", "").split("\n\n"):
        click.echo(_wrapped(safe(paragraph, newlines=True), "") + "\n")
    click.echo("Options, by --adapter-option NAME=VALUE or from the environment" if rows else "It takes no options.")
    for option, default, environment, what in rows:
        given = "  ".join(part for part in (default, environment) if part)
        click.echo(safe(f"  {option:<16} {given}".rstrip()))
        if what:
            click.echo(_wrapped(safe(what), "      "))
    for title, lines in (("A snapshot shows", found.exports), ("It cannot show", found.cannot_see)):
        if lines:
            click.echo(f"\n{title}")
            click.echo("\n".join(_wrapped(safe(line), "  ", "    ") for line in lines))
    if traits:
        click.echo("\nTraits")
        click.echo("\n".join(_wrapped(f"{trait:<18} {_TRAITS[trait]}", "  ", " " * 21) for trait in traits))
    click.echo(f"\nmemx adapters check {name}    tries whether all of this holds")


@command.command()
@click.argument("name")
@click.option("--to", "folder", type=click.Path(path_type=Path), default=Path(), help="The folder to write into.")
def new(name: str, folder: Path) -> None:
    """Write an adapter named NAME and its tests, to be filled with your system's calls. They pass as they are."""
    from memx.adapters.conformance.scaffold import write_adapter

    module, test, adapter = write_adapter(name, folder)
    click.echo(f"wrote {module}")
    click.echo(f"wrote {test}")
    where = "" if folder == Path() else f"in {folder}: "
    click.echo(f"next, {where}pytest {test.name}; memx adapters check {adapter}; memx run --adapter {adapter}")


@command.command()
@click.argument("name")
@click.option("--adapter-option", "adapter_options", multiple=True, metavar="K=V", help="An option of the adapter.")
@click.option("--skip", multiple=True, metavar="CHECK", help="Leave this check out; may be repeated.")
@click.option("--ready-timeout", type=float, default=60.0, show_default=True, metavar="SECONDS",
              help="How long it may take to become ready.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@directory_option
def check(
    name: str,
    adapter_options: tuple[str, ...],
    skip: tuple[str, ...],
    ready_timeout: float,
    as_json: bool,
    directory: Path,
) -> int:
    """Run the conformance kit on NAME: does it keep, show and find what it is told, and nothing else?

    Exits 1 when a check fails. The result is kept: a run of an adapter that failed its last check says so.
    """
    from memx.adapters.conformance import check_adapter
    from memx.adapters.conformance.record import adapter_key, write_result
    from memx.adapters.registry import adapter_class
    from memx.text.gate import safe

    found = adapter_class(name)
    options = pairs(adapter_options, "--adapter-option")

    def tell(result: Result) -> None:
        if result.seconds > 1:
            say(f"memx: {result.name}: {result.outcome} ({result.seconds:.1f} s)")

    # Standard output is for the result; what the system prints meanwhile is none.
    with redirect_stdout(sys.stderr):
        report = check_adapter(_maker(found, name, options), skip=skip, timeout_s=ready_timeout, listener=tell)
    write_result(directory, adapter_key(found, report.version, options), report)
    if as_json:
        click.echo(safe(json.dumps(report.as_dict(), indent=2, default=str), newlines=True))
    else:
        click.echo(_report_text(report))
    if report.left:
        say(f"memx: left behind in {report.adapter}: {', '.join(report.left)}")
    return 1 if report.failed else 0


def first_sentence(doc: str | None) -> str:
    """The first sentence of a docstring, without its markup."""
    paragraph = " ".join((doc or "").strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".").replace("``", "")


def _wrapped(text: str, first: str, others: str | None = None) -> str:
    """The text in lines as wide as the terminal, at most 100 cells, behind an indent."""
    import shutil
    import textwrap

    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=first if others is None else others)


def _option_rows(adapter: type[MemoryAdapter]) -> list[list[str]]:
    """Name, default, environment variables and meaning of each option; a secret shows no default."""
    from memx.adapters.options import declared

    parameters = inspect.signature(adapter.__init__).parameters.values()
    named = {p.name: p.default for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD}
    rows = []
    for name, option in declared({**named, **adapter.OPTIONS}).items():
        default = "(secret)" if option.secret else "" if option.default in ("", None) else str(option.default)
        what = option.help + (f" ({', '.join(option.choices)})" if option.choices else "")
        rows.append([name, default, ", ".join(option.variables), what])
    return rows


def _maker(adapter: type[MemoryAdapter], name: str, options: Mapping[str, Any]) -> Any:
    from memx.errors import UsageError

    def make() -> MemoryAdapter:
        try:
            return adapter(**options)
        except TypeError as error:
            message = f"adapter '{name}' does not take these options: {error}"
            raise UsageError(message, f"memx adapters show {name} lists them.") from None

    return make


def _report_text(report: Report) -> str:
    """A table of name, outcome and finding, 80 columns wide, the finding wrapped."""
    import textwrap

    from memx.text.gate import safe

    version = f" {report.version}" if report.version else ""
    lines = [safe(f"conformance of {report.adapter}{version}"), ""]
    for result in report.results:
        outcome = {"fail": "FAIL"}.get(str(result.outcome), str(result.outcome))
        why = safe(result.why if result.outcome != "fail" else f"{result.demands} But: {result.why}")
        first, *rest = textwrap.wrap(why, 54) or [""]
        lines.append(f"  {result.name:<16} {outcome:<5} {first}")
        lines += [f"{'':<25}{line}" for line in rest]
    counts = {kind: sum(1 for r in report.results if r.outcome == kind) for kind in ("pass", "fail", "n/a")}
    total = "  ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return "\n".join([*lines, "", f"  {total}  in {report.seconds:.1f} s"])
