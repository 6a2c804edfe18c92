"""How often a diagnosis is right on LoCoMo: faults of known kind planted into perfect stores, no model, three seeds.

The constants of the diagnosis were chosen on conversations 1 to 5 of the file; the figures are from 6 to 10.

    python -m benchmarks.diagnosis [--chosen-on] [--full] [--lossy] [--stores extracted both] [--provenance no]
"""

from __future__ import annotations

import argparse
import time

from benchmarks.conflicts import FAIL, diagnoser_of
from benchmarks.data import shared_data
from benchmarks.phrasing import PHRASINGS, Rephrased
from memx.adapters.datasets.locomo import Locomo
from memx.diagnose.calibrate import calibrate
from memx.diagnose.faults import without_provenance
from memx.diagnose.perfect import StoreKind, perfect_store
from memx.model import Candidate, CandidateSource, Retrieved

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
    print("\nAll questions of LoCoMo diagnosed as FAIL, nothing retrieved but the first ten facts:")
    for provenance in (True, False):
        print(f"  verbatim store {'with' if provenance else 'without'} provenance: {timed(dataset, provenance)}")


def timed(dataset: Locomo, provenance: bool) -> str:
    """Seconds to diagnose every question of the dataset, the linking of facts included."""
    count, started, spent = 0, time.perf_counter(), time.process_time()
    for case in dataset.cases():
        facts = tuple(perfect_store(dataset, case, StoreKind.VERBATIM).facts.values())
        diagnoser = diagnoser_of(case, facts if provenance else without_provenance(facts))
        rows = [Retrieved(fact.fact_id, fact.content) for fact in facts[:50]]
        for question in case.questions:
            diagnoser.diagnose(question, rows, 10, Candidate("I do not know", CandidateSource.MODEL), FAIL)
            count += 1
    return f"{count} in {time.perf_counter() - started:.1f} s wall, {time.process_time() - spent:.1f} s CPU"


if __name__ == "__main__":
    main()
