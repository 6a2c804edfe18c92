"""Laying text out: nothing is lost, nothing is wider than the pane, nothing reaches a terminal that it would obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memx.text.gate import printable, safe
from memx.tui.document import Line, cells, draw, fit, plain, shortened
from memx.tui.pages.facts import compared
from tests.stores import HOSTILE

TEXTS = st.text() | st.sampled_from(HOSTILE[:6]) | st.text(alphabet="ab 漢é\u0301👩\u200d👧\n\t", max_size=200)


@given(TEXTS, st.integers(12, 90))
def test_a_drawn_paragraph_fits_and_keeps_every_letter(text: str, width: int) -> None:
    rows = ["".join(piece for piece, _ in row) for row in draw(Line(text, prefix="> "), width)]
    assert all(cells(row) <= width for row in rows)
    shown = "".join("".join(rows).split()).removeprefix(">")
    assert shown == "".join(safe(text, newlines=True).split())


@given(TEXTS, TEXTS, st.integers(12, 140))
def test_two_wordings_fit_and_keep_every_word(old: str, new: str, width: int) -> None:
    rows = ["".join(piece for piece, _ in row) for row in draw(compared(old, new, None), width)]
    assert all(cells(row) <= width for row in rows)
    signs = str.maketrans("", "", "[-]{+}| oldnew()mpty")
    kept = sorted("".join(rows).translate(signs).replace("\n", ""))
    wanted = sorted(safe(f"{old} {new}", newlines=True).translate(signs).replace("\n", ""))
    assert [char for char in kept if not char.isspace()] == [char for char in wanted if not char.isspace()]


def test_what_differs_is_marked_by_signs_beside_each_other_or_stacked() -> None:
    pair = compared("Ana lives in Porto since 2019", "Ana lives in Graz", None)
    wide, narrow = plain([pair], 100).splitlines(), plain([pair], 78).splitlines()
    assert [part.strip() for part in wide[1].split(" | ")] == [
        "Ana lives in [-Porto since 2019-]",
        "Ana lives in {+Graz+}",
    ]
    assert narrow == ["    old  Ana lives in [-Porto since 2019-]", "    new  Ana lives in {+Graz+}"]


@given(TEXTS, st.integers(1, 60), st.booleans())
def test_a_cell_is_exactly_as_wide_as_asked(text: str, width: int, right: bool) -> None:
    shown = fit(text, width, right)
    assert cells(shown) == width
    assert printable(shown)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_written_out(text: str) -> None:
    shown = plain([Line(text)], 80)
    assert printable(shown)
    assert "\x1b" not in shown


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert shortened("x" * 1_000, 100) == "x" * 100 + " … 900 more characters"
    assert shortened("x" * 1_000, None) == "x" * 1_000
