"""What the cases of a run share, and what each is given to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memx.adapters.contract import MemoryAdapter
from memx.diagnose.contract import AsksModel, Embed
from memx.engine.events import Listener
from memx.engine.judges.contract import Judge
from memx.engine.settings import RunSettings
from memx.model import Case, Question

if TYPE_CHECKING:
    from memx.engine.answers import Answerer
    from memx.engine.store.writer import RunWriter
    from memx.llm.models import Models


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all cases of a run share.

    Attributes:
        models: the run's clients, counted and capped together.
        namespace: the entity id that the adapter sees, from case id, the case's own entity id and attempt.
        errata: corrections of the dataset by question id.
        stop: set when the run is to end.
        pool: where answers and verdicts are asked of models side by side; None works them off in the case's thread.
        left: namespaces with data that stay in the memory system; the cases add theirs.
        gone: namespaces of attempts before that were emptied now, likewise.
    """

    settings: RunSettings
    adapter_class: type[MemoryAdapter]
    adapter_options: Mapping[str, Any]
    cache_dir: Path | None
    models: Models | None
    writer: RunWriter
    judge: Judge
    answerer: Answerer
    embed: Embed | None
    errata: Mapping[str, Any] | None
    model_rung: AsksModel | None
    namespace: Callable[[Case, int], str]
    listener: Listener
    stop: threading.Event
    pool: Executor | None = None
    left: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """A case and the questions of it that are to be asked, each with its place in the run."""

    case: Case
    position: int
    questions: Sequence[tuple[int, Question]]
