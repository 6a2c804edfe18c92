"""``memx``: the commands, loaded one by one when asked for, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

import memx
from memx.errors import MemxError

#: Command name to its module in ``memx.cli`` and the line ``memx --help`` shows for it.
COMMANDS = {
    "run": ("run", "Run a benchmark on a memory system and diagnose what failed."),
    "debug": ("debug", "Walk through the failures of a run in the terminal."),
    "runs": ("runs", "List, show, watch, end and remove runs."),
    "show": ("show", "Print the question table of a run."),
    "mark": ("mark", "Mark or annotate failed questions, as in memx debug."),
    "show-fact": ("show_fact", "Print the life of one stored fact, session by session."),
    "explain": ("explain", "Print failure mechanisms, near misses and which signal loses."),
    "report": ("report", "Print retrieval metrics, ranks and timings of runs."),
    "compare": ("compare", "Read two runs of one dataset side by side."),
    "gate": ("compare:gate", "Exit 1 when a run is worse than another, for CI."),
    "measure": ("measure", "Apply a measure to the stored traces of a run."),
    "judge": ("judge", "Judge a file of answers; one line back for each."),
    "rejudge": ("rejudge", "Judge the stored answers of a run again, with another judge."),
    "probe": ("probe", "Ask failed questions again with one thing changed."),
    "calibrate": ("calibrate", "Plant known faults and measure how often diagnosis is right."),
    "export": ("export", "Write a run as JSON, Markdown, HTML, CSV or JUnit."),
    "ingest": ("ingest", "Take notes or a repository into the built-in memory."),
    "ask": ("ask", "Ask the built-in memory about what was ingested."),
    "datasets": ("datasets", "List datasets, check a file."),
    "adapters": ("adapters", "List memory systems, show one's options."),
}


#: Signals that asked this command to end.
_interrupts: list[int] = []


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command = getattr(importlib.import_module(f"memx.cli.{module}"), attribute or "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from memx.errors import UnknownNameError

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise UnknownNameError("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: memx run, then memx debug.",
)
@click.version_option(memx.__version__, prog_name="memx")
def command() -> None:
    """The debugger for agent memory: run a memory benchmark and see which step lost each fact."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with the code of DESIGN: 0, 1, 2, 3 or 130."""
    code = run_command(arguments)
    if code == 130:
        # All that was finished is stored; calls to a memory system that are still under way must not hold the exit.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code. Every error is one line on stderr, never a traceback."""
    # A polite kill is an interrupt: what was finished is saved and the line to resume is printed.
    _interrupts.clear()
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        result = command.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        usage = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx else ""
        say("\n".join(part for part in (usage, f"memx: {error.format_message()}") if part))
        return 2
    except MemxError as error:
        say(f"memx: {error.message}")
        if error.hint:
            say(f"  {error.hint}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        # Whoever presses twice gets the line all the same, not a traceback through it.
        listening = signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("memx: interrupted")
        signal.signal(signal.SIGINT, listening)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (| head); Python would complain once more when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if _interrupts:
            # A package that was being imported may turn the interrupt into an error of its own.
            say("memx: interrupted")
            return 130
        return _unexpected(error)
    return result if isinstance(result, int) else 0


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _interrupts.append(number)
    raise KeyboardInterrupt


def say(text: str) -> None:
    """Print narration on stderr, made safe for a terminal."""
    from memx.engine.redaction import redact_text
    from memx.text.gate import safe

    click.echo(redact_text(safe(text, newlines=True)), err=True)


def _unexpected(error: Exception) -> int:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="memx-error-", suffix=".txt", delete=False) as report:
        report.write("".join(traceback.format_exception(error)))
    say(f"memx: a fault in memx itself: {type(error).__name__}: {error}")
    say(f"  The details are in {report.name}; please report them.")
    return 3
