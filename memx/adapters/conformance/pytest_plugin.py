"""The fixture that memx brings to pytest; the class is in ``memx.adapters.conformance.testing``.

def test_conformance(check_adapter):
    check_adapter(lambda: MyMemory(url="http://localhost:8000"), skip=["paging"])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memx.adapters.conformance.report import Report


@pytest.fixture
def check_adapter() -> Callable[..., Report]:
    """``memx.adapters.conformance.check_adapter``, which here fails the test with every check that failed."""

    def check(*given: Any, **how: Any) -> Report:
        # Imported here, so that a test run which never asks pays nothing for memx being installed.
        from memx.adapters.conformance import Outcome, check_adapter

        report = check_adapter(*given, **how)
        broken = [f"{r.name}: {r.demands} But: {r.why}" for r in report.results if r.outcome is Outcome.FAIL]
        assert not broken, "\n".join(broken)
        return report

    return check
