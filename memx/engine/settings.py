"""What a run was asked to do: everything that decides its result, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from memx.errors import UsageError

#: Retrieval metrics look this deep, where an adapter can return that many at no extra price.
DEEP_K = 50
#: Who works off the cases.
EXECUTORS = ("threads", "processes", "dask")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The arguments of ``memx run`` that decide what comes out; stored with the run, so that it can be resumed.

    Attributes:
        source: path of the dataset file; empty where the dataset ships with memx.
        top_k: how many facts the candidate may see.
        ready_timeout: seconds that any one call to the adapter may take, readiness included.
        concurrency: cases side by side.
        model_concurrency: requests to models at once, over all cases and roles.
        snapshots: ``case`` (before and after ingest) or ``session`` (also after each session).
        diagnose_model: model for the last rung of the relevance ladder; ``none`` asks no model.
        context_budget: tokens of retrieved text that the candidate may see; None for no limit.
        entity_prefix: namespace to use instead of the run's own.
        executor: ``threads``, ``processes``, ``dask`` or ``dask:ADDRESS`` of a scheduler.
        cleanup: delete at the end of each case what the run stored in the memory system.
    """

    dataset: str = "demo"
    source: str = ""
    adapter: str = "local"
    adapter_options: Mapping[str, str] = field(default_factory=dict)
    dataset_options: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    random: bool = False
    seed: int = 0
    sample: str = ""
    categories: tuple[str, ...] = ()
    question_ids: tuple[str, ...] = ()
    top_k: int = 10
    judge_model: str = "offline"
    answer_model: str = "none"
    diagnose_model: str = "none"
    base_url: str = ""
    ready_timeout: float = 180.0
    concurrency: int = 4
    model_concurrency: int = 16
    skip_ingest: bool = False
    entity_prefix: str = ""
    snapshots: str = "case"
    context_budget: int | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    votes: int = 1
    confirm_fails: bool = False
    strict: bool = False
    judge_prompt: str = ""
    executor: str = "threads"
    cleanup: bool = False

    def __post_init__(self) -> None:
        bounds = {"top_k": 1, "concurrency": 1, "model_concurrency": 1, "limit": 1, "context_budget": 1, "max_calls": 0}
        for name, least in bounds.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"--{name.replace('_', '-')} is a number from {least}, not {value}")
        if self.ready_timeout <= 0:
            raise UsageError(f"--ready-timeout is a number of seconds above 0, not {self.ready_timeout:g}")
        if self.snapshots not in ("case", "session"):
            raise UsageError(f"--snapshots is case or session, not '{self.snapshots}'")
        kind, _, address = self.executor.partition(":")
        if kind not in EXECUTORS or (address and kind != "dask"):
            raise UsageError(f"--executor is {', '.join(EXECUTORS)} or dask:ADDRESS, not '{self.executor}'")
        object.__setattr__(self, "categories", tuple(self.categories))
        object.__setattr__(self, "question_ids", tuple(self.question_ids))

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RunSettings:
        """Settings read back from the store; what an older memx did not know takes its default."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in known})
