"""Cells keep what they are given, and nothing in them acts."""

import csv
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.export.tables import decimal, row, several, share, words
from mzseek.io.text_tables import cell_text, cell_texts

PAYLOADS = [
    "=HYPERLINK(\"http://x\",\"y\")", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1)",
    "\t=1+1", "a\tb", "two\nlines", "\r=1", "\x1b[31mred\x1b[0m", "\x9b2J", "\u202egnp.exe",
    "<script>alert(1)</script>", '"never closed', "＝1+1", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_acts(payload: str) -> None:
    cell = words(payload)
    assert cell[0] not in "=+-@＝\t\r\n"
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\ud800" for c in cell)
    assert next(csv.reader([row([cell, "next"])], "excel-tab"))[1:] == ["next"]


@pytest.mark.parametrize("number", ["-5", "+3.25", "17", "0"])
def test_numbers_stay_as_they_are(number: str) -> None:
    assert words(number) == number


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=30))
def test_text_comes_back(text: str) -> None:
    read = next(csv.reader([row([words(text), "x"])], "excel-tab"))
    assert cell_text(read[0]) == " ".join(text.split())


@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=9)))
def test_several_texts_come_back(texts: list[str]) -> None:
    read = next(csv.reader([row([several(texts), "x"])], "excel-tab"))
    assert cell_texts(read[0]) == texts


@given(st.floats())
def test_numbers_come_back_or_are_empty(value: float) -> None:
    for cell in (decimal(value, 4), share(value)):
        assert (cell == "") == (not math.isfinite(value))
        assert "nan" not in cell
    if math.isfinite(value):
        assert float(share(value)) == pytest.approx(value, rel=1e-5)
        assert float(decimal(value, 4)) == pytest.approx(value, abs=5e-5, rel=1e-12)


def test_a_cell_is_not_longer_than_spreadsheets_read() -> None:
    assert len(words("x" * 100_000)) == 32_000
