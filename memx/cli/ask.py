"""``memx ask``."""

from __future__ import annotations

import json
import textwrap
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memx.cli.ingest import IndexingProgress
from memx.cli.options import directory_option

if TYPE_CHECKING:
    from memx.model import Candidate, Retrieved

_WIDTH = 80
#: Characters of a fact that are printed; --json holds it whole.
_SHOWN = 500


@click.command(name="ask", short_help="Ask the built-in memory about what was ingested.")
@click.argument("question")
@click.option("--top-k", type=click.IntRange(1), default=5, show_default=True, help="How many facts.")
@click.option("--retrieval-mode", "mode", default="full", show_default=True, metavar="MODE",
              help="dense, bm25, raw, fusion or full.")  # fmt: skip
@click.option("--answer-model", default="extractive", show_default=True, metavar="MODEL|extractive|none",
              help="Who answers from the facts.")  # fmt: skip
@click.option("--base-url", default="", metavar="URL", help="Of an OpenAI-compatible endpoint.")
@click.option("--context-budget", type=int, metavar="TOKENS", help="Tokens of facts that the answer may use.")
@click.option("--json", "as_json", is_flag=True, help="Answer and facts as JSON.")
@directory_option
def command(
    question: str,
    top_k: int,
    mode: str,
    answer_model: str,
    base_url: str,
    context_budget: int | None,
    as_json: bool,
    directory: Path,
) -> None:
    """Print what the built-in memory finds on QUESTION, with scores and signals, and an answer made of it."""
    from memx.engine.knowledge import Knowledge, retrieved
    from memx.errors import UsageError

    if not question.strip():
        raise UsageError("the question is empty", 'For example: memx ask "When did we ship 2.0?"')
    engine = Knowledge(directory).indexed(mode, IndexingProgress())
    facts, dates = retrieved(engine, question, top_k)
    answer = _answer(question, facts, dates, answer_model, base_url, context_budget, directory)
    if as_json:
        click.echo(json.dumps(_as_json(question, answer, answer_model, facts, dates)))
    else:
        click.echo(_as_text(answer, answer_model, facts, dates))


def _answer(
    question: str,
    facts: Sequence[Retrieved],
    dates: Mapping[str, datetime],
    model: str,
    base_url: str,
    budget: int | None,
    directory: Path,
) -> Candidate | None:
    """The answer, or None where none is wanted.

    Raises:
        ModelError: the model failed.
    """
    if model == "none":
        return None
    from memx.cli.progress import say_notice
    from memx.engine.roles import build_models, build_run_answerer
    from memx.engine.settings import RunSettings
    from memx.model import Question

    settings = RunSettings(answer_model=model, base_url=base_url, context_budget=budget)
    models = build_models(settings, directory, threading.Event(), say_notice)
    answerer = build_run_answerer(settings, models, "")
    answerer.preflight()
    return answerer.answer(Question("asked", "ask", question, "", ""), facts, dates)


def _as_text(answer: Candidate | None, model: str, facts: Sequence[Retrieved], dates: Mapping[str, datetime]) -> str:
    from memx.text.gate import safe, safe_line, shortened

    lines = []
    if answer is not None:
        shown = safe(answer.text.strip(), newlines=True) or "(no answer)"
        lines += [f"answer ({safe(model)})", textwrap.indent(shown, "  "), ""]
    if not facts:
        lines.append("nothing was found")
    for rank, fact in enumerate(facts, start=1):
        score = "" if fact.score is None else f"  {fact.score:.3f}"
        when = f"  {dates[fact.fact_id]:%Y-%m-%d}" if fact.fact_id in dates else ""
        lines.append(safe_line(f"{rank:>2}{score}{when}  {_where(fact.metadata)}", _WIDTH))
        for paragraph in safe(shortened(fact.content, _SHOWN), newlines=True).splitlines():
            lines += textwrap.wrap(paragraph, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        signals = "  ".join(f"{name} {value:.3f}" for name, value in fact.signals.items())
        if signals:
            lines += textwrap.wrap(safe(signals), _WIDTH, initial_indent="    . ", subsequent_indent="      ")
        lines.append("")
    return "\n".join(lines).rstrip()


def _where(metadata: Mapping[str, Any]) -> str:
    """Where a fact stands in its source, in words."""
    parts = [str(metadata.get("source", "")), str(metadata.get("record_type", ""))]
    parts.append(str(metadata.get("path") or metadata.get("url") or metadata.get("id") or ""))
    if metadata.get("heading"):
        parts.append(f"> {metadata['heading']}")
    if metadata.get("line_start"):
        parts.append(f"lines {metadata['line_start']} to {metadata['line_end']}")
    return " ".join(part for part in parts if part)


def _as_json(
    question: str,
    answer: Candidate | None,
    model: str,
    facts: Sequence[Retrieved],
    dates: Mapping[str, datetime],
) -> dict[str, Any]:
    return {
        "question": question,
        "answer": None if answer is None else answer.text,
        "answered_by": None if answer is None else model,
        "facts": [
            {
                "rank": rank,
                "score": fact.score,
                "text": fact.content,
                "at": dates[fact.fact_id].isoformat() if fact.fact_id in dates else None,
                "signals": dict(fact.signals),
                "metadata": dict(fact.metadata),
            }
            for rank, fact in enumerate(facts, start=1)
        ],
    }
