"""Two runs of one dataset, question by question, read in one query."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from memx.engine.store.reader import RunRow, Store, Where
from memx.errors import UsageError

_Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class PairRow:
    """One question that both runs judged PASS or FAIL; stage and cause are None where a side passed."""

    question_id: str
    category: str
    question: str
    outcome_a: str
    outcome_b: str
    stage_a: str | None
    cause_a: str | None
    stage_b: str | None
    cause_b: str | None

    @property
    def group(self) -> str:
        """``both pass``, ``B worse``, ``B better`` or ``both fail``."""
        a, b = self.outcome_a == "PASS", self.outcome_b == "PASS"
        return {(True, True): "both pass", (True, False): "B worse", (False, True): "B better"}.get((a, b), "both fail")


def pair_rows(store: Store, a: RunRow, b: RunRow, where: Where | None = None) -> list[PairRow]:
    """The questions that both runs judged, in the order of B; ``where`` is a condition on the traces of B.

    Raises:
        UsageError: the runs are of different datasets, or of different versions of one.
    """
    if (a.dataset, _sha(a)) != (b.dataset, _sha(b)):
        raise UsageError(
            f"run {a.run_id} is of {a.dataset} {_sha(a)[:12]}, run {b.run_id} of {b.dataset} {_sha(b)[:12]}".rstrip(),
            "Only runs of the same dataset can be compared.",
        )
    where = where or Where()
    rows = store.query(
        "SELECT b.question_id, b.category, b.question, a.outcome, b.outcome, a.stage, a.cause, b.stage, b.cause "
        "FROM traces b JOIN traces a ON a.run_id = ? AND a.question_id = b.question_id "
        "WHERE b.run_id = ? AND a.outcome IN ('PASS', 'FAIL') AND b.outcome IN ('PASS', 'FAIL') "
        f"AND b.rowid IN (SELECT rowid FROM traces WHERE run_id = ? AND ({where.sql})) ORDER BY b.position",
        [a.run_id, b.run_id, b.run_id, *where.params],
    )
    return [PairRow(*tuple(row)) for row in rows]


def shared(a: RunRow, b: RunRow) -> dict[str, bool]:
    """Whether two runs had the same judge, k and seed: where not, their difference is not the memory system's alone."""
    return {
        "judge": a.judge == b.judge,
        "k": a.settings.get("top_k") == b.settings.get("top_k"),
        "seed": a.settings.get("seed") == b.settings.get("seed"),
    }


def difference(only_a: int, only_b: int, n: int) -> tuple[float, float, float]:
    """Accuracy of B minus that of A with its 95 % interval, in percentage points.

    The adjusted Wald interval for paired proportions of Agresti and Min (Statistics in Medicine 24, 2005): half a
    question is added to each cell of the four-way table.
    """
    if not n:
        return 0.0, 0.0, 0.0
    middle = (only_b - only_a) / (n + 2)
    spread = sqrt(max(0.0, only_a + only_b + 1 - (only_b - only_a) ** 2 / (n + 2))) / (n + 2)
    low, high = middle - _Z95 * spread, middle + _Z95 * spread
    return 100 * (only_b - only_a) / n, 100 * max(-1.0, low), 100 * min(1.0, high)


def _sha(run: RunRow) -> str:
    return str(run.manifest.get("dataset", {}).get("sha256", ""))
