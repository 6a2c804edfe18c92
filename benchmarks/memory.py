"""Retrieval of the built-in memory, all modes, on LoCoMo, BEAM or a file of LongMemEval's shape.

    python -m benchmarks.memory [locomo|beam|longmemeval] [--source PATH] [--cases 0:5] [--modes dense,full]

Prints turn-level recall_any, ndcg_any and MRR, session-level recall_any, the median time of a query, and for each pair
of neighbouring modes the exact McNemar test on turn-level recall_any at 10. Questions that ask for a refusal and
questions without usable evidence are left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import comb
from pathlib import Path

from benchmarks.data import shared_data
from memx.adapters.registry import dataset_class
from memx.adapters.systems.verbatim import memories_of
from memx.engine.measures.retrieval import retrieval_metrics
from memx.memory.embedding import Embedder, minilm
from memx.memory.embedding_cache import CachedEmbedder
from memx.memory.engine import MODES, MemoryEngine
from memx.model import Case, Question, RetrievalMetrics

SOURCES = {"locomo": "data/locomo10.json", "beam": "data/beam/100K", "longmemeval": ""}
DEPTH = 50


@dataclass
class Figures:
    """What one mode did on all questions, in order."""

    metrics: list[RetrievalMetrics] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)


def usable(question: Question) -> bool:
    """A question whose evidence can be found: LoCoMo's categories 1 to 4, and whatever is no refusal elsewhere."""
    return bool(question.evidence) and not question.abstention and question.category != "adversarial"


def filled_engine(case: Case, embedder: Embedder) -> MemoryEngine:
    """A memory that holds a case, turn by turn."""
    engine = MemoryEngine(embedder, mode="full")
    engine.insert_batch([memory for session in case.sessions for memory in memories_of(session)])
    return engine


def measure(cases: Iterator[Case], modes: list[str], embedder: Embedder) -> dict[str, Figures]:
    """Metrics and times of every mode on every usable question; the modes share one store per case."""
    figures = {mode: Figures() for mode in modes}
    for case in cases:
        engine = filled_engine(case, embedder)
        session_of = case.session_of()
        questions = [question for question in case.questions if usable(question)]
        embedder.embed([question.text for question in questions])
        engine.indexes()
        for question in questions:
            for mode in modes:
                engine.mode = mode
                started = time.perf_counter()
                recall = engine.recall(question.text, DEPTH)
                elapsed = (time.perf_counter() - started) * 1000
                turns = [hit.memory.metadata["source_turn_ids"] for hit in recall.hits]
                found = retrieval_metrics(turns, question.evidence, session_of, question.evidence_sessions)
                if found is not None:
                    figures[mode].metrics.append(found)
                    figures[mode].milliseconds.append(elapsed)
        engine.rows.close()
    return figures


def mcnemar(better: list[float], worse: list[float]) -> tuple[int, int, float]:
    """Questions that only the one and only the other found, and the two-sided exact p (McNemar 1947, binomial)."""
    only = sum(1 for b, w in zip(better, worse, strict=True) if b > w)
    other = sum(1 for b, w in zip(better, worse, strict=True) if w > b)
    n, k = only + other, min(only, other)
    return only, other, min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n) if n else 1.0


def table(figures: dict[str, Figures]) -> str:
    """The figures as lines of text."""
    lines = [f"{'mode':8}{'n':>6}  turn @1   @5   @10   @50   all@10 ndcg@10  mrr   session @1   @5    ms/query"]
    for mode, one in figures.items():
        count = len(one.metrics)
        turn = [sum(m.turn.recall_any[k] for m in one.metrics) / count for k in (1, 5, 10, 50)]
        every = sum(m.turn.recall_all[10] for m in one.metrics) / count
        ndcg = sum(m.turn.ndcg_any[10] for m in one.metrics) / count
        mrr = sum(m.turn.mrr for m in one.metrics) / count
        session = [sum(m.session.recall_any[k] for m in one.metrics) / count for k in (1, 5)]
        lines.append(
            f"{mode:8}{count:6}   {' '.join(f'{value:.3f}' for value in turn)}  {every:.3f}   {ndcg:.3f}  {mrr:.3f}"
            f"       {session[0]:.3f} {session[1]:.3f}   {statistics.median(one.milliseconds):7.1f}"
        )
    return "\n".join(lines)


def paired(figures: dict[str, Figures]) -> str:
    """The paired test of ``full`` against ``fusion`` and of ``fusion`` against its parts, as lines of text."""
    lines = []
    for better, worse in (("full", "fusion"), ("fusion", "bm25"), ("fusion", "dense"), ("fusion", "raw")):
        if better in figures and worse in figures:
            hits = [[m.turn.recall_any[10] for m in figures[mode].metrics] for mode in (better, worse)]
            only, other, p = mcnemar(*hits)
            lines.append(f"turn recall_any@10: only {better} {only}, only {worse} {other}, McNemar p = {p:.2g}")
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("dataset", nargs="?", default="locomo", choices=sorted(SOURCES))
    ask.add_argument("--source", type=Path)
    ask.add_argument("--cases", default=":", help="a slice of the cases, such as 0:5")
    ask.add_argument("--modes", default=",".join(MODES))
    ask.add_argument("--cache", type=Path, help="directory of the embedding cache")
    args = ask.parse_args()
    source = args.source or shared_data() / SOURCES[args.dataset]
    first, _, last = args.cases.partition(":")
    cases = list(dataset_class(args.dataset).load(source).cases())[slice(int(first or 0), int(last) if last else None)]
    embedder = CachedEmbedder(minilm(), args.cache) if args.cache else minilm()
    started = time.perf_counter()
    figures = measure(iter(cases), args.modes.split(","), embedder)
    print(f"{args.dataset} {source.name}: {len(cases)} cases, {time.perf_counter() - started:.0f} s")
    print(table(figures))
    print(paired(figures))


if __name__ == "__main__":
    main()
