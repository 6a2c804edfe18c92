"""How often a diagnosis is right on LoCoMo: faults of known kind planted into perfect stores, no model, three seeds.

The constants of the diagnosis were chosen on conversations 1 to 5 of the file; the figures are from 6 to 10.

    python -m benchmarks.diagnosis [--chosen-on] [--full] [--lossy] [--stores extracted both] [--provenance no]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks.conflicts import FAIL, diagnoser_of
from benchmarks.data import shared_data
from benchmarks.phrasing import PHRASINGS, Rephrased
from memx.adapters.datasets.locomo import Locomo
from memx.diagnose.calibrate import calibrate
from memx.diagnose.faults import without_provenance
from memx.diagnose.perfect import StoreKind, perfect_store
from memx.model import Candidate, CandidateSource, Fact, Retrieved
from memx.text.words import stems

SEEDS = (0, 1, 2)


def main() -> None:
    """Print one line per store, with the confusion matrices on request, and the time for all questions."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--chosen-on", action="store_true", help="the conversations that the constants were chosen on")
    options.add_argument("--full", action="store_true", help="confusion matrix and recall of every store")
    options.add_argument("--lossy", action="store_true", help="use extracted facts also where they lack what is asked")
    options.add_argument("--faults", type=int, default=800, help="per seed and store")
    options.add_argument("--stores", nargs="*", type=StoreKind, default=list(StoreKind), help="none: the time alone")
    options.add_argument("--provenance", choices=["yes", "no"], help="with or without alone")
    options.add_argument("--phrasing", choices=list(PHRASINGS), help="extracted facts in other words, by rule")
    arguments = options.parse_args()
    dataset = Rephrased.load(shared_data() / "data" / "locomo10.json")
    assert isinstance(dataset, Rephrased)
    dataset.phrasing = arguments.phrasing or ""
    ids = [case.case_id for case in dataset.cases()]
    part = ids[:5] if arguments.chosen_on else ids[5:]
    print(f"{', '.join(part)}; seeds {SEEDS}")
    print(f"  {'store':<12}{'provenance':<12}{'faults':>8}{'stage':>8}{'macro-F1':>10}{'cause':>8}  weakest causes")
    texts = []
    sides = [arguments.provenance == "yes"] if arguments.provenance else [True, False]
    for provenance in sides:
        for kind in arguments.stores:
            report = calibrate(
                dataset,
                store=kind,
                provenance=provenance,
                seeds=SEEDS,
                faults=arguments.faults,
                cases=part,
                lossy=arguments.lossy,
            )
            weak = sorted((right / count, cause) for cause, (right, count) in report.cause_recall().items())[:3]
            told = ", ".join(f"{cause} {recall:.2f}" for recall, cause in weak)
            print(
                f"  {kind:<12}{'yes' if provenance else 'no':<12}{len(report.outcomes):>8}{report.stage_accuracy:>8.3f}"
                f"{report.macro_f1:>10.3f}{report.cause_accuracy:>8.3f}  {told}",
                flush=True,
            )
            texts.append(report.text())
    if arguments.full:
        print("\n" + "\n\n".join(texts))
    print("\nAll questions of LoCoMo diagnosed as FAIL, fifty rows each by shared words, a wrong answer:")
    for kind in (StoreKind.VERBATIM, StoreKind.BOTH):
        for provenance in (True, False):
            told = "with" if provenance else "without"
            print(f"  {kind} store {told} provenance: {timed(dataset, kind, provenance)}", flush=True)


def timed(dataset: Locomo, kind: StoreKind, provenance: bool) -> str:
    """Seconds to diagnose every question of the dataset, the linking of facts included and the retrieval not."""
    count, wall, cpu = 0, 0.0, 0.0
    for case in dataset.cases():
        facts = tuple(perfect_store(dataset, case, kind).facts.values())
        shown = facts if provenance else without_provenance(facts)
        asked = [(question, retrieved(question.text, facts)) for question in case.questions]
        answers = [Candidate(question.gold, CandidateSource.MODEL) for question in reversed(case.questions)]
        started, spent = time.perf_counter(), time.process_time()
        diagnoser = diagnoser_of(case, shown)
        for (question, rows), answer in zip(asked, answers, strict=True):
            diagnoser.diagnose(question, rows, 10, answer, FAIL)
        wall, cpu = wall + time.perf_counter() - started, cpu + time.process_time() - spent
        count += len(asked)
    return f"{count} in {wall:.1f} s wall, {cpu:.1f} s CPU"


def retrieved(question: str, facts: Sequence[Fact]) -> list[Retrieved]:
    """Fifty facts that share most words with a question."""
    asked = set(stems(question))
    best = sorted(facts, key=lambda fact: -len(asked & set(stems(fact.content))))[:50]
    return [Retrieved(fact.fact_id, fact.content) for fact in best]


if __name__ == "__main__":
    main()
