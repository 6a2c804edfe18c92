"""Signal weights of the built-in memory learned from a run: on one half of its cases, judged on the other."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

from memx.adapters.systems.local import read_weights
from memx.engine.last_run import write_atomically
from memx.engine.store.reader import RunRow, Store
from memx.errors import UsageError
from memx.memory.learning import Example, Lesson, learn_weights
from memx.memory.ranking import Weights
from memx.model import Trace


def learn_from_run(store: Store, run: RunRow, *, step_size: float = 0.02, seed: int = 0) -> Lesson:
    """Weights learned on half of the run's cases, drawn by the seed, and reported on the other half.

    Raises:
        UsageError: the run has fewer than two cases, or was not of the built-in memory in mode ``full``.
    """
    if run.adapter != "local" or run.manifest.get("adapter", {}).get("retrieval_mode") != "full":
        raise UsageError(
            "weights are learned from a run of the built-in memory in mode full",
            "memx run --retrieval-mode full --optimize",
        )
    cases = [case.case_id for case in store.cases(run.run_id)]
    if len(cases) < 2:
        raise UsageError("weights are learned on some cases and judged on others; this run has one", "Run more cases.")
    learned_on = set(random.Random(seed).sample(cases, len(cases) // 2))
    traces = list(store.traces(run.run_id))
    given = run.settings.get("adapter_options", {}).get("weights", "")
    return learn_weights(
        _examples(trace for trace in traces if trace.case_id in learned_on),
        _examples(trace for trace in traces if trace.case_id not in learned_on),
        read_weights(Path(given)) if given else Weights(),
        step_size,
    )


def write_weights(lesson: Lesson, path: Path) -> None:
    """Write the learned weights where ``--adapter-option weights=PATH`` reads them."""
    values = {**lesson.after.values, "novelty": lesson.after.novelty}
    write_atomically(path, iter([json.dumps(values, indent=2) + "\n"]))


def lesson_text(lesson: Lesson) -> str:
    """Weights before and after, and what they do on the cases learned from and on the others."""
    lines = ["signal              before     after"]
    for name, value in lesson.before.values.items():
        lines.append(f"{name:<18}{value:>8.3f}  {lesson.after.values[name]:>8.3f}")
    lines += ["", "                    questions     loss      @1      @5     @10"]
    for title, pair in (("learned on", lesson.train), ("held out", lesson.held_out)):
        for when, figures in zip(("before", "after"), pair, strict=True):
            recall = "  ".join(f"{figures.recall_any[k]:>6.3f}" for k in (1, 5, 10))
            lines.append(f"{title:<12}{when:<8}{figures.examples:>9}  {figures.loss:>7.4f}  {recall}")
    verdict = "better" if lesson.improves else "not better"
    lines.append(f"On the cases held out the new weights are {verdict} (loss).")
    return "\n".join(lines)


def _examples(traces: Iterable[Trace]) -> list[Example]:
    found = []
    for trace in traces:
        evidence = set(trace.question.evidence)
        relevant = tuple(bool(evidence & set(row.metadata.get("source_turn_ids", ()))) for row in trace.retrieved)
        found.append(Example(tuple(row.signals for row in trace.retrieved), relevant))
    return found
