"""What models charge: the table that comes with memx, and the user's own on top of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from memx.errors import InputError

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{4}|\d{8})$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """US dollars for the given tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table with its date. A model that it does not name has no price, which is not a price of 0."""

    models: Mapping[str, Price]
    as_of: str = ""

    def of(self, model: str) -> Price | None:
        """The price of a model; a dated snapshot (``gpt-4o-2024-08-06``) costs what its family costs."""
        name = model.lower()
        for candidate in (name, _SNAPSHOT.sub("", name)):
            # Routers put the vendor in front: "openai/gpt-4o".
            for key in (candidate, candidate.removeprefix("openai/")):
                if key in self.models:
                    return self.models[key]
        return None


def load_prices(path: Path | None = None) -> Prices:
    """The shipped table, with the models of the file at ``path`` replacing or adding to it.

    The file is JSON: ``{"models": {NAME: {"input": X, "output": Y}}}``, US dollars per million tokens.

    Raises:
        InputError: the file is missing, no JSON, or a price is no number of 0 or more.
    """
    shipped = json.loads(files("memx.llm").joinpath("prices.json").read_text(encoding="utf-8"))
    models = _table(shipped, "prices.json")
    as_of = str(shipped["as_of"])
    if path is None:
        return Prices(models, as_of)
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", "MEMX_PRICES names a price file.", path=path) from None
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", path=path) from None
    return Prices({**models, **_table(own, path)}, f"{as_of}, changed by {path.name}")


def _table(content: Any, path: object) -> dict[str, Price]:
    form = 'Write {"models": {"NAME": {"input": 0.15, "output": 0.60}}}, in dollars per million tokens.'
    rows = content.get("models") if isinstance(content, dict) else None
    if not isinstance(rows, dict):
        raise InputError("holds no price table", form, path=path)
    table = {}
    for name, row in rows.items():
        values = [row.get(side) for side in ("input", "output")] if isinstance(row, dict) else []
        prices = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(prices) != 2 or not all(0 <= price < float("inf") for price in prices):
            raise InputError("has no input and output price of 0 or more", form, path=path, place=str(name))
        table[str(name).lower()] = Price(*prices)
    return table
