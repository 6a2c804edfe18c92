"""What asking models again will cost, before anything is asked: counted from what the store holds.

Calls are upper bounds (a cached reply is free). Tokens and dollars are estimates: a verdict's prompt is taken as its
texts and 400 tokens of instructions and its reply as 60; an answer's as its context and 200, its reply as 60; a request
of diagnosis as 500, its reply as 60.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memx.diagnose.probes import Probe, price
from memx.engine.settings import RunSettings
from memx.engine.store.reader import RunRow, Store
from memx.llm.prices import load_prices
from memx.llm.tokens import estimate_tokens

_VERDICT_PROMPT, _ANSWER_PROMPT, _REPLY = 400, 200, 60
#: A request of diagnosis: its instructions with question and utterance, and a short list of notes.
_DIAGNOSE_PROMPT, _SHORT_LIST_TOKENS = 250, 250
#: Characters to a token, as in ``memx.llm.tokens``.
_CHARS = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """At most so many calls and about so many tokens; ``cost`` in US dollars, None where a model has no price."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        known = self.cost is not None and other.cost is not None
        return Estimate(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )

    def words(self) -> str:
        """In one sentence."""
        if not self.calls:
            return "no model is asked, nothing is paid"
        dollars = "no price is known for the model" if self.cost is None else f"about ${self.cost:.4f}"
        tokens = self.input_tokens + self.output_tokens
        return f"at most {self.calls:,} model calls, about {tokens:,} tokens, {dollars}; cached replies are free"


def rejudge_estimate(store: Store, run: RunRow, settings: RunSettings) -> Estimate:
    """What judging the stored candidates of a run by ``settings.judge_model`` will cost."""
    row = store.query(
        "SELECT count(*) AS n, coalesce(sum(length(question) + length(gold) + length(candidate)), 0) AS chars "
        "FROM traces WHERE run_id = ? AND candidate IS NOT NULL",
        [run.run_id],
    )[0]
    times = settings.votes + 2 * settings.confirm_fails
    chars: int = row["chars"]
    return _asked(settings.judge_model, times * row["n"], times * (chars // _CHARS), _VERDICT_PROMPT)


def diagnose_estimate(model: str, questions: int) -> Estimate:
    """What diagnosing by a model costs at most: so many questions all fail, and each takes all the requests it may."""
    from memx.diagnose.model_rung import MOST_CALLS

    calls = MOST_CALLS * questions
    return _asked(model, calls, calls * _SHORT_LIST_TOKENS, _DIAGNOSE_PROMPT)


def probe_estimate(
    probes: Sequence[Probe], question_tokens: int, settings: RunSettings, other_judge: str | None = None
) -> Estimate:
    """What running the probes will cost.

    Args:
        question_tokens: of question, gold and candidate together, on average.
        other_judge: judges the probes that change the judge alone.
    """
    answers, verdicts = price(probes)
    context = sum(estimate_tokens(row.content) for probe in probes for row in probe.context or ())
    other = verdicts - answers
    return (
        _asked(settings.answer_model, answers, context, _ANSWER_PROMPT)
        + _asked(settings.judge_model, answers, answers * question_tokens, _VERDICT_PROMPT)
        + _asked(other_judge or "offline", other, other * question_tokens, _VERDICT_PROMPT)
    )


def _asked(model: str, calls: int, text_tokens: int, prompt: int) -> Estimate:
    if model in ("offline", "none", "extractive", "") or not calls:
        return Estimate()
    read, written = text_tokens + calls * prompt, calls * _REPLY
    own = os.environ.get("MEMX_PRICES")
    known = load_prices(Path(own) if own else None).of(model)
    return Estimate(calls, read, written, known.cost(read, written) if known else None)
