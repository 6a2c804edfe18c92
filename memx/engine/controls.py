"""Control arms: the same questions asked of systems whose answer is known beforehand, and what that tells of each.

A question that is answered right with no memory at all is *guessable*. One that is answered wrong with exactly the gold
evidence in front of the reader is *reader-bound*: no memory system can pass it. One that the gold evidence suffices for
and the memory system failed is *retrieval-bound*: the memory lost it. Each question has at most one tag, tried in this
order; a question that has none was earned by the memory, or could not be judged.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import memx
from memx.adapters.contract import Dataset
from memx.engine.events import Listener
from memx.engine.judges.contract import Judge
from memx.engine.last_run import write_last_run
from memx.engine.runner import Ended
from memx.engine.settings import RunSettings
from memx.engine.store.reader import RunRow, Store
from memx.engine.store.writer import write_controls
from memx.engine.summary import Summary, summarize
from memx.errors import UnknownNameError
from memx.model import Outcome

#: The arms in the order in which they run; the first and the last are those that tags are made from.
ARMS = ("no-context", "random-k", "word-overlap", "full-context", "oracle")
GUESSABLE, READER, RETRIEVAL = TAGS = ("guessable", "reader-bound", "retrieval-bound")
#: Settings that change how a control is run, and not what comes out.
_NOT_RESULT = frozenset({
    "adapter", "adapter_options", "concurrency", "model_concurrency", "ready_timeout", "max_calls", "max_cost",
    "entity_prefix", "skip_ingest", "cleanup", "snapshots", "diagnose_model", "source",
})  # fmt: skip


class OwnStop(threading.Event):
    """The stop of one of several runs: a run sets its own when it ends, and all hear the one that they share."""

    def __init__(self, shared: threading.Event) -> None:
        super().__init__()
        self._shared = shared

    def is_set(self) -> bool:
        """True when this run, or all of them, are to end."""
        return super().is_set() or self._shared.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for this run's own stop; the shared one is looked at when the time is up."""
        return self.is_set() or super().wait(timeout) or self.is_set()


@dataclass(frozen=True, slots=True)
class ControlsEnded:
    """How the arms ended.

    Attributes:
        interrupted: the user stopped; the arms that were finished count.
        summary: of the run itself, with its controls.
    """

    interrupted: bool
    summary: Summary


def check_arms(names: Sequence[str]) -> tuple[str, ...]:
    """The arms of these names, in the order in which they run; all for none.

    Raises:
        UnknownNameError: one is no control.
    """
    unknown = next((name for name in names if name not in ARMS), None)
    if unknown is not None:
        raise UnknownNameError("control", unknown, ARMS)
    return tuple(arm for arm in ARMS if arm in names) if names else ARMS


def run_controls(
    directory: Path,
    run_id: str,
    settings: RunSettings,
    arms: Sequence[str] = ARMS,
    *,
    run_arm: Callable[[Callable[[Listener], Ended]], Ended],
    stop: threading.Event | None = None,
    dataset: Dataset | None = None,
    judge: Judge | None = None,
) -> ControlsEnded:
    """Run the control arms of a stored run on its questions, tag the questions, and add both to the run.

    An arm that an earlier run of the same dataset, draw, judge and answers has finished is not run again; one that was
    interrupted is gone on with.

    Args:
        settings: of the run, as it was asked for.
        run_arm: called with each arm that has to run: gives it a listener, and returns how it ended.
        dataset, judge: as they were given as objects.
    """
    from memx.engine.setup import prepare

    ended: Ended | None = None
    found: dict[str, str] = {}
    for arm in arms:
        with closing(Store(directory)) as store:
            key = control_key(store.run(run_id), settings)
            earlier = _earlier(store.runs(), arm, key)
        if earlier is None or not _usable(earlier):

            def run(listener: Listener, arm: str = arm, key: str = key, earlier: RunRow | None = earlier) -> Ended:
                prepared = prepare(
                    arm_settings(settings, arm),
                    directory,
                    listener=listener,
                    resume=earlier.run_id if earlier else None,
                    stop=stop and OwnStop(stop),
                    dataset=dataset,
                    judge=judge,
                    control={"arm": arm, "key": key},
                )
                return prepared.run()

            ended = run_arm(run)
            if ended.state != "finished":
                break
            found[arm] = ended.run_id
        else:
            found[arm] = earlier.run_id
    summary = attach(directory, run_id, found)
    return ControlsEnded(ended is not None and ended.state != "finished", summary)


def arm_settings(settings: RunSettings, arm: str) -> RunSettings:
    """The settings of a run for one of its controls."""
    options = {"seed": str(settings.seed)} if arm == "random-k" else {}
    return replace(
        settings, adapter=arm, adapter_options=options, entity_prefix="", skip_ingest=False, cleanup=False,
        snapshots="case", diagnose_model="none",
    )  # fmt: skip


def control_key(run: RunRow, settings: RunSettings) -> str:
    """What a control's result depends on: dataset, draw, k, judge and answers; equal keys mean an equal result."""
    asked = {name: value for name, value in settings.as_dict().items() if name not in _NOT_RESULT}
    judge = {name: run.manifest.get("judge", {}).get(name) for name in ("name", "prompt_sha256")}
    # A dataset without a checksum may have changed since, so its controls hold for this run alone.
    which = run.dataset_sha256 or run.run_id
    told = json.dumps([memx.__version__, which, judge, asked], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def attach(directory: Path, run_id: str, arms: Mapping[str, str]) -> Summary:
    """Tag the questions of a run from the verdicts of its arms (name to run id), and write both down."""
    with closing(Store(directory)) as store:
        run = store.run(run_id)
        verdicts = {name: store.outcomes(arm_id) for name, arm_id in arms.items()}
        reads = run.settings.get("answer_model", "none") != "none"
        tags = tags_of(store.outcomes(run_id), verdicts.get("no-context"), verdicts.get("oracle"), reads=reads)
        told = {
            "reader": reads,
            "arms": {name: {"run_id": arm_id, **_accuracy(verdicts[name])} for name, arm_id in arms.items()},
            "tags": {tag: Counter(tags.values())[tag] for tag in TAGS},
        }
    write_controls(directory, run_id, tags, told)
    with closing(Store(directory)) as store:
        stored = store.run(run_id).summary
        write_last_run(store, run_id)
        return summarize(store, run_id, stored.get("llm"), stored.get("judge"))


def tags_of(
    system: Mapping[str, str],
    no_context: Mapping[str, str] | None,
    oracle: Mapping[str, str] | None,
    *,
    reads: bool,
) -> dict[str, str]:
    """The tag of each question that has one, by question id.

    Args:
        system, no_context, oracle: verdicts by question id; None for an arm that did not run.
        reads: an answer model or rule reads what was retrieved. Without one the retrieved text is judged, so nothing
            can be guessed and there is no reader to fail: only ``retrieval-bound`` is given.
    """
    found = {}
    for question_id, outcome in system.items():
        guessed = (no_context or {}).get(question_id)
        gold = (oracle or {}).get(question_id)
        if reads and guessed == Outcome.PASS:
            found[question_id] = GUESSABLE
        elif reads and gold == Outcome.FAIL and outcome != Outcome.PASS:
            found[question_id] = READER
        elif gold == Outcome.PASS and outcome == Outcome.FAIL:
            found[question_id] = RETRIEVAL
    return found


def _earlier(runs: Sequence[RunRow], arm: str, key: str) -> RunRow | None:
    """The run of this control that can be used or gone on with: a finished one before others, the newest first."""
    same = [run for run in runs if run.manifest.get("control") == {"arm": arm, "key": key} and run.state != "running"]
    return next((run for run in same if _usable(run)), same[0] if same else None)


def _usable(run: RunRow) -> bool:
    """It has ended with a verdict or a reason for each question; what broke is asked again."""
    return run.state == "finished" and run.summary.get("errors") == 0


def _accuracy(outcomes: Mapping[str, str]) -> dict[str, Any]:
    counts = Counter(outcomes.values())
    n, d = counts[Outcome.PASS], counts[Outcome.PASS] + counts[Outcome.FAIL]
    return {"n": n, "d": d, "value": n / d if d else None}
