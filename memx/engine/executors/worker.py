"""The worker's side: a workshop whose writer, models and listener are the run's, reached over a connection."""

from __future__ import annotations

import contextlib
import itertools
import queue
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from memx.adapters.registry import adapter_class
from memx.engine.answers.contract import Answerer
from memx.engine.case_runner import CaseRunner
from memx.engine.events import Event, QuestionFinished
from memx.engine.executors.wire import Answer, Call, Done, Kit, Stop, Told, packed, unpacked
from memx.engine.judges.contract import Judge, JudgeItem
from memx.engine.store.writer import RunWriter
from memx.engine.workshop import Task, Workshop
from memx.errors import Interrupted
from memx.llm.client import LLM
from memx.llm.models import Models
from memx.model import Candidate, Case, Decider, Question, Retrieved, Verdict


class Line:
    """The worker's end of a connection to the run. Calls may come from several threads.

    Args:
        on_lost: called when the run is gone.
    """

    def __init__(self, connection: Connection, on_lost: Callable[[], None] = lambda: None) -> None:
        self.stop = threading.Event()
        self.tasks: queue.SimpleQueue[Task | Kit | None] = queue.SimpleQueue()
        self._connection = connection
        self._on_lost = on_lost
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        threading.Thread(target=self._read, daemon=True, name="line").start()

    def call(self, target: str, method: str, *arguments: Any, **options: Any) -> Any:
        """What the run's ``target.method(...)`` gives; its errors are raised here."""
        future: Future[Any] = Future()
        number = next(self._numbers)
        self._waiting[number] = future
        self.send(Call(number, target, method, arguments, options))
        return future.result()

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            Interrupted: the run is gone.
        """
        try:
            with self._sending:
                self._connection.send(message)
        except OSError:
            raise Interrupted("the run is gone") from None

    def _read(self) -> None:
        try:
            while True:
                message = self._connection.recv()
                if isinstance(message, Answer):
                    waiting = self._waiting.pop(message.number)
                    if message.error is None:
                        waiting.set_result(message.value)
                    else:
                        waiting.set_exception(unpacked(message.error))
                elif isinstance(message, Stop):
                    self.stop.set()
                else:
                    self.tasks.put(message)
        except (EOFError, OSError):
            self._lose()

    def _lose(self) -> None:
        self.stop.set()
        self.tasks.put(None)
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(Interrupted("the run is gone"))
        self._on_lost()


class RemoteJudge(Judge):
    """The run's judge."""

    name = "remote"
    decider = Decider.MODEL

    def __init__(self, line: Line) -> None:
        self._line = line

    def judge(self, item: JudgeItem) -> Verdict:
        verdict: Verdict = self._line.call("judge", "judge", item)
        return verdict


class RemoteAnswerer(Answerer):
    """The run's answerer."""

    name = "remote"

    def __init__(self, line: Line) -> None:
        self._line = line

    def answer(
        self, question: Question, retrieved: Sequence[Retrieved], dates: Mapping[str, datetime] | None = None
    ) -> Candidate:
        candidate: Candidate = self._line.call("answerer", "answer", question, tuple(retrieved), dates)
        return candidate


class Remote:
    """Any other object of the run: every method is a call over the line."""

    def __init__(self, line: Line, target: str) -> None:
        self._line = line
        self._target = target

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments, **options: self._line.call(self._target, method, *arguments, **options)


class RemoteEmbeddings:
    """An embedding model of the run."""

    def __init__(self, line: Line, model: str, base_url: str) -> None:
        self.model = model
        self.endpoint = SimpleNamespace(base_url=base_url)
        self._remote = Remote(line, f"embeddings:{model}")

    def preflight(self) -> int:
        """The dimension of its vectors, once it answers."""
        return int(self._remote.preflight())

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text."""
        vectors: list[list[float]] = self._remote.embed(list(texts))
        return vectors


class RemoteModels:
    """The run's clients to models."""

    def __init__(self, line: Line, base_url: str) -> None:
        self._line = line
        self._base_url = base_url

    def llm(self, model: str) -> Remote:
        """The client for a model; of it ``complete``."""
        return Remote(self._line, f"llm:{model}")

    def embeddings(self, model: str) -> RemoteEmbeddings:
        """The client for an embedding model."""
        return RemoteEmbeddings(self._line, model, self._base_url)


def work(connection: Connection, on_lost: Callable[[], None] = lambda: None) -> None:
    """Work off the cases that come over a connection, until it ends."""
    line = Line(connection, on_lost)
    kit = line.tasks.get()
    if not isinstance(kit, Kit):
        return
    shop: Workshop | None = None
    while (task := line.tasks.get()) is not None:
        assert isinstance(task, Task)
        try:
            shop = shop or _shop(kit, line)
            shop.left.clear()
            shop.gone.clear()
            CaseRunner(shop, task).run()
            done = Done(tuple(shop.left), tuple(shop.gone))
        except Interrupted:
            return
        except Exception as error:  # the run decides what becomes of it
            done = Done(error=packed(error))
        with contextlib.suppress(Interrupted):
            line.send(done)


def _asks_nobody(model: str) -> LLM:
    raise AssertionError(f"the run itself asks {model}")


def _shop(kit: Kit, line: Line) -> Workshop:
    from memx.adapters.datasets.errata import errata_for
    from memx.engine.answers.build import build_answerer
    from memx.engine.judges.offline import OfflineJudge
    from memx.engine.lazy_embedder import lazy_embedder

    settings = kit.settings
    cache_dir = kit.cache_dir or Path(tempfile.gettempdir()) / "memx-cache"
    models = cast(Models, RemoteModels(line, kit.models_at)) if kit.models_at else None
    judge: Judge = OfflineJudge(strict=settings.strict) if kit.judges else RemoteJudge(line)
    answerer: Answerer = RemoteAnswerer(line)
    if kit.answers:
        answerer = build_answerer(settings.answer_model, _asks_nobody, context_budget=settings.context_budget)

    def namespace(case: Case, attempt: int) -> str:
        named: str = line.call("namespace", "", replace(case, sessions=(), questions=()), attempt)
        return named

    def tell(event: Event) -> None:
        # The run tells of a finished question itself, once it has written it.
        if not isinstance(event, QuestionFinished):
            line.send(Told(event))

    asks = not (kit.judges and kit.answers) or kit.rung
    return Workshop(
        settings=settings,
        adapter_class=adapter_class(settings.adapter),
        adapter_options=kit.adapter_options,
        cache_dir=cache_dir,
        models=models,
        writer=cast(RunWriter, Remote(line, "writer")),
        judge=judge,
        answerer=answerer,
        embed=lazy_embedder(cache_dir),
        errata=errata_for(*kit.dataset),
        model_rung=cast(Any, Remote(line, "rung")) if kit.rung else None,
        namespace=namespace,
        listener=tell,
        stop=line.stop,
        pool=ThreadPoolExecutor(settings.model_concurrency, thread_name_prefix="models") if asks else None,
    )
