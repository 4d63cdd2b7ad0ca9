"""Tables of MZmine and MS-DIAL are known by their headers; their rows are bytes."""

from pathlib import Path

import pytest

from mzseek.annotation.writing.features.table import FeatureTable
from mzseek.errors import InputError

MZMINE = b"row ID,row m/z,row retention time,a.mzML Peak area,\n17,195.0877,1.02,1234.5,\n"
FULL = b"id,rt,mz,charge\r\n17,1.02,195.0877,1\r\n"
MSDIAL = (
    b"\t\t\tClass\tA\n\t\t\tFile type\tSample\n\t\t\tInjection order\t1\n\t\t\tBatch ID\t1\n"
    b"Alignment ID\tAverage Rt(min)\tAverage Mz\tMetabolite name\ta\n"
    b'17\t1.02\t195.0877\t5"-x\t1234\n'
)


@pytest.fixture
def table(tmp_path: Path):
    def opened(data: bytes) -> FeatureTable:
        path = tmp_path / "table"
        path.write_bytes(data)
        return FeatureTable(path)

    return opened


@pytest.mark.parametrize(
    ("data", "name", "places", "before"),
    [(MZMINE, "MZmine", (0, 1), 0), (FULL, "MZmine", (0, 2), 0), (MSDIAL, "MS-DIAL", (0, 2), 4),
     (MZMINE.replace(b",", b";"), "MZmine", (0, 1), 0),
     (b"\xef\xbb\xbf" + MZMINE, "MZmine", (0, 1), 0)],
)  # fmt: skip
def test_headers_tell_the_form(table, data, name, places, before) -> None:
    found = table(data)
    assert (found.form.name, (found.id, found.mz), found.before) == (name, places, before)
    rows = list(found.rows())
    assert b"".join(row.text + row.end for row in rows) == data
    assert rows[-1].cells[found.id] == "17"


def test_quoted_cells_run_on_over_lines(table) -> None:
    data = MZMINE + b'18,200.1,2.0,"two\nlines, and ""marks""",\n19,1.0,2.0,3'
    rows = list(table(data).rows())
    assert [row.cells[0] for row in rows[1:]] == ["17", "18", "19"]
    assert rows[2].cells[3] == 'two\nlines, and "marks"'
    assert b"".join(row.text + row.end for row in rows) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"feature,smiles\n1,C\n", "is no table of features"),
        (b"row ID,row m/z,row ID\n1,2,1\n", "is no table of features"),
        (MZMINE.decode().encode("utf-16"), "UTF-16"),
        (b"\x00\x01\x02", "is not a text file"),
        (b"row ID,row m/z\n1," + b"2" * 2_000_000 + b"\n", "longer than"),
    ],
)
def test_other_files_are_refused_with_one_line(table, data: bytes, reason: str) -> None:
    with pytest.raises(InputError) as error:
        list(table(data).rows())
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
