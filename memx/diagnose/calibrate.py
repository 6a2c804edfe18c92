"""How often a diagnosis is right: faults of known kind are planted into a perfect store, one per question, and
diagnosed. The figures stand beside every report that quotes stages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memx.adapters.contract import Dataset
from memx.diagnose.carriers import Ladder
from memx.diagnose.contract import AsksModel, Embed, History
from memx.diagnose.diagnoser import Diagnoser
from memx.diagnose.faults import Planted, Planter, without_provenance
from memx.diagnose.perfect import StoreKind, perfect_store
from memx.errors import InputError
from memx.model import CAUSES_OF, Case, Cause, Decider, Diagnosis, Fact, Outcome, Snapshot, Stage, Verdict

_STAGE_OF = {cause: stage for stage, causes in CAUSES_OF.items() for cause in causes}
_FAIL = Verdict(Outcome.FAIL, Decider.MEMX, "planted")


@dataclass(frozen=True, slots=True)
class PlantedOutcome:
    """One planted fault and what was found."""

    question_id: str
    planted: Cause
    found: Diagnosis


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """What came of all planted faults of one store kind.

    Attributes:
        left_out: questions with evidence for which the store was not perfect, so that nothing was planted.
    """

    dataset: str
    store: StoreKind
    provenance: bool
    seeds: tuple[int, ...]
    outcomes: tuple[PlantedOutcome, ...]
    left_out: int = 0

    @property
    def llm_calls(self) -> int:
        """Requests to a model, those that its cache answered included."""
        return sum(one.found.llm_calls for one in self.outcomes)

    @property
    def stage_accuracy(self) -> float:
        """Share of faults whose stage was named."""
        return _share(_STAGE_OF[one.planted] is one.found.stage for one in self.outcomes)

    @property
    def cause_accuracy(self) -> float:
        """Share of faults whose cause was named, among those whose stage was."""
        return _share(
            one.planted is one.found.cause for one in self.outcomes if _STAGE_OF[one.planted] is one.found.stage
        )

    @property
    def macro_f1(self) -> float:
        """Mean over the planted stages of the harmonic mean of precision and recall."""
        scores = []
        for stage in Stage:
            planted = sum(_STAGE_OF[one.planted] is stage for one in self.outcomes)
            named = sum(one.found.stage is stage for one in self.outcomes)
            right = sum(_STAGE_OF[one.planted] is stage is one.found.stage for one in self.outcomes)
            if planted:
                scores.append(2 * right / (planted + named))
        return sum(scores) / len(scores) if scores else 0.0

    @property
    def confusion(self) -> Mapping[tuple[Stage, Stage], int]:
        """Counts by (planted stage, found stage)."""
        return Counter((_STAGE_OF[one.planted], one.found.stage) for one in self.outcomes)

    @property
    def cause_confusion(self) -> Mapping[tuple[Cause, Cause], int]:
        """Counts by (planted cause, found cause)."""
        return Counter((one.planted, one.found.cause) for one in self.outcomes)

    def cause_recall(self) -> dict[Cause, tuple[int, int]]:
        """(named, planted) of each cause that was planted."""
        found: dict[Cause, tuple[int, int]] = {}
        for cause in Cause:
            mine = [one for one in self.outcomes if one.planted is cause]
            if mine:
                found[cause] = sum(one.found.cause is cause for one in mine), len(mine)
        return found

    def confidence_bins(self) -> list[tuple[float, float, int, int]]:
        """(from, to, right stages, faults) by stated confidence: whether 0.9 is right nine times in ten."""
        edges = (0.0, 0.5, 0.7, 0.8, 0.9, 1.01)
        bins = []
        for low, high in pairwise(edges):
            mine = [one for one in self.outcomes if low <= one.found.confidence < high]
            if mine:
                right = sum(_STAGE_OF[one.planted] is one.found.stage for one in mine)
                bins.append((low, min(high, 1.0), right, len(mine)))
        return bins

    def text(self) -> str:
        """The report as plain lines: figures, confusion matrix of stages, recall of causes."""
        told = "with" if self.provenance else "without"
        seeds = ", ".join(map(str, self.seeds))
        lines = [
            f"{self.dataset}: {self.store} store {told} provenance, {len(self.outcomes)} faults (seeds {seeds}), "
            f"{self.left_out} questions left out",
            f"  stage accuracy {self.stage_accuracy:.3f}   macro-F1 {self.macro_f1:.3f}   "
            f"cause accuracy within a right stage {self.cause_accuracy:.3f}",
            f"  model calls {self.llm_calls} ({self.llm_calls / len(self.outcomes):.2f} a fault)",
            "",
            "  planted \\ found " + "".join(f"{stage:>12}" for stage in Stage),
        ]
        confusion = self.confusion
        for planted in Stage:
            row = "".join(f"{confusion.get((planted, found), 0):>12}" for found in Stage)
            lines.append(f"  {planted:<16}{row}")
        lines += ["", "  cause              recall"]
        for cause, (right, planted_count) in self.cause_recall().items():
            lines.append(f"  {cause:<18} {right / planted_count:>6.3f}  {right}/{planted_count}")
        lines += ["", "  confidence   right stage"]
        for low, high, right, count in self.confidence_bins():
            lines.append(f"  {low:.1f} - {high:.1f}    {right / count:>6.3f}  {right}/{count}")
        return "\n".join(lines)


def calibrate(
    dataset: Dataset,
    *,
    store: StoreKind | str = StoreKind.VERBATIM,
    provenance: bool = True,
    seeds: Sequence[int] = (0,),
    faults: int | None = None,
    causes: Sequence[Cause] = tuple(Cause),
    cases: Iterable[str] | None = None,
    lossy: bool = False,
    embed: Embed | None = None,
    model: AsksModel | None = None,
    top_k: int = 10,
) -> CalibrationReport:
    """Plant one fault per question and diagnose it.

    Each question gets the cause that was planted least often so far among those it allows, so that all causes come in
    like numbers and questions with several evidence turns keep their share.

    Args:
        store: what the perfect store keeps; extracted facts need a dataset that brings them.
        provenance: the store tells which turns a fact came from.
        seeds: one pass over all questions each.
        faults: at most so many per seed, over questions in random order; None is all.
        cases: ids of the cases to use; None is all.
        model: the last rung of the relevance ladder; None asks none.
        lossy: use extracted facts also where they lack what is asked (:meth:`PerfectStore.holds`).

    Raises:
        InputError: no question of the dataset has evidence that its store carries.
        UsageError: the dataset brings no extracted facts.
    """
    store = StoreKind(store)
    wanted = set(cases) if cases is not None else None
    chosen = [case for case in dataset.cases() if wanted is None or case.case_id in wanted]
    donors = [question.gold for case in chosen for question in case.questions if not question.abstention]
    outcomes: list[PlantedOutcome] = []
    left_out = 0
    for seed in seeds:
        rng = random.Random(seed)
        counts: Counter[Cause] = Counter()
        planned = []
        for case in chosen:
            perfect = perfect_store(dataset, case, store)
            usable = [question for question in case.questions if perfect.holds(question, lossy=lossy)]
            left_out += len([question for question in case.questions if question.evidence]) - len(usable)
            planter = Planter(perfect, donors, rng, top_k=top_k)
            planned += [(case, planter, question) for question in usable]
        rng.shuffle(planned)
        planted: dict[str, list[Planted]] = {}
        for case, planter, question in planned[: faults if faults is not None else len(planned)]:
            order = sorted(causes, key=lambda cause: (counts[cause], rng.random()))
            fault = next((made for cause in order if (made := planter.plant(cause, question))), None)
            if fault:
                counts[fault.cause] += 1
                planted.setdefault(case.case_id, []).append(fault)
        for case in chosen:
            ladder = Ladder(case, embed)
            for fault in planted.get(case.case_id, ()):
                diagnosis = _diagnosed(fault, case, ladder, provenance, embed, model)
                outcomes.append(PlantedOutcome(fault.question.question_id, fault.cause, diagnosis))
    if not outcomes:
        raise InputError(
            f"the dataset {dataset.info.name} has no question whose evidence turns can be planted with a fault",
            "Calibration needs questions with evidence turn ids.",
        )
    return CalibrationReport(dataset.info.name, store, provenance, tuple(seeds), tuple(outcomes), left_out)


def _diagnosed(
    fault: Planted, case: Case, ladder: Ladder, provenance: bool, embed: Embed | None, model: AsksModel | None
) -> Diagnosis:
    def shown(facts: tuple[Fact, ...], label: str) -> Snapshot:
        return Snapshot(case.entity_id, facts if provenance else without_provenance(facts), label)

    history = History(
        case,
        Snapshot(case.entity_id, ()),
        shown(fault.facts, "after"),
        tuple((name, shown(facts, name)) for name, facts in fault.by_session),
    )
    diagnoser = Diagnoser(
        history, embed=embed, errata=fault.errata, context_budget=fault.context_budget, model=model, ladder=ladder
    )
    return diagnoser.diagnose(fault.question, fault.retrieved, fault.top_k, fault.candidate, _FAIL)


def _share(hits: Iterable[bool]) -> float:
    kept = list(hits)
    return sum(kept) / len(kept) if kept else 0.0
