"""All that was in a table stands as it did; annotations stand behind it."""

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.annotation.writing import Output, Settings
from mzseek.annotation.writing.features.joined import COLUMNS, join_features
from mzseek.errors import InputError, RunError

MZMINE = (
    b"row ID,row m/z,row retention time,a.mzML Peak area,\n"
    b'17,195.0877,1.02,"=1+1, kept",\n18,200.1,2.0,\xff\xfe,\n\n19,3'
)


@pytest.fixture
def joined(tmp_path: Path):
    def join(data: bytes, *answers, name: str = "table.csv") -> tuple[bytes, list[str]]:
        (tmp_path / name).write_bytes(data)
        said = join_features(tmp_path / name, answers, tmp_path / "out.csv")
        return (tmp_path / "out.csv").read_bytes(), said

    return join


def test_own_cells_are_untouched_and_annotations_behind_them(joined, make_answer) -> None:
    data, said = joined(MZMINE, make_answer("17"), make_answer("99"))
    lines, old = data.split(b"\n"), MZMINE.split(b"\n")
    assert [line.startswith(before) for line, before in zip(lines, old, strict=True)] == [True] * 5
    rows = list(csv.reader(data.decode("latin-1").splitlines()))
    assert rows[0] == ["row ID", "row m/z", "row retention time", "a.mzML Peak area", "", *COLUMNS]
    found = dict(zip(COLUMNS, rows[1][5:], strict=True))
    assert (found["mzseek_name"], found["mzseek_confidence"]) == ("Caffeine", "0.76")
    assert rows[1][3] == "=1+1, kept"
    assert rows[2][5:] == [""] * len(COLUMNS)
    assert rows[3] == []
    assert rows[4] == ["19", "3", "", "", "", *[""] * len(COLUMNS)]
    assert said == [
        "table.csv: 1 of 3 rows have an annotation",
        "table.csv: 1 features are in none of its rows: 99",
    ]


def test_msdial_keeps_its_preamble(joined, make_answer) -> None:
    head = b"\t\t\tClass\tA\r\nAlignment ID\tAverage Rt(min)\tAverage Mz\tMetabolite name\ta\r\n"
    data, said = joined(head + b'17\t1.02\t195.0877\t5"-x\t9\r\n', make_answer("17"), name="t.txt")
    rows = [line.split(b"\t") for line in data.split(b"\r\n")]
    assert rows[0] == [*b"\t\t\tClass\tA".split(b"\t"), *[b""] * len(COLUMNS)]
    assert rows[1][5:] == [name.encode() for name in COLUMNS]
    assert rows[2][:5] == [b"17", b"1.02", b"195.0877", b'5"-x', b"9"]
    assert rows[2][5] == b"Caffeine"
    assert said == ["t.txt: 1 of 1 rows have an annotation"]


def test_rows_of_another_ion_and_twins_are_told(joined, make_answer) -> None:
    _, said = joined(MZMINE, make_answer("18"), make_answer("18"))
    assert said[1:] == [
        "table.csv: 1 features have the name of one before them",
        "table.csv: 1 rows have another m/z than their feature (more than 0.05 apart): "
        "is it the table of these spectra?",
    ]


def test_rows_longer_than_the_header_stay_and_are_told(joined, make_answer) -> None:
    data, said = joined(b"row ID,row m/z\n17,195.0877,1,2\n", make_answer("17"))
    assert data.endswith(b"\n17,195.0877,1,2\n")
    assert said[-1] == "table.csv: 1 rows are longer than the header, not joined"


def test_a_table_that_was_joined_before_is_refused(joined, make_answer, tmp_path: Path) -> None:
    data, _ = joined(MZMINE, make_answer("17"))
    with pytest.raises(InputError, match="has a column mzseek_name already"):
        joined(data)
    assert (tmp_path / "out.csv").read_bytes() == data


def test_a_csv_needs_a_table(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="give --features"), Output(tmp_path / "a.csv", Settings()):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_has_the_table(tmp_path: Path, make_answer) -> None:
    (tmp_path / "quant.csv").write_bytes(MZMINE)
    with Output(tmp_path / "out", Settings(features=tmp_path / "quant.csv")) as output:
        output.write(make_answer("17"))
        assert output.finish()[0] == "quant.csv: 1 of 3 rows have an annotation"
    assert (tmp_path / "out/features.csv").read_bytes().startswith(b"row ID,row m/z,")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=50)  # fmt: skip
@given(st.text(st.characters(exclude_categories=[])) | st.sampled_from(["=1,2", 'a"b', "a;b\nc"]))
def test_no_name_breaks_a_row(joined, make_answer, make_candidate, name: str) -> None:
    answer = make_answer("17", candidates=(make_candidate(name=name),))
    data, _ = joined(b"row ID,row m/z\n17,195.0877\n18,2\n", answer)
    rows = list(csv.reader(data.decode("utf-8").splitlines()))
    assert [len(row) for row in rows] == [2 + len(COLUMNS)] * 3
    assert rows[1][2][:1] not in set("=@")
    assert rows[2][0] == "18"
