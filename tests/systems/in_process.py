"""What the tests of systems that run in this process share: their model on loopback, faults of it, conformance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from memx.adapters.conformance import check_adapter
from memx.adapters.contract import MemoryAdapter
from memx.errors import AdapterError
from memx.memory.embedding import minilm
from memx.model import Session, Turn
from tests.fake_openai import FakeOpenAI
from tests.memory_llm import memory_server
from tests.systems.hosted import MARCH, sessions

#: A system as a function of the model's address and of options.
Make = Callable[..., MemoryAdapter]
#: Faults of the model and the words by which the error must name each.
MODEL_FAULTS = {
    "429:0.01": r"rate limit \(429\)",
    "401": r"refused \(401\)",
    "500": r"failed inside \(500\)",
    "hang": "no answer in time",
    "prose": "cut off or no JSON",
    "empty": "cut off or no JSON",
}


def check_model_faults(make: Make, faults: Mapping[str, str]) -> None:
    """Every fault of the model in the second session is one clear error that says what is stored and what to do; the
    store holds what it held before.
    """
    for fault, words in faults.items():
        now = [""]
        with memory_server(faults=partial(lambda now, _: now[0], now)) as server:
            adapter = make(llm_base_url=server.base_url, llm_retries=0, llm_timeout=0.5)
            first, second = sessions()
            adapter.ingest_session(first)
            before = adapter.export_state("case-1").facts
            now[0] = fault
            with pytest.raises(AdapterError, match=words) as caught:
                adapter.ingest_session(second)
            assert "0 of 2 turns of session june, after 1 whole sessions" in str(caught.value) and caught.value.hint
            assert adapter.export_state("case-1").facts == before
            adapter.close()


def check_a_passing_fault(make: Make, fault: str) -> None:
    """One failed request is made again and nothing is lost."""
    with memory_server(faults=[fault]) as server:
        adapter = make(llm_base_url=server.base_url, llm_retries=1)
        adapter.ingest_session(sessions()[0])
        assert adapter.export_state("case-1").facts
        adapter.close()


def check_a_reply_of_another_shape(make: Make) -> None:
    """JSON that is not what was asked for is asked for again, and then an error: nothing is stored in silence."""
    with FakeOpenAI('{"facts": ["Lena lives in Graz."]}', embed=minilm().embed) as server:
        adapter = make(llm_base_url=server.base_url, llm_retries=1)
        with pytest.raises(AdapterError, match=r"add turn march:1 failed: a reply that is cut off or no JSON"):
            adapter.ingest_session(sessions()[0])
        assert len(server.requests) == 2
        adapter.close()


def check_refused_content(make: Make) -> None:
    """A turn that the model refuses is named, and the others are stored; a model that takes nothing is an error."""
    now = [""]
    with memory_server(faults=lambda number: now[0]) as server:
        adapter = make(llm_base_url=server.base_url, llm_retries=0)
        march, june = sessions()
        adapter.ingest_session(march)
        before = adapter.export_state("case-1").facts
        now[0] = "context"
        adapter.ingest_session(june)
        assert adapter.export_state("case-1").facts == before
        notes = adapter.take_notes()
        assert len(notes) == 2 and "content was refused" in notes[0] and "maximum context length" in notes[0]
        with pytest.raises(AdapterError, match="maximum context length"):
            make(llm_base_url=server.base_url, llm_retries=0).ingest_session(march)
        adapter.close()


def check_unsendable_text(make: Make) -> None:
    """Text that has no UTF-8 form, as JSON escapes can bring it, and blank turns break nothing."""
    said = tuple(
        Turn(f"t{i}", "Lena", "user", text) for i, text in enumerate(("I own \ud800 a dog called Bo.", " \x00", ""))
    )
    with memory_server() as server:
        adapter = make(llm_base_url=server.base_url)
        adapter.ingest_session(Session("s", "case-1", said, MARCH))
        assert "called Bo" in " ".join(fact.content for fact in adapter.export_state("case-1").facts)
        adapter.query("Which \ud800 dog?", "case-1", 3)
        adapter.close()


def check_conformance(make: Make, *skip: str) -> None:
    """The conformance kit finds no fault."""
    with memory_server() as server:
        report = check_adapter(partial(make, llm_base_url=server.base_url), skip=skip)
    assert report.failed == (), [result for result in report.results if result.name in report.failed]
