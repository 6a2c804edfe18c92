"""What a model adds to a diagnosis, and what it costs: the same planted faults without a model, with one that says
truly which notes hold an utterance, and with one that errs in a tenth of its replies.

The model is a server on loopback that knows from which turns LoCoMo's extracted sentences were made. Stores without
provenance; conversations 6 to 10, which nothing was chosen on.

    python -m benchmarks.diagnosis_model [--faults 300] [--stores extracted both]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Callable

from benchmarks.data import shared_data
from benchmarks.figures import print_rows
from memx.adapters.datasets.locomo import Locomo
from memx.diagnose.calibrate import calibrate
from memx.diagnose.lexicon import turn_text
from memx.diagnose.model_rung import ModelRung
from memx.diagnose.perfect import StoreKind
from memx.llm.models import Models, ModelSettings
from tests.fake_openai import FakeOpenAI

_NOTE = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
_SAID = re.compile(r"^Utterance by (.*?): (.*?)\n\nNotes:\n", re.MULTILINE | re.DOTALL)


def truthful(dataset: Locomo, errs: float = 0.0) -> Callable[[dict[str, object]], str]:
    """A reply function that lists the notes made from the utterance, but for this share of requests a wrong list."""
    made_from: dict[str, set[str]] = {}
    for case in dataset.cases():
        turns = case.turns()
        for one in dataset.observations(case.case_id):
            said = {_plain(turn_text(turns[turn_id])) for turn_id in one.turn_ids if turn_id in turns}
            made_from.setdefault(_plain(one.text), set()).update(said)
        for turn in turns.values():
            made_from.setdefault(_plain(f"{turn.speaker}: {turn.content}"), set()).add(_plain(turn_text(turn)))

    def reply(body: dict[str, object]) -> str:
        messages = body["messages"]
        assert isinstance(messages, list)
        text = str(messages[-1]["content"])
        asked = _SAID.search(text)
        assert asked is not None
        said, notes = _plain(asked[2]), _NOTE.findall(text[asked.end() :])
        holding = [number for number, note in enumerate(notes, 1) if said in made_from.get(_plain(note), ())]
        # The same request errs in every run.
        if int(hashlib.sha256(text.encode()).hexdigest(), 16) % 1000 < errs * 1000:
            holding = [] if holding else [1]
        return json.dumps({"notes": holding})

    return reply


def _plain(text: str) -> str:
    return " ".join(text.split())[:600]


def main() -> None:
    """One row per store and model."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--faults", type=int, default=300, help="per seed and store; three seeds")
    options.add_argument("--stores", nargs="*", type=StoreKind, default=[StoreKind.EXTRACTED, StoreKind.BOTH])
    arguments = options.parse_args()
    dataset = Locomo.load(shared_data() / "data" / "locomo10.json")
    part = [case.case_id for case in dataset.cases()][5:]
    rows = []
    for kind in arguments.stores:
        for name, errs in (("none", None), ("truthful", 0.0), ("errs in 10 %", 0.1)):
            with FakeOpenAI(truthful(dataset, errs or 0.0)) as server:
                models = Models(ModelSettings(base_url=server.base_url))
                rung = ModelRung(models.llm("loopback")) if errs is not None else None
                found = calibrate(
                    dataset,
                    store=kind,
                    provenance=False,
                    seeds=(0, 1, 2),
                    faults=arguments.faults,
                    cases=part,
                    model=rung,
                )
                calls = found.llm_calls / len(found.outcomes)
                rows.append(
                    [kind, name, len(found.outcomes), f"{found.stage_accuracy:.3f}", f"{found.macro_f1:.3f}",
                     f"{found.cause_accuracy:.3f}", f"{calls:.2f}", len(server.requests)]
                )  # fmt: skip
    print_rows(["store", "model", "faults", "stage", "macro-F1", "cause", "calls a FAIL", "requests"], rows)


if __name__ == "__main__":
    main()
