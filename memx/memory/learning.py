"""Weights of the signals learned from questions whose right texts are known.

Each step moves every weight against the gradient of the listwise loss ``-log softmax(score)[right]``, averaged over the
right texts of a question and over questions (as ListNet, Cao et al. 2007), by at most ``step_size`` of its size.
What is learned on one set of examples is judged on another: the figures of :class:`Lesson` name both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memx.errors import UsageError
from memx.memory.ranking import Weights

if TYPE_CHECKING:
    import numpy as np

    Doubles = np.ndarray[Any, np.dtype[np.float64]]

#: A weight smaller than this moves as if it were this large, so that one of zero can move at all.
_LEAST_SIZE = 1.0


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of one question: the signals of each and whether it is one of the right ones."""

    signals: tuple[Mapping[str, float], ...]
    relevant: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """How weights rank examples: the loss, and the share of examples with something right among the first K."""

    examples: int
    loss: float
    recall_any: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Lesson:
    """Weights before and after, each judged on the examples learned from and on those held out."""

    before: Weights
    after: Weights
    train: tuple[Figures, Figures]
    held_out: tuple[Figures, Figures]

    @property
    def improves(self) -> bool:
        """The loss on the examples held out is lower than before."""
        return self.held_out[1].loss < self.held_out[0].loss


def learn_weights(
    train: Sequence[Example],
    held_out: Sequence[Example],
    start: Weights,
    step_size: float = 0.02,
    steps: int = 100,
) -> Lesson:
    """Learn on ``train`` and report on both; ``start`` is left as it is, and so is its weight of novelty.

    Args:
        step_size: the most that a weight moves in one step, as a share of its size.

    Raises:
        UsageError: a set has no example with both a right and a wrong candidate, or a step size that is not in 0..1.
    """
    import numpy as np

    if not 0 < step_size <= 1:
        raise UsageError(f"a step size is over 0 and at most 1, not {step_size}")
    names = list(start.values)
    known, unseen = _usable(train, names), _usable(held_out, names)
    if not known or not unseen:
        which = "to learn from" if not known else "held out to report on"
        raise UsageError(f"no question {which} has both a right and a wrong candidate", "Take more questions or cases.")
    first = np.array([start.values[name] for name in names], dtype=np.float64)
    weights = best = first
    lowest = _loss(first, known)[0]
    for _ in range(steps):
        _, gradient = _loss(weights, known)
        steepest = float(np.abs(gradient).max())
        if steepest < 1e-9:
            break
        weights = weights - step_size * np.maximum(np.abs(weights), _LEAST_SIZE) * gradient / steepest
        loss, _ = _loss(weights, known)
        if loss < lowest:
            lowest, best = loss, weights
    after = Weights({name: round(float(value), 4) for name, value in zip(names, best, strict=True)}, start.novelty)
    return Lesson(
        start,
        after,
        (_figures(first, known), _figures(best, known)),
        (_figures(first, unseen), _figures(best, unseen)),
    )


def _usable(examples: Sequence[Example], names: Sequence[str]) -> list[tuple[Doubles, Any]]:
    """Matrices (candidates x signals) and masks of the right candidates, where there is something to tell apart."""
    import numpy as np

    found = []
    for example in examples:
        right = np.array(example.relevant, dtype=bool)
        if right.any() and not right.all():
            found.append((np.array([[row.get(name, 0.0) for name in names] for row in example.signals]), right))
    return found


def _loss(weights: Doubles, examples: Sequence[tuple[Doubles, Any]]) -> tuple[float, Doubles]:
    import numpy as np

    loss, gradient = 0.0, np.zeros_like(weights)
    for values, right in examples:
        score = values @ weights
        share = np.exp(score - score.max())
        total = share.sum()
        loss -= float(np.mean(score[right] - score.max() - np.log(total)))
        gradient -= values[right].mean(axis=0) - (share / total) @ values
    return loss / len(examples), gradient / len(examples)


def _figures(weights: Doubles, examples: Sequence[tuple[Doubles, Any]]) -> Figures:
    import numpy as np

    firsts = [np.argsort(-(values @ weights), kind="stable") for values, _ in examples]
    recall = {
        k: float(np.mean([right[first[:k]].any() for first, (_, right) in zip(firsts, examples, strict=True)]))
        for k in (1, 5, 10)
    }
    return Figures(len(examples), _loss(weights, examples)[0], recall)
