"""What adapters share: options, packages, calls, paging, readiness, provenance. No waiting: sleeps are recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memx.adapters.calls import Calls
from memx.adapters.failures import Kind, read_failure
from memx.adapters.options import Option, need, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages, wait_until
from memx.adapters.provenance import carried, parse_time, replaced, sources
from memx.errors import AdapterError, AdapterTimeoutError, UsageError
from memx.model import Fact, Session, Turn
from memx.text.secrets import hide

OPTIONS = {
    "url": Option("http://localhost:1", "the address", env="TEST_MEMORY_URL"),
    "api_key": Option("", "an API key", env=("TEST_MEMORY_KEY", "TEST_MEMORY_TOKEN"), secret=True),
    "pages": Option(100, least=1),
    "infer": True,
    "mode": Option("fast", choices=("fast", "deep")),
}
SESSION = Session(
    "s1",
    "e",
    (Turn("t1", "Ana", "user", "I moved."), Turn("t2", "", "assistant", "Where to?", datetime(2024, 1, 2))),
    datetime(2024, 1, 1),
)


class StatusError(Exception):
    def __init__(self, text: str, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.headers = headers or {}


class RateLimitError(Exception):
    """An SDK's own class that carries no status."""


class NetworkError(Exception):
    """An SDK's own class for every broken connection."""


class ReadTimeout(Exception):
    """As an HTTP library names it, no subclass of Python's own."""


class ValidationError(Exception):
    """As pydantic names a reply of another shape."""


class RemoteProtocolError(Exception):
    """As an HTTP library names a connection that was closed without an answer."""


def wrapping(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def work() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return work


# ------------------------------------------------------------------------------------------------------------- options


def test_options_come_from_what_is_given_then_the_environment_then_the_default(monkeypatch: Any) -> None:
    monkeypatch.setenv("TEST_MEMORY_TOKEN", "tok-of-the-environment")
    monkeypatch.setenv("TEST_MEMORY_URL", "http://elsewhere:2")
    read = read_options("test", OPTIONS, {"pages": "7", "infer": "off"})
    assert read == {
        "url": "http://elsewhere:2", "api_key": "tok-of-the-environment", "pages": 7, "infer": False, "mode": "fast",
    }  # fmt: skip
    assert read_options("test", OPTIONS, {"url": "http://given:3"})["url"] == "http://given:3"
    assert hide("401 for tok-of-the-environment") == "401 for ***"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pagse": "1"}, "Did you mean pages"),
        ({"pages": "0"}, "at least 1, not '0'"),
        ({"infer": "perhaps"}, "on or off"),
        ({"mode": "faast"}, "Did you mean fast"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_options("test", OPTIONS, given)


def test_a_missing_key_names_its_environment_variable_and_asks_for_no_key_on_the_command_line() -> None:
    values = read_options("test", OPTIONS, {})
    with pytest.raises(UsageError, match=r"needs an API key. Set TEST_MEMORY_KEY\.$"):
        need("test", OPTIONS, values, "api_key")


# ------------------------------------------------------------------------------------------------------------ packages


def test_a_missing_or_wrong_package_says_the_one_command() -> None:
    with pytest.raises(UsageError, match=r"no-such-memory, which is not installed. pip install 'memx\[zep\]'"):
        load_package("zep", "no_such_memory", "no-such-memory")
    with pytest.raises(UsageError, match=r"written for pytest 3\.\* or 4\.\*; .* pip install 'memx\[zep\]'"):
        load_package("zep", "pytest", "pytest", ("3", "4"))
    assert load_package("zep", "pytest", "pytest").__name__ == "pytest"


# --------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StatusError("slow down", 429), Kind.RATE_LIMIT),
        (RateLimitError("slow down"), Kind.RATE_LIMIT),
        (StatusError("no", 401), Kind.REFUSED),
        (StatusError("gone", 404), Kind.NOT_FOUND),
        (StatusError("oh", 502), Kind.SERVER),
        (StatusError("bad field", 422), Kind.REJECTED),
        (TimeoutError("read"), Kind.TIMEOUT),
        (ConnectionRefusedError(111, "refused"), Kind.DOWN),
        (ConnectionResetError(104, "reset"), Kind.SERVER),
        (json.JSONDecodeError("Expecting value", "{", 1), Kind.UNREADABLE),
        (ValueError("<!DOCTYPE html><html>login</html>"), Kind.UNREADABLE),
        (ValidationError("expected a dictionary, not '<html><body>Sign in</body>'"), Kind.UNREADABLE),
        (wrapping(NetworkError("request timed out"), ReadTimeout("read")), Kind.TIMEOUT),
        (StatusError('{"results": [', 200), Kind.UNREADABLE),
        (wrapping(NetworkError("gone"), RemoteProtocolError("no answer")), Kind.SERVER),
        (wrapping(NetworkError("gone"), ConnectionRefusedError(111, "refused")), Kind.DOWN),
        (NetworkError("gone"), Kind.DOWN),
        (PermissionError(13, "cannot write"), Kind.OTHER),
        (KeyError("facts"), Kind.OTHER),
    ],
)
def test_an_exception_of_any_client_is_sorted(error: Exception, kind: Kind) -> None:
    assert read_failure(error).kind is kind
    wrapped = RuntimeError("the client failed")
    wrapped.__cause__ = error
    assert read_failure(wrapped).kind is kind


def test_a_web_page_is_named_also_where_only_the_json_reader_saw_it() -> None:
    failure = read_failure(json.JSONDecodeError("Expecting value", "<html>Sign in</html>", 0))
    assert (failure.kind, failure.said) == (Kind.UNREADABLE, "a web page")


def test_a_read_is_repeated_and_the_server_s_wish_is_honoured() -> None:
    slept: list[float] = []
    calls = Calls("zep", sleep=slept.append)
    limited = StatusError("slow down", 429, {"retry-after": "7"})
    assert calls.read("search", failing(limited, StatusError("oh", 500))) == "done"
    assert slept[0] == 7 and len(slept) == 2 and 0 <= slept[1] <= 8


def test_a_longer_wait_than_one_has_time_for_is_an_error_at_once() -> None:
    slept: list[float] = []
    with pytest.raises(AdapterError, match="asks to wait 3600 s"):
        Calls("zep", sleep=slept.append).read("search", failing(StatusError("no", 429, {"retry-after": "3600"})))
    assert slept == []


@pytest.mark.parametrize(
    ("repeat", "error", "repeated"),
    [
        ("never", StatusError("wait", 429), False),
        ("refused", StatusError("wait", 429), True),
        ("refused", StatusError("oh", 500), False),
        ("always", StatusError("oh", 500), True),
        ("always", StatusError("no", 401), False),
    ],
)
def test_a_write_is_repeated_only_where_that_is_safe(repeat: Any, error: Exception, repeated: bool) -> None:
    calls = Calls("zep", sleep=lambda seconds: None)
    if repeated:
        assert calls.write("add", failing(error), repeat) == "done"
    else:
        with pytest.raises(AdapterError):
            calls.write("add", failing(error), repeat)


def test_an_error_says_the_step_what_was_stored_and_what_to_do() -> None:
    calls = Calls("zep", key="ZEP_API_KEY")
    calls.begin(SESSION)
    calls.end()
    calls.begin(SESSION)
    calls.stored()
    with pytest.raises(AdapterError) as caught:
        calls.write("add a message", failing(StatusError("bad key", 401)))
    message = "zep: add a message failed: refused (401): bad key; stored so far: 1 of 2 turns of session s1, "
    assert caught.value.message == message + "after 1 whole sessions"
    assert "ZEP_API_KEY" in caught.value.hint
    with pytest.raises(AdapterTimeoutError):
        calls.write("add a message", failing(TimeoutError("read timed out")))


# -------------------------------------------------------------------------------------------------------------- paging


def listing(*of: Page[int]) -> Callable[[Any], Page[int]]:
    return lambda cursor: of[cursor or 0]


def test_pages_bring_each_row_once() -> None:
    fetch = listing(Page([1, 2, 2], 1), Page([2, 3], 2), Page([], None, total=3))
    assert list(pages("zep", "memories", fetch, key=lambda row: row)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("fetch", "words"),
    [
        (listing(Page([1], 1), Page([2], 1)), "page 3 repeats its cursor '1'; 2 rows came so far"),
        (lambda cursor: Page([1, 2], (cursor or 0) + 1), "page 2 brings only rows that earlier pages held"),
        (lambda cursor: Page([], (cursor or 0) + 1), "is empty like those before it"),
        (listing(Page([1, 2], None, total=250)), "250 rows were promised; 2 rows came"),
    ],
)
def test_a_listing_that_cannot_be_whole_is_refused(fetch: Any, words: str) -> None:
    with pytest.raises(AdapterError, match=words):
        list(pages("zep", "memories", fetch, key=lambda row: row))


def test_waiting_names_what_is_outstanding() -> None:
    left = ["2 of 2 documents", "consolidation", ""]
    wait_until("zep", lambda: left.pop(0), 5, every_s=0.0)
    with pytest.raises(AdapterTimeoutError, match="not ready after 0 s: 1 of 2 documents"):
        wait_until("zep", lambda: "1 of 2 documents", 0)


# ---------------------------------------------------------------------------------------------------------- provenance


def test_a_turn_travels_in_flat_texts_and_comes_back() -> None:
    first = carried(SESSION, SESSION.turns[0])
    assert first == {
        "turn_id": "t1", "session_id": "s1", "speaker": "Ana", "role": "user", "said_at": "2024-01-01T00:00:00",
    }  # fmt: skip
    assert sources(first) == ("t1",) and sources(None) == () and sources({"source_turn_ids": ["a", "b"]}) == ("a", "b")
    assert carried(SESSION, SESSION.turns[1])["said_at"] == "2024-01-02T00:00:00"


def test_times_come_in_many_forms() -> None:
    wanted = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    for form in (wanted, "2024-01-02T03:04:05Z", wanted.timestamp(), int(wanted.timestamp() * 1000)):
        assert parse_time(form) == wanted
    assert parse_time("yesterday") is None and parse_time(None) is None and parse_time(1e300) is None


def test_a_replacement_is_marked_on_both_sides() -> None:
    old, new = replaced([Fact("old", "Berlin"), Fact("new", "Munich")], {"old": "new"})
    assert (old.status, new.supersedes, new.status) == ("superseded", ("old",), "active")
