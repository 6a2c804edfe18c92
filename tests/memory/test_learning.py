"""Weights learned from examples, judged on others."""

from __future__ import annotations

import random

import pytest

from memx.errors import UsageError
from memx.memory.learning import Example, learn_weights
from memx.memory.ranking import Weights
from memx.memory.signals import default_weights


def examples(seed: int, count: int) -> list[Example]:
    """The right candidate leads in phrase; semantic only misleads."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        right = rng.randrange(6)
        rows = [
            {"semantic": rng.random() * 0.3 + (0.0 if i == right else 0.2), "phrase": rng.random() + 0.7 * (i == right)}
            for i in range(6)
        ]
        made.append(Example(tuple(rows), tuple(i == right for i in range(6))))
    return made


def test_learning_moves_weights_where_they_help_on_questions_not_seen() -> None:
    start = Weights()
    lesson = learn_weights(examples(1, 60), examples(2, 60), start, step_size=0.02, steps=150)
    assert lesson.after.values["phrase"] > start.values["phrase"]
    assert lesson.after.values["semantic"] < start.values["semantic"]
    assert lesson.after.values["token"] == start.values["token"]
    assert lesson.improves and lesson.held_out[1].recall_any[1] > lesson.held_out[0].recall_any[1]
    assert lesson.train[1].loss < lesson.train[0].loss and lesson.train[0].examples == 60
    assert dict(start.values) == default_weights()


def test_one_step_moves_no_weight_by_more_than_the_step_size() -> None:
    start = Weights()
    after = learn_weights(examples(1, 20), examples(2, 20), start, step_size=0.02, steps=1).after
    for name, value in start.values.items():
        assert abs(after.values[name] - value) <= 0.02 * max(1.0, abs(value)) + 1e-4


def test_what_holds_no_lesson_is_refused() -> None:
    nothing = [Example(({"semantic": 1.0},), (True,))]
    with pytest.raises(UsageError, match="to learn from"):
        learn_weights(nothing, examples(1, 3), Weights())
    with pytest.raises(UsageError, match="held out"):
        learn_weights(examples(1, 3), nothing, Weights())
    with pytest.raises(UsageError, match="step size"):
        learn_weights(examples(1, 3), examples(2, 3), Weights(), step_size=0.0)
