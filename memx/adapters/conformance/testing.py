"""The conformance kit as a test class for pytest: one test per check.

from memx.adapters.conformance.testing import AdapterConformance

class TestMyMemory(AdapterConformance):
    adapter = MyMemory
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import pytest

from memx.adapters.conformance import Outcome, Report, check_adapter, check_names
from memx.adapters.contract import MemoryAdapter


class AdapterConformance:
    """Subclass it in a test file: each check of the kit becomes a test; those that do not apply are skipped with why.

    Class attributes:
        adapter: the adapter class.
        options: the options that it is built with.
        skip: names of checks to leave out, such as ``paging`` where each turn costs money.
        timeout_s: how long the adapter may take to become ready, in seconds.
    """

    adapter: ClassVar[type[MemoryAdapter]]
    options: ClassVar[Mapping[str, Any]] = {}
    skip: ClassVar[Collection[str]] = ()
    timeout_s: ClassVar[float] = 60.0

    def make(self) -> MemoryAdapter:
        """Build an instance; override it where that takes more than a class and options."""
        return self.adapter(**self.options)

    @pytest.fixture(scope="class")
    def conformance(self, request: pytest.FixtureRequest) -> Report:
        """The report of the kit, run once for all tests of the class."""
        return check_adapter(request.cls().make, skip=self.skip, timeout_s=self.timeout_s)

    @pytest.mark.parametrize("check", check_names())
    def test_check(self, conformance: Report, check: str) -> None:
        """One check of the kit."""
        result = next(result for result in conformance.results if result.name == check)
        if result.outcome is Outcome.NOT_APPLICABLE:
            pytest.skip(result.why)
        assert result.outcome is Outcome.PASS, f"{result.demands} But: {result.why}"
