"""What is wrong with key, model or address is said in one line before a run begins."""

from __future__ import annotations

import socket

import pytest

from memx.errors import ModelError, QuotaError, UsageError
from memx.llm.cache import MemoryCache
from memx.llm.models import Models, ModelSettings
from tests.fake_openai import FakeOpenAI
from tests.llm.fixtures import KEY, FastClock, ask, models


def told(server: FakeOpenAI | None = None, *, model: str = "m", key: str = KEY, base_url: str = "") -> str:
    """The message of a failed preflight."""
    with models(server, key=key, base_url=base_url) as clients, pytest.raises(ModelError) as caught:
        clients.llm(model).preflight()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    assert caught.value.exit_code == 3
    return text


def test_all_is_well_and_asked_once() -> None:
    with FakeOpenAI() as server, models(server) as clients:
        for _ in range(3):
            clients.llm("m").preflight()
    assert len(server.requests) == 1


def test_it_holds_for_the_next_run_with_the_same_key() -> None:
    cache = MemoryCache()
    with FakeOpenAI() as server:
        for key, asked in ((KEY, 1), (KEY, 1), ("another-key", 2)):
            with models(server, cache=cache, key=key) as clients:
                clients.llm("m").preflight()
            assert len(server.requests) == asked
    assert KEY not in str(cache._kept)


@pytest.mark.parametrize("faults", [["429"], ["500", "500"], ["empty"], ["starved"], ["prose"], ["temperature"]])
def test_passing_faults_and_odd_replies_do_not_fail_it(faults: list[str]) -> None:
    with FakeOpenAI(faults=faults) as server, models(server) as clients:
        clients.llm("m").preflight()


def test_no_key() -> None:
    with Models(ModelSettings(), environ={}) as clients, pytest.raises(QuotaError, match="OPENAI_API_KEY"):
        clients.llm("gpt-4o-mini").preflight()
    with FakeOpenAI(key=KEY) as server:
        assert "wants an API key and none is set" in told(server, key="")


def test_a_local_server_needs_no_key() -> None:
    with FakeOpenAI() as server, models(server, key="") as clients:
        clients.llm("m").preflight()


def test_wrong_key() -> None:
    with FakeOpenAI(key="another") as server:
        message = told(server)
    assert "refuses the API key (401)" in message
    assert KEY not in message


def test_unknown_model() -> None:
    with FakeOpenAI(models=["right"]) as server:
        message = told(server, model="wrong")
    assert "no model 'wrong'" in message


def test_no_credit() -> None:
    with FakeOpenAI(faults=["quota"]) as server:
        assert "no credit left" in told(server)


def test_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "cannot be reached" in told(base_url=f"http://127.0.0.1:{port}/v1")


def test_base_url_without_v1() -> None:
    with FakeOpenAI() as server:
        message = told(base_url=server.base_url.removesuffix("/v1"))
    assert "404" in message
    assert f"{server.base_url}" in message


@pytest.mark.parametrize("address", ["html", "redirect"])
def test_a_web_page_instead_of_an_api(address: str) -> None:
    with FakeOpenAI(faults=["html"]) as server:
        page = server.base_url.removesuffix("/v1") + "/page" if address == "redirect" else ""
        assert "answers with a web page" in told(server, base_url=page)


def test_a_base_url_that_is_no_address() -> None:
    with pytest.raises(UsageError, match="no http"):
        Models(ModelSettings(base_url="localhost:8000/v1"), environ={})


def test_credentials_in_the_address_are_not_shown() -> None:
    with FakeOpenAI(faults=["401"]) as server:
        address = server.base_url.replace("http://", "http://user:s3cret-word@")
        assert "s3cret" not in told(base_url=address)


def test_where_address_and_key_come_from() -> None:
    environ = {"OPENAI_BASE_URL": "http://openai.test/v1", "OPENAI_API_KEY": "a-key"}
    with FakeOpenAI() as server, Models(environ={**environ, "MEMX_BASE_URL": server.base_url}) as clients:
        clients.llm("m").preflight()
        assert server.log.headers[0]["authorization"] == "Bearer a-key"
    with FakeOpenAI() as server:
        settings = ModelSettings(base_url=server.base_url)
        with Models(settings, environ={**environ, "MEMX_BASE_URL": "http://x.test", "MEMX_API_KEY": "mine"}) as clients:
            clients.llm("m").preflight()
        assert server.log.headers[0]["authorization"] == "Bearer mine"


def test_limits_come_from_the_environment_too() -> None:
    environ = {"MEMX_MODEL_TIMEOUT": "7.5", "MEMX_REQUESTS_PER_MINUTE": "2", "MEMX_API_KEY": KEY}
    clock = FastClock()
    with FakeOpenAI() as server, Models(ModelSettings(server.base_url), environ=environ, clock=clock) as clients:
        for number in range(3):
            clients.llm("m").complete(ask(str(number)), purpose="judge")
        assert clients.endpoint.timeout_s == 7.5
    assert clock.now() >= 1060
    for name, value in (("MEMX_MODEL_TIMEOUT", "soon"), ("MEMX_TOKENS_PER_MINUTE", "0"), ("MEMX_MODEL_TIMEOUT", "-1")):
        with pytest.raises(UsageError, match=r"MEMX_|timeout"):
            Models(environ={name: value})
