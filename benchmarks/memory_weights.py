"""Weights of the signals, learned on LoCoMo's first five conversations and judged on the other five.

    python -m benchmarks.memory_weights [--steps 200] [--cache DIR]

Starts from weights of one and prints what is learned beside the defaults. The examples are all texts of a conversation,
each with its signals, so that nothing depends on which candidates the weights of the day bring up.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.data import shared_data
from benchmarks.memory import SOURCES, filled_engine, usable
from memx.adapters.registry import dataset_class
from memx.memory.embedding import Embedder, minilm
from memx.memory.embedding_cache import CachedEmbedder
from memx.memory.learning import Example, Figures, learn_weights
from memx.memory.query import Query
from memx.memory.ranking import Weights
from memx.memory.signals import default_weights, registry
from memx.model import Case


def examples(case: Case, embedder: Embedder) -> list[Example]:
    """One example per usable question: every turn of the case with its signals."""
    engine = filled_engine(case, embedder)
    indexes = engine.indexes()
    assert indexes.features is not None
    turns = list(case.turns())
    today = max((turn.at for turn in case.turns().values() if turn.at), default=None)
    made = []
    for question in case.questions:
        if usable(question):
            query = Query(question.text, indexes, embedder.embed, today.date() if today else None)
            values = {name: one.compute(query, indexes.features).tolist() for name, one in registry().items()}
            rows = tuple(dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))
            made.append(Example(rows, tuple(turn in question.evidence for turn in turns)))
    engine.rows.close()
    return made


def shown(figures: Figures) -> str:
    """One line of figures."""
    recall = " ".join(f"@{k} {value:.3f}" for k, value in figures.recall_any.items())
    return f"{figures.examples} questions, loss {figures.loss:.3f}, recall_any {recall}"


def main() -> None:
    """Run from the command line."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--steps", type=int, default=200)
    ask.add_argument("--cache", type=Path, help="directory of the embedding cache")
    args = ask.parse_args()
    embedder = CachedEmbedder(minilm(), args.cache) if args.cache else minilm()
    cases = list(dataset_class("locomo").load(shared_data() / SOURCES["locomo"]).cases())
    train = [one for case in cases[:5] for one in examples(case, embedder)]
    held_out = [one for case in cases[5:] for one in examples(case, embedder)]
    start = Weights(dict.fromkeys(default_weights(), 1.0) | {"recency": 0.0, "feedback": 0.0})
    lesson = learn_weights(train, held_out, start, step_size=0.05, steps=args.steps)
    defaults = learn_weights(train, held_out, Weights(), steps=1)
    for name, value in lesson.after.values.items():
        print(f"{name:16} learned {value:7.2f}   default {default_weights()[name]:5.2f}")
    print("learned on   ", shown(lesson.train[1]))
    print("held out     ", shown(lesson.held_out[1]))
    print("defaults, held out", shown(defaults.held_out[0]))


if __name__ == "__main__":
    main()
