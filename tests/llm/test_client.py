"""The client against a real server on loopback: faults, adapting, cache, caps, and what never leaks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from memx.errors import (
    BudgetReached,
    ContextTooLongError,
    Interrupted,
    ModelError,
    QuotaError,
    UnreadableReply,
    UsageError,
)
from memx.llm.cache import MemoryCache
from memx.llm.gate import Wait
from memx.llm.reading import read_verdict
from tests.fake_openai import FakeOpenAI
from tests.llm.fixtures import KEY, FastClock, ask, models


def test_a_reply_and_its_usage_are_counted() -> None:
    with FakeOpenAI("hello there") as server, models(server) as clients:
        completion = clients.llm("gpt-4o-mini").complete(ask(), purpose="answer", max_tokens=20)
        usage = clients.ledger.usage("answer")
    assert (completion.text, completion.cached, completion.truncated) == ("hello there", False, False)
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 1, 3)
    assert usage.cost == pytest.approx((1 * 0.15 + 3 * 0.60) / 1e6)
    sent = server.requests[0]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("gpt-4o-mini", 20, 0.0)


@pytest.mark.parametrize(
    "fault", ["429", "429:none", "500", "503", "408", "409", "drop", "cut", "garbled", "error", "empty"]
)
def test_every_passing_fault_is_retried(fault: str) -> None:
    with FakeOpenAI("fine", faults=[fault, fault]) as server, models(server) as clients:
        assert clients.llm("m").complete(ask(), purpose="judge").text == "fine"
        usage = clients.ledger.usage()
    assert len(server.requests) == 3
    # An empty reply was given, and billed; the others were not.
    assert (usage.calls, usage.retries) == ((3, 0) if fault == "empty" else (1, 2))


def test_an_empty_reply_after_many_faults_is_still_asked_again() -> None:
    with FakeOpenAI("fine", faults=["500"] * 7 + ["empty", "empty", "500"]) as server, models(server) as clients:
        assert clients.llm("m").complete(ask(), purpose="judge").text == "fine"


def test_a_server_that_asks_for_no_wait_is_not_hammered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memx.llm.retries.PATIENCE_S", 30.0)
    with FakeOpenAI(faults=lambda _: "429:0") as server, models(server) as clients:
        with pytest.raises(ModelError, match="asks to wait"):
            clients.llm("m").complete(ask(), purpose="judge")
        assert len(server.requests) < 30


def test_a_hanging_server_is_timed_out_and_asked_again() -> None:
    with FakeOpenAI("fine", faults=["hang"]) as server, models(server, timeout_s=0.2) as clients:
        assert clients.llm("m").complete(ask(), purpose="judge").text == "fine"


def test_retry_after_is_obeyed_and_said() -> None:
    clock, waits = FastClock(), list[Wait]()
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    with (
        FakeOpenAI("fine", faults=["429:42", f"429:{later}"]) as server,
        models(server, clock=clock, waits=waits) as clients,
    ):
        clients.llm("m").complete(ask(), purpose="judge")
    assert clock.now() >= 1000 + 42 + 80
    assert waits[0].seconds == pytest.approx(42)
    assert "429" in waits[0].reason
    assert "127.0.0.1" in waits[0].endpoint


def test_rate_limits_alone_do_not_use_up_the_attempts() -> None:
    with FakeOpenAI("fine", faults=["429:1"] * 20) as server, models(server) as clients:
        assert clients.llm("m").complete(ask(), purpose="judge").text == "fine"


def test_a_daily_limit_ends_the_asking() -> None:
    with FakeOpenAI(faults=["429:7200"]) as server, models(server) as clients:
        with pytest.raises(ModelError, match=r"asks to wait 7200 s.*[Rr]esume"):
            clients.llm("m").complete(ask(), purpose="judge")
        with pytest.raises(ModelError, match="7200"):
            clients.llm("m").complete(ask("another"), purpose="judge")
    assert len(server.requests) == 1


def test_a_server_that_stays_down_is_given_up_and_then_left_alone() -> None:
    with FakeOpenAI(faults=lambda _: "500") as server, models(server) as clients:
        for number in range(8):
            with pytest.raises(ModelError, match="500"):
                clients.llm("m").complete(ask(str(number)), purpose="judge")
    assert len(server.requests) == 5 * 10  # five calls of ten attempts, then the gate is closed


@pytest.mark.parametrize("fault", ["401", "402", "403", "quota"])
def test_key_and_credit_refusals_close_the_gate(fault: str) -> None:
    with FakeOpenAI(faults=["", fault]) as server, models(server) as clients:
        llm = clients.llm("m")
        llm.complete(ask("0"), purpose="judge")
        for number in (1, 2, 3):
            with pytest.raises(QuotaError):
                llm.complete(ask(str(number)), purpose="judge")
    assert len(server.requests) == 2


def test_refused_parameters_are_adapted_once_and_remembered() -> None:
    def refuse(_: int) -> str:
        return next(refusals, "")

    refusals = iter(["temperature", "max_tokens"])
    with FakeOpenAI("fine", faults=refuse) as server, models(server) as clients:
        for number in range(3):
            clients.llm("o-model").complete(ask(str(number)), purpose="judge", max_tokens=50)
    assert len(server.requests) == 5
    assert all("temperature" not in body and body["max_completion_tokens"] == 50 for body in server.requests[2:])


def test_a_model_without_a_system_role_gets_its_text_in_the_first_message() -> None:
    messages = [{"role": "system", "content": "Be brief."}, *ask("Who?")]
    with FakeOpenAI("fine", faults=["system"]) as server, models(server) as clients:
        clients.llm("m").complete(messages, purpose="judge")
    assert server.requests[1]["messages"] == [{"role": "user", "content": "Be brief.\n\nWho?"}]


def test_threads_that_meet_a_refusal_together_all_adapt() -> None:
    with (
        FakeOpenAI("fine", faults=lambda _: "temperature") as server,
        models(server) as clients,
        ThreadPoolExecutor(8) as pool,
    ):
        done = list(pool.map(lambda n: clients.llm("o").complete(ask(str(n)), purpose="judge").text, range(24)))
    assert done == ["fine"] * 24


def test_a_reply_starved_of_tokens_is_asked_with_more() -> None:
    with FakeOpenAI("fine", faults=["starved", "starved"]) as server, models(server) as clients:
        clients.llm("m").complete(ask(), purpose="judge", max_tokens=100)
        clients.llm("m").complete(ask("next"), purpose="judge", max_tokens=100)
    # What the model was found to need is asked for at once from then on.
    assert [body["max_tokens"] for body in server.requests] == [100, 400, 1600, 1600]


def test_an_endless_empty_reply_is_unreadable() -> None:
    with FakeOpenAI("  ") as server, models(server) as clients, pytest.raises(UnreadableReply, match="empty"):
        clients.llm("m").complete(ask(), purpose="judge")


def test_too_long_a_context_is_said_with_its_size_and_not_retried() -> None:
    told = r"8192.*about 1,004 tokens.*--context-budget"
    with (
        FakeOpenAI(faults=["context"]) as server,
        models(server) as clients,
        pytest.raises(ContextTooLongError, match=told),
    ):
        clients.llm("m").complete(ask("word" * 1000), purpose="answer")
    assert len(server.requests) == 1


# ---------------------------------------------------------------------------------------------------- cache and votes


def test_a_cached_reply_costs_nothing_and_salts_tell_votes_apart() -> None:
    cache = MemoryCache()
    with FakeOpenAI("fine") as server:
        for asked in (2, 2):
            with models(server, cache=cache) as clients:
                llm = clients.llm("gpt-4o")
                texts = [llm.complete(ask(), purpose="judge", salt=salt).text for salt in ("", "", "vote 2")]
                usage = clients.ledger.usage()
            assert texts == ["fine"] * 3
            assert len(server.requests) == asked
    assert (usage.calls, usage.cached, usage.cost) == (0, 3, 0.0)


def test_equal_questions_asked_at_once_are_paid_for_once() -> None:
    with (
        FakeOpenAI("fine", latency_s=0.05) as server,
        models(server, cache=MemoryCache()) as clients,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda _: clients.llm("m").complete(ask(), purpose="judge"), range(8)))
    assert len(server.requests) == 1


def test_an_unreadable_reply_is_asked_again_with_a_reminder_and_only_the_readable_one_is_kept() -> None:
    cache = MemoryCache()
    with FakeOpenAI('{"verdict": "PASS"}', faults=["prose", "prose"]) as server, models(server, cache=cache) as clients:
        verdict, completion = clients.llm("m").ask(ask("judge"), read_verdict, purpose="judge", reminder="JSON only.")
        again, cached = clients.llm("m").ask(ask("judge"), read_verdict, purpose="judge", reminder="JSON only.")
    assert verdict.passed and again.passed
    assert not completion.cached and cached.cached
    assert len(server.requests) == 3
    assert server.requests[0]["messages"] == ask("judge")
    assert server.requests[1]["messages"][-1]["content"].endswith("JSON only.")
    assert len(cache) == 1


def test_a_reply_that_stays_unreadable_keeps_its_text_and_is_not_cached() -> None:
    cache = MemoryCache()
    with (
        FakeOpenAI("I could not say.") as server,
        models(server, cache=cache) as clients,
        pytest.raises(UnreadableReply) as caught,
    ):
        clients.llm("m").ask(ask(), read_verdict, purpose="judge")
    assert caught.value.reply == "I could not say."
    assert len(cache) == 0
    assert len(server.requests) == 7


# --------------------------------------------------------------------------------------------------------------- caps


def test_the_cap_on_calls_holds_under_concurrency() -> None:
    with FakeOpenAI("fine", latency_s=0.01) as server, models(server, max_calls=10) as clients:

        def one(number: int) -> str:
            try:
                return clients.llm("m").complete(ask(str(number)), purpose="judge").text
            except BudgetReached:
                return "over"

        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(one, range(40)))
    assert texts.count("fine") == len(server.requests) == 10


def test_the_cap_on_cost_is_never_overrun() -> None:
    with FakeOpenAI("word " * 40) as server, models(server, max_cost=0.0005) as clients:
        with pytest.raises(BudgetReached, match=r"\$0\.0005.*--max-cost"):
            for number in range(100):
                clients.llm("gpt-4o-mini").complete(ask(str(number)), purpose="judge", max_tokens=60)
        cost = clients.ledger.usage().cost
    assert cost is not None
    assert 0.0004 < cost <= 0.0005


def test_a_cap_on_cost_needs_a_price_and_unknown_cost_is_not_zero() -> None:
    with FakeOpenAI("fine") as server:
        with models(server, max_cost=1.0) as clients, pytest.raises(UsageError, match="no price for model 'own-model'"):
            clients.llm("own-model").preflight()
        with models(server) as clients:
            clients.llm("own-model").complete(ask(), purpose="judge")
            assert clients.summary()["cost"] is None
    with FakeOpenAI("fine", faults=["no-usage"]) as server, models(server) as clients:
        clients.llm("gpt-4o").complete(ask(), purpose="judge")
        assert clients.summary()["cost"] is None


# --------------------------------------------------------------------------------------------------- stopping, leaking


def test_a_stop_ends_waiting_calls_and_makes_no_new_ones() -> None:
    stop = threading.Event()
    with FakeOpenAI("fine", faults=["429:500"]) as server, models(server, stop=stop) as clients:
        clients.endpoint.gate.clock = _Stopping(stop)
        for text in ("a", "b"):
            with pytest.raises(Interrupted):
                clients.llm("m").complete(ask(text), purpose="judge")
    assert len(server.requests) == 1


class _Stopping(FastClock):
    """The run is stopped during the first wait."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self._stop = stop

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        self._stop.set()
        super().wait(condition, seconds)


def test_the_key_is_in_no_error_repr_cache_or_reply(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    cache = MemoryCache()
    seen: list[str] = []
    with FakeOpenAI(f"you sent {KEY}", key=KEY) as server:
        with models(server, cache=cache) as clients:
            seen.append(clients.llm("m").complete(ask(), purpose="judge").text)
            seen += [repr(clients), repr(clients.llm("m")), repr(clients.endpoint), repr(clients.settings)]
        with models(server, key=KEY + "-wrong") as clients, pytest.raises(QuotaError) as caught:
            clients.llm("m").preflight()
    seen += [str(caught.value), repr(caught.value), repr(caught.value.__cause__), json.dumps(cache._kept), caplog.text]
    assert seen[0] == "you sent [key]"
    assert not [text for text in seen if KEY in text or KEY[:12] in text]


def test_nothing_heavy_is_imported_before_a_model_is_asked() -> None:
    modules = "memx.llm.models, memx.engine.answers.model, memx.engine.judges.model"
    code = f"import sys, {modules}; print(*[m for m in ('openai', 'httpx2', 'pydantic', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
