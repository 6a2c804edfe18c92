"""The price table and the token estimate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memx.errors import InputError
from memx.llm.prices import Price, load_prices
from memx.llm.tokens import estimate_messages, estimate_tokens


def test_snapshots_and_routed_names_cost_what_their_family_costs() -> None:
    prices = load_prices()
    assert prices.of("gpt-4o-mini-2024-07-18") == prices.of("openai/gpt-4o-mini") == Price(0.15, 0.60)
    assert prices.of("gpt-4o-mini-turbo") is None
    assert prices.as_of


def test_own_prices_add_and_replace(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"models": {"gpt-4o": {"input": 1, "output": 2}, "Local": {"input": 0, "output": 0}}}))
    prices = load_prices(path)
    assert prices.of("gpt-4o") == Price(1, 2)
    assert prices.of("local") == Price(0, 0)
    assert prices.of("gpt-4.1") is not None
    assert Price(1, 2).cost(1_000_000, 500_000) == 2.0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read"),
        ("{", "no JSON"),
        ("[]", "no price table"),
        ('{"models": {"x": {"input": -1, "output": 1}}}', "x: has no input and output price"),
        ('{"models": {"x": {"input": NaN, "output": 1}}}', "x: has no input"),
        ('{"models": {"x": 3}}', "x: has no input"),
    ],
)
def test_a_broken_price_file_is_named(tmp_path: Path, content: str | None, told: str) -> None:
    path = tmp_path / "prices.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=told) as caught:
        load_prices(path)
    assert str(path) in str(caught.value)


def test_estimates() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("four") == 1
    assert estimate_tokens("fives") == 2
    assert estimate_tokens("日本語") == 3
    assert estimate_messages([{"role": "user", "content": "four"}]) == 5
