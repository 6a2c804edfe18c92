"""``memx adapters list | show``."""

from __future__ import annotations

import inspect

import click


@click.group(name="adapters", short_help="List memory systems, show one's options.")
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
            summary = first_line(adapter_class(name).__doc__)
        except MemxError as error:
            summary = f"cannot be used: {error}"
        rows.append([name, "built in" if ":" in origin and "installed" not in origin else origin, summary])
    click.echo(table(["name", "from", "what it is"], rows))
    click.echo("\nYour own: memx run --adapter module.path:Class")


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """Show what NAME is, and its options (--adapter-option K=V)."""
    from memx.adapters.registry import adapter_class
    from memx.cli.table import table
    from memx.text.gate import safe

    found = adapter_class(name)
    click.echo(f"{name}  ({found.__module__}:{found.__qualname__})")
    click.echo(safe(inspect.cleandoc(found.__doc__ or ""), newlines=True))
    parameters = inspect.signature(found.__init__).parameters.values()
    named = {p.name: p.default for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD}
    rows = [[name, repr(default)] for name, default in {**named, **found.OPTIONS}.items()]
    click.echo("")
    click.echo(table(["option", "default"], rows) if rows else "It takes no options.")
    flags = [flag for flag in ("deep_query", "shares_entity_ids", "ignores_top_k", "sees_gold") if getattr(found, flag)]
    click.echo(f"\n{', '.join(flags) or 'no special traits'}")


def first_line(doc: str | None) -> str:
    """The first line of a docstring."""
    return (doc or "").strip().partition("\n")[0]
