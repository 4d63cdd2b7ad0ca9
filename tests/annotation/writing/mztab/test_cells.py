"""Cells are never empty, and never more than one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.chem.adducts import known_adducts
from mzseek.export.mztab import adduct, line, location, number, param, several, text

PATTERN = r"\[\d*M([+-][\w\d]+)*\]\d*[+-]"


@given(st.text(st.characters(exclude_categories=[])))
def test_a_text_is_one_cell_and_one_element(value: str) -> None:
    cell = text(value)
    assert cell
    assert not set(cell) & set("|\t\n\r\v")
    assert cell[0] not in '=+-@"'


@given(st.floats())
def test_numbers_are_decimals_or_null(value: float) -> None:
    assert re.fullmatch(r"-?\d+\.\d{6}|null", number(value))


@given(st.text(), st.text())
def test_a_parameter_has_four_parts(name: str, value: str) -> None:
    part = r'"[^"]*"|[^,"\[\]]*'
    assert re.fullmatch(rf"\[MS, MS:1, ({part}), ({part})\]", param("MS", "MS:1", name, value))


@pytest.mark.parametrize("name", known_adducts())
def test_every_known_ion_is_written_with_its_charge(name: str) -> None:
    assert re.fullmatch(PATTERN, adduct(name))
    assert re.search(r"\][1-9][+-]$", adduct(name))


def test_lists_are_null_only_as_a_whole() -> None:
    assert several(["a", "null"]) == "a|null"
    assert several(["null", "null"]) == several([]) == "null"


def test_files_are_uris() -> None:
    assert location("/data/my run.mgf") == "file:///data/my%20run.mgf"
    assert location("https://example.org/a b") == "https://example.org/a%20b"
    assert location(" ") == "null"


def test_no_line_has_an_empty_cell() -> None:
    assert line(["SML", "", "1"]) == "SML\tnull\t1\n"
