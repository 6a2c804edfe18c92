"""Which edge ended which, from times alone."""

from __future__ import annotations

from datetime import UTC, datetime

from memx.adapters.validity import Validity, successors
from memx.model import FactStatus

MARCH, JUNE, NOW = datetime(2024, 3, 4), datetime(2024, 6, 21, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


def edge(name: str, fact: str, relation: str = "LIVES_IN", target: str = "", **times: datetime) -> Validity:
    return Validity(name, fact, ("lena", target or name), relation, **times)


OLD = edge("graz", "Lena lives in Graz", valid_at=MARCH, invalid_at=JUNE, created_at=NOW, expired_at=NOW)


def test_of_several_that_begin_then_the_one_of_the_same_relation_counts() -> None:
    linz = edge("linz", "Lena moved to Linz", valid_at=JUNE, created_at=NOW)
    job = edge("job", "Lena works in Graz now and lives well", "WORKS_IN", valid_at=JUNE, created_at=NOW)
    other = Validity("tom", "Tom lives in Linz", ("tom", "wels"), "LIVES_IN", valid_at=JUNE, created_at=NOW)
    assert successors([job, other, OLD, linz]) == {"graz": "linz"}
    assert successors([job, OLD]) == {"graz": "job"}


def test_an_end_that_was_only_told_or_that_nobody_marks_has_no_successor() -> None:
    told = edge("graz", "Lena lived in Graz until June", valid_at=MARCH, invalid_at=JUNE, created_at=NOW)
    linz = edge("linz", "Lena moved to Linz", valid_at=JUNE, created_at=NOW)
    late = edge("linz", "Lena moved to Linz", valid_at=JUNE, created_at=datetime(2026, 2, 1, tzinfo=UTC))
    assert successors([told, linz]) == successors([OLD, late]) == successors([OLD]) == {}


def test_a_fact_is_active_until_its_end() -> None:
    assert OLD.status(NOW) is FactStatus.INVALIDATED
    lease = edge("lease", "The lease runs", valid_at=MARCH, invalid_at=JUNE)
    assert lease.status(datetime(2024, 5, 1, tzinfo=UTC)) is FactStatus.ACTIVE
    assert lease.status(NOW) is FactStatus.INVALIDATED
