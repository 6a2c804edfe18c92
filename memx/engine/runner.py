"""The act of running: cases side by side, each finished question in the store, an end that is always written down."""

from __future__ import annotations

import hashlib
import queue
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memx.adapters.contract import Dataset, MemoryAdapter
from memx.adapters.failures import words_of
from memx.adapters.options import secret_names
from memx.diagnose.contract import AsksModel
from memx.engine.adapter_thread import AdapterThread, StepError
from memx.engine.answers import Answerer
from memx.engine.answers.model import ModelAnswerer
from memx.engine.events import Event, Listener, Notice, RunStarted
from memx.engine.executors.build import build_executor
from memx.engine.executors.contract import Executor
from memx.engine.judges.contract import Judge
from memx.engine.last_run import write_last_run
from memx.engine.lazy_embedder import lazy_embedder
from memx.engine.manifest import build_manifest
from memx.engine.redaction import HIDDEN, redact_options, redact_text
from memx.engine.settings import RunSettings
from memx.engine.store.reader import Store
from memx.engine.store.writer import RunWriter
from memx.engine.summary import Summary, summarize
from memx.engine.workshop import Task, Workshop
from memx.errors import AdapterError, MemxError, UsageError
from memx.llm.failures import shown_url
from memx.llm.models import Models
from memx.model import Case, Decider

#: How long an interrupted run waits for questions under way, in seconds: replies that are about to come are paid for,
#: and a server that hangs must not hold the exit.
GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Parts:
    """The built parts of a run: what the settings' names stand for.

    Attributes:
        control: arm and key, where the run is a control of others; kept in its manifest.
    """

    dataset: Dataset
    adapter: type[MemoryAdapter]
    judge: Judge
    answerer: Answerer
    total: int | None
    slice_reasons: tuple[str, ...] = ()
    errata: Mapping[str, Any] | None = None
    model_rung: AsksModel | None = None
    control: Mapping[str, str] | None = None
    models: Models | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. ``complete`` is False when some question has no verdict because something failed."""

    run_id: str
    state: str
    summary: Summary
    complete: bool


class Runner:
    """One run in one directory.

    Args:
        settings: what to do; of a resumed run, its stored settings.
        parts: dataset, adapter class, judge, answerer.
        directory: where ``memx.db`` lives.
        listener: told of everything that happens.
        resume: id of the stored run to go on with; None starts a new one.
        stop: set from outside to end the run as an interrupt would.
    """

    def __init__(
        self,
        settings: RunSettings,
        parts: Parts,
        directory: Path,
        *,
        writer: RunWriter,
        listener: Listener = lambda event: None,
        resume: bool = False,
        stop: threading.Event | None = None,
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._directory = directory
        self._writer = writer
        self._resume = resume
        self._stop = stop or threading.Event()
        self._listener = listener
        self._telling = threading.Lock()
        self._fatal: list[BaseException] = []
        self._left: list[str] = []
        self._gone: list[str] = []

    def run(self) -> Ended:
        """Run to the end, or to the interrupt; what was finished is stored either way.

        Raises:
            MemxError: the run cannot start, or the store cannot be written any more.
        """
        facts = self._preflight()
        shop = self._shop()
        info = self._parts.dataset.info
        executor = build_executor(shop, (info.name, info.version))
        run_id, done = self._begin(facts)
        self._tell(RunStarted(run_id, self._parts.total, len(done)))
        # Bounded, so that a large dataset is read no faster than it is worked off.
        tasks: queue.Queue[Task | None] = queue.Queue(maxsize=executor.side_by_side)
        workers = [
            threading.Thread(target=self._work, args=(tasks, executor), daemon=True, name=f"case-{n}")
            for n in range(executor.side_by_side)
        ]
        for worker in workers:
            worker.start()
        interrupted = self._feed(tasks, workers, done)
        executor.close()
        if shop.pool is not None:
            shop.pool.shutdown(wait=False, cancel_futures=True)
        return self._end(run_id, interrupted)

    # ------------------------------------------------------------------------------------------------------------ start

    def _preflight(self) -> Mapping[str, Any]:
        """Fail before anything is ingested: judge, answer model and adapter are tried once."""
        self._parts.judge.preflight()
        self._parts.answerer.preflight()
        adapter_class, settings = self._parts.adapter, self._settings
        name = adapter_class.name or adapter_class.__name__
        thread = AdapterThread(name, self._stop)

        def start() -> Mapping[str, Any]:
            try:
                adapter = adapter_class(**self._adapter_options())
            except TypeError as error:
                message = f"adapter '{name}' does not take these options: {error}"
                raise UsageError(message, f"memx adapters show {name} lists them.") from error
            try:
                adapter.models = self._parts.models
                told = adapter.describe()
            except BaseException:
                with suppress(Exception):
                    adapter.close()
                raise
            try:
                adapter.close()
            except Exception as error:
                raise AdapterError(f"{name}.close() failed: {type(error).__name__}: {words_of(error)}") from error
            if not isinstance(told, Mapping):
                raise AdapterError(f"{name}.describe() returned {type(told).__name__}", "It must return a mapping.")
            return {str(key): value for key, value in told.items()}

        try:
            return thread.call("start", settings.ready_timeout, start)
        except StepError as failed:
            error = failed.error
            if isinstance(error, MemxError):
                raise error from None
            said = redact_text(f"{type(error).__name__}: {words_of(error)}")
            raise AdapterError(f"adapter '{name}' cannot start: {said}") from None
        finally:
            thread.end()

    def _adapter_options(self) -> dict[str, Any]:
        known = {"dataset_sha256": self._parts.dataset.info.sha256}
        return {name: v for name, v in known.items() if name in self._parts.adapter.OPTIONS} | dict(
            self._settings.adapter_options
        )

    def _begin(self, adapter_facts: Mapping[str, Any]) -> tuple[str, set[str]]:
        settings, parts, writer = self._settings, self._parts, self._writer
        if self._resume:
            writer.reopen()
            store = Store(self._directory)
            try:
                return writer.run_id, store.done_questions(writer.run_id)
            finally:
                store.close()
        manifest = build_manifest(
            settings,
            parts.dataset.info,
            parts.adapter,
            parts.judge,
            parts.slice_reasons,
            adapter_facts,
            self._conformance(adapter_facts),
        )
        if parts.control:
            manifest["control"] = dict(parts.control)
        stored = replace(
            settings,
            adapter_options=redact_options(settings.adapter_options, secret_names(parts.adapter.OPTIONS)),
            base_url=HIDDEN if shown_url(settings.base_url) != settings.base_url else settings.base_url,
        )
        writer.begin(
            dataset=parts.dataset.info.name,
            adapter=parts.adapter.name or settings.adapter,
            judge=parts.judge.name,
            settings=stored.as_dict(),
            manifest=manifest,
        )
        if parts.total is not None:
            writer.set_question_total(parts.total)
        return writer.run_id, set()

    def _conformance(self, adapter_facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """The last result of ``memx adapters check`` in this directory; one that failed is told."""
        from memx.adapters.conformance.record import adapter_key, last_result

        adapter = self._parts.adapter
        version = str(adapter_facts.get("version") or adapter.version)
        found = last_result(self._directory, adapter_key(adapter, version, self._settings.adapter_options))
        for name, why in (found or {}).get("failed", {}).items():
            self._tell(Notice(f"the adapter fails its conformance check {name}: {why}"))
        return found

    # ------------------------------------------------------------------------------------------------------------- work

    def _feed(self, tasks: queue.Queue[Task | None], workers: list[threading.Thread], done: set[str]) -> bool:
        """Hand out the cases and wait for the workers; True when the user interrupted."""
        interrupted = False
        try:
            for task in self._tasks(done):
                while not self._stop.is_set():
                    try:
                        tasks.put(task, timeout=0.2)
                        break
                    except queue.Full:
                        continue
            for _ in workers:
                self._put_end(tasks)
            while any(worker.is_alive() for worker in workers) and not self._stop.is_set():
                time.sleep(0.02)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:  # the dataset broke half way; what was handed out is finished first
            self._fatal.append(error)
            for _ in workers:
                self._put_end(tasks)
            for worker in workers:
                worker.join()
        interrupted = interrupted or (self._stop.is_set() and not self._fatal)
        self._stop.set()
        deadline = time.monotonic() + GRACE_S
        try:
            for worker in workers:
                worker.join(max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:
            interrupted = True
        return interrupted

    def _put_end(self, tasks: queue.Queue[Task | None]) -> None:
        while not self._stop.is_set():
            try:
                tasks.put(None, timeout=0.2)
                return
            except queue.Full:
                continue

    def _tasks(self, done: set[str]) -> Iterator[Task]:
        place = 0
        for position, case in enumerate(self._parts.dataset.cases()):
            numbered = [(place + n, question) for n, question in enumerate(case.questions)]
            place += len(case.questions)
            questions = [(n, question) for n, question in numbered if question.question_id not in done]
            if questions:
                yield Task(case, position, questions)

    def _work(self, tasks: queue.Queue[Task | None], executor: Executor) -> None:
        hands = executor.hands()
        try:
            while not self._stop.is_set():
                try:
                    task = tasks.get(timeout=0.2)
                except queue.Empty:
                    continue
                if task is None:
                    return
                hands.run(task)
        except Exception as error:  # the store failed: nothing more can be kept, so nothing more is asked
            self._fatal.append(error)
            self._stop.set()
        finally:
            hands.close()

    def _shop(self) -> Workshop:
        cache = self._directory / "cache"
        return Workshop(
            settings=self._settings,
            adapter_class=self._parts.adapter,
            adapter_options=self._adapter_options(),
            cache_dir=cache,
            models=self._parts.models,
            writer=self._writer,
            judge=self._parts.judge,
            answerer=self._parts.answerer,
            embed=lazy_embedder(cache),
            errata=self._parts.errata,
            model_rung=self._parts.model_rung,
            namespace=self._namespace,
            listener=self._tell,
            stop=self._stop,
            pool=self._model_pool(),
            left=self._left,
            gone=self._gone,
        )

    def _model_pool(self) -> ThreadPoolExecutor | None:
        """Threads for answers and verdicts, so that one case's questions are asked of a model side by side."""
        parts = self._parts
        asks = parts.judge.decider is Decider.MODEL or isinstance(parts.answerer, ModelAnswerer)
        if not asks and parts.model_rung is None:
            return None
        return ThreadPoolExecutor(self._settings.model_concurrency, thread_name_prefix="models")

    def _namespace(self, case: Case, attempt: int) -> str:
        if self._parts.adapter.shares_entity_ids:
            return case.entity_id
        prefix = self._settings.entity_prefix or f"memx-{self._writer.run_id}"
        again = f"-{attempt}" if attempt > 1 and not self._settings.entity_prefix else ""
        return f"{prefix}-{_slug(case.entity_id)}{again}"

    def _tell(self, event: Event) -> None:
        with self._telling:
            self._listener(event)

    # -------------------------------------------------------------------------------------------------------------- end

    def _end(self, run_id: str, interrupted: bool) -> Ended:
        state = "failed" if self._fatal else "interrupted" if interrupted else "finished"
        store = Store(self._directory)
        self._tell_what_is_left()
        try:
            counts = self._parts.models.summary() if self._parts.models else None
            summary = summarize(store, run_id, counts, judge_stats(self._parts.judge), self._left, self._gone)
            self._writer.end(state, summary.as_dict())
            write_last_run(store, run_id)
            complete = summary.passed + summary.failed > 0 and not store.has_errors(run_id)
        except MemxError:
            if self._fatal:
                raise self._fatal[0] from None
            raise
        finally:
            store.close()
            self._writer.close()
        if self._fatal:
            raise self._fatal[0]
        return Ended(run_id, state, summary, complete)

    def _tell_what_is_left(self) -> None:
        self._left.sort()
        if self._left:
            name = self._parts.adapter.name or self._settings.adapter
            more = "" if len(self._left) == 1 else f" to {self._left[-1]}"
            hint = "" if self._settings.cleanup else "; memx run --cleanup deletes them at the end"
            self._tell(Notice(f"left in {name}: {len(self._left)} namespaces, {self._left[0]}{more}{hint}"))


def judge_stats(judge: Judge) -> dict[str, float | None] | None:
    """How often a judge model agreed with itself, where it was asked more than once."""
    stats = getattr(judge, "stats", None)
    if stats is None or (stats.agreement is None and stats.flip_rate is None):
        return None
    return {"agreement": stats.agreement, "flip_rate": stats.flip_rate}


def new_run_id() -> str:
    """A run id that sorts by time and that no other process makes: ``20260131-142501-3fa9``."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _slug(text: str) -> str:
    """Letters, digits, ``_`` and ``-`` only, which every memory system takes; a hash keeps changed ids apart."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:48].strip("-")
    if slug == text:
        return slug
    return f"{slug}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
