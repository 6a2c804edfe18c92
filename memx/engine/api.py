"""The Python API: ``memx.run``, ``memx.measure``, ``memx.paired``, ``memx.catalog`` and names to classes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

from memx.adapters.contract import Dataset, MemoryAdapter
from memx.adapters.registry import adapter_class, dataset_class, measure_class, names
from memx.engine.events import Listener
from memx.engine.judges.contract import Judge
from memx.engine.settings import RunSettings
from memx.engine.store.reader import RunRow, Store
from memx.engine.summary import Summary, summarize
from memx.engine.summary_text import summary_text
from memx.errors import UsageError
from memx.model import Measure, Outcome, Trace, Value


@dataclass(frozen=True, slots=True)
class Run:
    """A run and what it left. Printing it gives the Diagnostic Summary.

    Attributes:
        directory: where its store lives.
        state: ``finished``, ``interrupted`` or ``failed``.
    """

    run_id: str
    directory: Path
    state: str
    summary: Summary

    @classmethod
    def load(cls, run_id: str | None = None, directory: str | Path | None = None) -> Run:
        """A stored run, by id or the newest."""
        where = default_directory(directory)
        store = Store(where)
        try:
            row = store.run(run_id)
            return cls(
                row.run_id,
                where,
                row.state,
                summarize(store, row.run_id, row.summary.get("llm"), row.summary.get("judge")),
            )
        finally:
            store.close()

    @property
    def row(self) -> RunRow:
        """Its row in the store: settings, manifest, times."""
        store = Store(self.directory)
        try:
            return store.run(self.run_id)
        finally:
            store.close()

    def traces(self) -> Iterator[Trace]:
        """Its traces in order, read as they are asked for."""
        store = Store(self.directory)
        try:
            yield from store.traces(self.run_id)
        finally:
            store.close()

    def __str__(self) -> str:
        return summary_text(self.row, self.summary)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two runs of one dataset side by side, over the questions that both judged.

    Attributes:
        only_a, only_b: ids of the questions that only that run passed.
        p: how often chance alone splits the discordant questions so unevenly (exact McNemar, two-sided).
    """

    a: str
    b: str
    both: int
    neither: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    p: float

    def __str__(self) -> str:
        n = self.both + self.neither + len(self.only_a) + len(self.only_b)
        if not n:
            return f"A {self.a}\nB {self.b}\nno question was judged in both"
        a, b = (self.both + len(self.only_a)) / n, (self.both + len(self.only_b)) / n
        lines = [
            f"A {self.a}",
            f"B {self.b}",
            f"{n} paired questions: A {a * 100:.1f} %  B {b * 100:.1f} %  difference {(b - a) * 100:+.1f} points",
            f"both {self.both}  neither {self.neither}  only A {len(self.only_a)}  only B {len(self.only_b)}  "
            f"exact McNemar p = {self.p:.3g}",
        ]
        if len(self.only_a) + len(self.only_b) < 6:
            lines.append("too few questions differ to say anything of the gap")
        return "\n".join(lines)


def run(
    adapter: str | type[MemoryAdapter] = "local",
    dataset: str | Dataset = "demo",
    *,
    directory: str | Path | None = None,
    judge: Judge | None = None,
    listener: Listener = lambda event: None,
    stop: threading.Event | None = None,
    resume: str | None = None,
    with_controls: bool = False,
    **settings: Any,
) -> Run:
    """Run a dataset through a memory system, judge and diagnose.

    Args:
        adapter, dataset: names as on the command line, or the class and the opened dataset themselves.
        directory: where runs are kept; ``MEMX_DIR``, else ``.memx``.
        judge: a judge of your own instead of ``judge_model``.
        stop: set it from another thread to interrupt.
        with_controls: then ask the same questions of the control arms, and tag each question.
        settings: fields of ``RunSettings``, such as ``limit=20`` or ``top_k=5``.

    Raises:
        MemxError: the run cannot start, or its store cannot be written.
    """
    from memx.engine.controls import OwnStop, run_controls
    from memx.engine.setup import prepare

    named = adapter if isinstance(adapter, str) else f"{adapter.__module__}:{adapter.__qualname__}"
    data = dataset if isinstance(dataset, str) else dataset.info.name
    unknown = settings.keys() - RunSettings.__dataclass_fields__.keys()
    if unknown:
        raise UsageError(f"memx.run has no setting {', '.join(sorted(unknown))}")
    where = default_directory(directory)
    prepared = prepare(
        RunSettings(adapter=named, dataset=data, **settings),
        where,
        listener=listener,
        resume=resume,
        stop=stop and OwnStop(stop),
        judge=judge,
        adapter=None if isinstance(adapter, str) else adapter,
        dataset=None if isinstance(dataset, str) else dataset,
    )
    ended = prepared.run()
    if not with_controls or ended.state != "finished":
        return Run(ended.run_id, where, ended.state, ended.summary)
    done = run_controls(
        where,
        ended.run_id,
        prepared.settings,
        run_arm=lambda arm: arm(listener),
        stop=stop,
        dataset=None if isinstance(dataset, str) else dataset,
        judge=judge,
    )
    return Run(ended.run_id, where, "interrupted" if done.interrupted else ended.state, done.summary)


def measure(run: Run, measure: Measure | str) -> list[Value]:
    """A measure over the traces that a run has stored; nothing is run again.

    Raises:
        UsageError: the measure reads something that a trace does not have.
    """
    rule = measure_class(measure)() if isinstance(measure, str) else measure
    missing = [name for name in rule.reads if name not in Trace.__dataclass_fields__]
    if missing:
        known = ", ".join(sorted(Trace.__dataclass_fields__))
        raise UsageError(f"measure '{rule.name}' reads {', '.join(missing)}, which no trace has", f"There are: {known}")
    return rule.measure(list(run.traces()))


def paired(a: Run, b: Run) -> Paired:
    """Two runs of one dataset side by side; says how they differ, never which is better.

    Raises:
        UsageError: they are of different datasets, or of different versions of one.
    """
    first, second = a.row, b.row
    if (first.dataset, first.dataset_sha256) != (second.dataset, second.dataset_sha256):
        raise UsageError(
            f"run {a.run_id} is of {first.dataset} {first.dataset_sha256[:12]}, run {b.run_id} of {second.dataset} "
            f"{second.dataset_sha256[:12]}",
            "Only runs of the same dataset can be paired.",
        )
    passed_a, passed_b = _passed(a.traces()), _passed(b.traces())
    common = [question_id for question_id in passed_a if question_id in passed_b]
    only_a = tuple(q for q in common if passed_a[q] and not passed_b[q])
    only_b = tuple(q for q in common if passed_b[q] and not passed_a[q])
    both = sum(1 for q in common if passed_a[q] and passed_b[q])
    neither = len(common) - both - len(only_a) - len(only_b)
    return Paired(a.run_id, b.run_id, both, neither, only_a, only_b, mcnemar_exact(len(only_a), len(only_b)))


def catalog() -> str:
    """Every adapter, dataset and measure by name, and where it comes from."""
    lines = []
    for kind in ("adapter", "dataset", "measure"):
        lines.append(f"{kind}s")
        lines += [f"  {name:<16} {origin}" for name, origin in sorted(names(kind).items())]
    return "\n".join(lines)


def adapter(name: str) -> type[MemoryAdapter]:
    """The adapter class of a name, as ``--adapter`` finds it."""
    return adapter_class(name)


def dataset(name: str, source: str | Path | None = None, **options: Any) -> Dataset:
    """The opened dataset of a name, as ``--dataset`` and ``--source`` find it."""
    return dataset_class(name).load(None if source is None else Path(source), **options)


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided exact McNemar p-value: how likely a fair coin splits ``only_a + only_b`` tosses so unevenly."""
    n = only_a + only_b
    uneven = sum(comb(n, i) for i in range(min(only_a, only_b) + 1))
    return min(1.0, float(2 * uneven / 2**n))


def default_directory(given: str | Path | None) -> Path:
    """Where runs are kept: as given, else ``MEMX_DIR``, else ``.memx``."""
    return Path(given or os.environ.get("MEMX_DIR") or ".memx")


def _passed(traces: Iterator[Trace]) -> Mapping[str, bool]:
    judged = (Outcome.PASS, Outcome.FAIL)
    return {t.question.question_id: t.verdict.outcome is Outcome.PASS for t in traces if t.verdict.outcome in judged}
