import csv
import gzip
import io
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import InputError
from mzseek.io import open_source, text_lines
from mzseek.io.text_tables import (
    MAX_ROW,
    bounded_lines,
    cell_text,
    cell_texts,
    find_column,
    format_names,
    header_names,
    list_cell,
    normalise_name,
    open_table,
    require_text,
    split_row,
    table_rows,
    text_cell,
    visible,
)


def rows_of(text: str, delimiter: str = ",", width: int = 2):
    """Rows, and skipped lines."""
    skipped: list[tuple[int, str]] = []

    def skip(number: int, reason: str) -> None:
        skipped.append((number, reason))

    lines = bounded_lines(text_lines(io.BytesIO(text.encode())), skip)
    return list(table_rows(lines, delimiter, width, skip)), skipped


def by_csv(text: str, delimiter: str) -> list[str] | None:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


@pytest.mark.parametrize("delimiter", ["\t", ";", ","])
@given(text=st.text('ab" ,;\t', min_size=1, max_size=30))
def test_rows_are_cut_as_pythons_csv_cuts_them(delimiter: str, text: str) -> None:
    assert split_row(text, delimiter) == by_csv(text, delimiter)


@given(cells=st.lists(st.text(max_size=20), min_size=2, max_size=6), lines=st.integers(1, 3))
def test_what_is_written_is_read(cells: list[str], lines: int) -> None:
    # Line ends of other kinds are turned into \n, and blank lines left out, before rows are cut.
    cells = ["\n".join(cell.replace("\r", "").split("\n")) for cell in cells]
    cells = ["" if not cell.strip() else cell.replace("\n", " \n.") for cell in cells]
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([cells] * lines)
    rows, skipped = rows_of(written.getvalue(), ",", len(cells))
    assert skipped == []
    assert [row for _, row in rows] == [cells] * lines


def test_long_cells_are_read_without_touching_the_csv_modules_limit() -> None:
    long = "x" * 200_000
    before = csv.field_size_limit()
    rows, skipped = rows_of(f'a,{long}\n"b","{long}"\nc,d\n')
    assert [len(cells[1]) for _, cells in rows] == [200_000, 200_000, 1]
    assert skipped == []
    assert csv.field_size_limit() == before


def test_a_row_past_the_bound_is_skip_alone() -> None:
    for size in (MAX_ROW + 1, 9_000_000):  # the second comes in several pieces
        rows, skipped = rows_of(f"a,b\nc,{'x' * size}\nd,e\n")
        assert [cells for _, cells in rows] == [["a", "b"], ["d", "e"]]
        assert skipped == [(2, "is longer than 1,000,000 characters")]


def test_quotes_that_are_never_closed_cost_one_row_each() -> None:
    text = "".join(f'"open {n},x\n' for n in range(300))
    rows, skipped = rows_of(text + "good,1\n")
    assert [cells for _, cells in rows][-1] == ["good", "1"]
    assert {reason for _, reason in skipped} == {"has a quotation mark that is not closed"}
    assert len(rows) + len(skipped) == 301


def test_a_name_that_two_columns_have_is_refused_with_their_places() -> None:
    with pytest.raises(InputError, match=r"^t: columns 1 \('smiles'\) and 3 \('SMILES'\) have"):
        find_column("t", ["smiles", "x", " SMILES"], ["smiles"])
    with pytest.raises(
        InputError, match=r"columns 1 .*, 2 .*, 3 .*, 4 .* and 6 more have one name"
    ):
        find_column("t", ["smiles"] * 10, ["smiles"])
    with pytest.raises(InputError, match="columns 2"):
        find_column("t", ["smiles", "a", "a"], ["a"], exact=True)


def test_a_header_of_too_many_columns_is_refused() -> None:
    assert find_column("t", ["x"] * 9_999 + ["smiles"], ["smiles"]) == 9_999
    with pytest.raises(InputError, match="has 10,001 columns, expected at most 10,000"):
        find_column("t", ["x"] * 10_001, ["smiles"])


@pytest.mark.parametrize("line", ['"open,x', '"' * 4_001, '"a"b,c', '""' * 2_000 + '"'])
def test_many_rows_of_quotation_marks_take_no_long_time(line: str) -> None:
    size = 20_000_000 // len(line) if len(line) > 100 else 30_000
    began = time.monotonic()
    rows, skipped = rows_of(f"{line}\n" * size)
    assert len(rows) + len(skipped) <= size
    assert time.monotonic() - began < 20


def test_names_that_are_not_asked_for_may_repeat() -> None:
    names = ["x", "smiles", "x", "canonical_smiles", "Canonical SMILES", "", ""]
    assert find_column("t", names, ["smiles", "canonicalsmiles"]) == 1
    assert find_column("t", names, ["inchi"]) is None
    assert find_column("t", names, [""]) is None
    assert find_column("t", ["smiles", "SMILES"], ["SMILES"], exact=True) == 1
    with pytest.raises(InputError):
        find_column("t", names, ["canonicalsmiles"])


@pytest.mark.parametrize("delimiter", ["\t", ";", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_of_any_delimiter_and_encoding(
    tmp_path: Path, delimiter: str, encoding: str
) -> None:
    text = f'#Größe{delimiter}"the {delimiter} name"\r\n\r\n1{delimiter}"a ""b"""\r\n'
    for pack in (bytes, gzip.compress):
        (tmp_path / "t").write_bytes(pack(text.encode(encoding)))
        source = open_source(tmp_path / "t")
        table = open_table(source, lambda names: names[0] == "Größe")
        assert table is not None
        assert table.names == ["Größe", f"the {delimiter} name"]
        assert list(table.rows(print)) == [(3, ["1", 'a "b"'])]


def test_a_table_of_one_column(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mass\n1\n2,5\n")
    table = open_table(open_source(tmp_path / "t"), lambda names: names == ["mass"])
    assert table is not None
    assert list(table.rows(print)) == [(2, ["1"]), (3, ["2,5"])]


def test_what_is_no_such_table(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(" \n\n")
    assert open_table(open_source(tmp_path / "t"), lambda names: True) is None
    (tmp_path / "t").write_text("a,b\n")
    assert open_table(open_source(tmp_path / "t"), lambda names: False) is None
    (tmp_path / "t").write_text("x" * (MAX_ROW + 1))
    with pytest.raises(InputError, match="line 1: is longer than 1,000,000 characters"):
        open_table(open_source(tmp_path / "t"), lambda names: True)
    (tmp_path / "t").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="is not a text file; expected a table"):
        require_text(open_source(tmp_path / "t"), "expected a table")


def test_names_for_messages() -> None:
    assert header_names("a;b") == ["a", "b"]
    assert header_names('"never closed;b') == ['"never closed;b']
    assert format_names(["a\x1b"] * 14).endswith("'a\\x1b' and 2 more")
    assert normalise_name("Exact Mass (Da)") == "exactmassda"


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


@given(name=NAMES)
def test_names_come_back(name: str) -> None:
    assert cell_text(text_cell(name)) == name


@given(names=st.lists(NAMES, max_size=3), delimiter=st.sampled_from(",\t"))
def test_lists_come_back_from_a_file(names: list[str], delimiter: str) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerow([list_cell(names), "x"])
    ((cell, _),) = csv.reader(io.StringIO(written.getvalue()), delimiter=delimiter)
    assert cell_texts(cell) == names
