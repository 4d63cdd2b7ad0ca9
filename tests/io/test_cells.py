import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.io.text_tables import cell_text, cell_texts, list_cell, text_cell, visible

# Names as a database has them: white space is single blanks inside.
NAMES = (
    (st.text(max_size=20) | st.text("'=+-@;\\ ab", max_size=12))
    .map(lambda text: " ".join(visible(text).split()))
    .filter(bool)
)


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
def test_no_cell_begins_as_a_formula_does(mark: str) -> None:
    for text in (f"{mark}cmd|' /C calc'!A0", f"\t{mark}1", f"\r\n{mark}1", f" {mark}1"):
        assert text_cell(text)[0] == "'"
        assert cell_text(text_cell(text)) == text.strip()


@pytest.mark.parametrize("text", ["2-propanol", "(-)-menthol", "'t Hooft", "a=b", "caffeine", ""])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert text_cell(text) == text
    assert cell_text(text) == text


@given(text=st.text(max_size=40))
def test_a_cell_is_one_line_and_holds_no_control_character(text: str) -> None:
    cell = text_cell(text)
    assert len(cell.splitlines()) <= 1
    assert not any(ord(mark) < 32 or 127 <= ord(mark) < 160 for mark in cell)
    assert "\t" not in cell
    cell.encode("utf-8")


def test_control_characters_become_marks() -> None:
    assert visible("\x1b[31mred\x07\x9b2J\u202e\ud800") == "�[31mred��2J��"


@given(name=NAMES)
def test_names_come_back(name: str) -> None:
    assert cell_text(text_cell(name)) == name


@given(names=st.lists(NAMES, max_size=5))
def test_lists_of_names_come_back(names: list[str]) -> None:
    assert cell_texts(list_cell(names)) == names


@given(names=st.lists(NAMES, min_size=1, max_size=3), delimiter=st.sampled_from(",\t"))
def test_lists_come_back_from_a_file(names: list[str], delimiter: str) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerow([list_cell(names), "x"])
    ((cell, _),) = csv.reader(io.StringIO(written.getvalue()), delimiter=delimiter)
    assert cell_texts(cell) == names
