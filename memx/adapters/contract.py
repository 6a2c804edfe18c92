"""What every memory system's driver and every dataset's loader must offer."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memx.model import Case, QueryResult, Question, Session, Snapshot

if TYPE_CHECKING:
    from memx.llm.models import Models


class MemoryAdapter(ABC):
    """The driver of one memory system.

    The harness builds one instance per case and calls it from one thread only, so an adapter needs no locks; what is
    dear to set up (a model, a connection pool) belongs at module or class level. ``entity_id`` is a namespace that no
    other run used. Failures raise; an empty result means "looked, found none".

    Class attributes:
        name: the word users type.
        version: of the memory system, for the manifest.
        deep_query: the system can be asked for more than ``top_k`` facts at no extra price.
        shares_entity_ids: the data is keyed by the dataset's own ids; they arrive unchanged.
        ignores_top_k: a query returns as much as it likes and all of it reaches the candidate (controls such as
            ``full-context``).
        OPTIONS: its options by name, each a plain default or an :class:`~memx.adapters.options.Option` with help,
            environment variable and secrecy, for ``memx adapters show``; where ``dataset_sha256`` is one of them,
            the harness gives the checksum of the dataset, so that caches can be told apart.
        sees_gold: the harness hands the gold over through :meth:`show_gold` (only for controls such as ``oracle``).
        retrieves: False for a control that brings nothing back on purpose.
        keeps_data: what is stored outlives the process (a server, files of the user's), so that a run leaves
            something behind unless ``--cleanup`` calls :meth:`reset` at its end.
        exports: what a snapshot shows, a line each, for ``memx adapters show``.
        cannot_see: what is in the system and no snapshot shows, a line each.
    """

    name: ClassVar[str] = ""
    version: ClassVar[str] = ""
    #: An instance may know better than its class, once it has spoken to the system.
    deep_query: bool = True
    keeps_data: bool = False
    shares_entity_ids: ClassVar[bool] = False
    ignores_top_k: ClassVar[bool] = False
    sees_gold: ClassVar[bool] = False
    retrieves: ClassVar[bool] = True
    exports: ClassVar[tuple[str, ...]] = ()
    cannot_see: ClassVar[tuple[str, ...]] = ()
    OPTIONS: ClassVar[Mapping[str, Any]] = {}

    #: Set by the harness after construction: a directory for caches that outlive the run; None when there is none.
    cache_dir: Path | None = None

    #: Set by the harness likewise: the run's clients to models, so that what an adapter asks is counted and capped
    #: with the run; None outside of a run.
    models: Models | None = None

    #: Set by the harness before each query: when the question is asked, where the dataset says so.
    asked_at: datetime | None = None

    def __init__(self, **options: Any) -> None:  # noqa: B027 - every option of a subclass has a default
        """Accept options given by ``--adapter-option``; a subclass names its own, each with a default."""

    def note(self, finding: str) -> None:
        """Tell the harness an oddity that is no failure: content the system refused or rewrote, rows left out.

        It is counted, shown with the run and kept with the case; the same words twice count twice.
        """
        self.__dict__.setdefault("_notes", []).append(str(finding))

    def take_notes(self) -> list[str]:
        """The notes since the last call; the harness takes them after every step."""
        taken: list[str] = self.__dict__.pop("_notes", [])
        return taken

    def describe(self) -> Mapping[str, Any]:
        """What the manifest of a run should hold about this system: embedder, dimension, server version."""
        return {}

    @abstractmethod
    def ingest_session(self, session: Session) -> None:
        """Store one session. Sessions of a case arrive in order, each once."""

    @abstractmethod
    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        """The facts most relevant to ``query``, best first, at most ``top_k`` (unless ``ignores_top_k``)."""

    @abstractmethod
    def export_state(self, entity_id: str) -> Snapshot:
        """Every stored fact of the entity, retired ones too."""

    def wait_until_ready(self, entity_id: str, timeout_s: float) -> None:  # noqa: B027
        """Return once everything ingested can be found.

        Raises:
            AdapterTimeoutError: not ready after ``timeout_s`` seconds.
        """

    def reset(self, entity_id: str) -> None:  # noqa: B027
        """Forget everything stored under the entity, and what was made to hold it; an unknown entity is no error."""

    def close(self) -> None:  # noqa: B027
        """Release what the adapter holds."""

    def show_gold(self, question: Question) -> None:  # noqa: B027
        """Receive the question about to be asked, evidence included. Called only when ``sees_gold`` is set."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What a dataset is: name, file, checksum and the source of its category names."""

    name: str
    source: str = ""
    sha256: str = ""
    version: str = ""
    slice: str = ""
    category_source: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quirk:
    """One oddity of a dataset file and what was done about it.

    Attributes:
        kind: short name, for counting: ``integer_answer``, ``dangling_evidence``, ...
        place: where: ``conv-26:q17``, ``line 12``.
        policy: ``kept``, ``repaired``, ``flagged`` or ``dropped``.
        detail: what was found and what it became.
    """

    kind: str
    place: str
    policy: str
    detail: str


class Dataset(ABC):
    """A named, versioned bundle of cases, read as often as asked and never held whole when it is large.

    A loader is a subclass; ``memx run --dataset NAME --source PATH`` calls ``cls.load(source, **options)``.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    #: A file or directory must be given by ``--source`` (or be in the cache).
    needs_source: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def load(cls, source: Path | None = None, **options: Any) -> Dataset:
        """Open the dataset.

        Raises:
            InputError: the file is missing, broken or of the wrong shape; names file, place and the way out.
        """

    @property
    @abstractmethod
    def info(self) -> DatasetInfo:
        """Name, source, checksum."""

    @abstractmethod
    def cases(self) -> Iterator[Case]:
        """The cases in the dataset's order; a new pass at each call."""

    def quirks(self) -> list[Quirk]:
        """Every oddity found and the policy taken; empty when there is none."""
        return []


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
