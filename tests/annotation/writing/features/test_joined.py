"""All that was in a table stands as it did; annotations stand behind it."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.annotation.features import Feature
from mzseek.core.errors import InputError, RunError
from mzseek.export.feature_tables import COLUMNS, ion_conflict, join_features
from mzseek.export.output import Output
from mzseek.export.writer import Settings

MZMINE = (
    b"row ID,row m/z,row retention time,a.mzML Peak area,\n"
    b'17,195.0877,1.02,"=1+1, kept",\n18,200.1,2.0,\xff\xfe,\n\n19,3'
)


@pytest.fixture
def joined(tmp_path: Path):
    def join(data: bytes, *annotations, name: str = "table.csv") -> tuple[bytes, list[str]]:
        (tmp_path / name).write_bytes(data)
        said = join_features(tmp_path / name, annotations, tmp_path / "out.csv")
        return (tmp_path / "out.csv").read_bytes(), said

    return join


def test_own_cells_are_untouched_and_annotations_behind_them(joined, make_annotation) -> None:
    data, said = joined(MZMINE, make_annotation("17"), make_annotation("99"))
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


def test_msdial_keeps_its_preamble(joined, make_annotation) -> None:
    head = b"\t\t\tClass\tA\r\nAlignment ID\tAverage Rt(min)\tAverage Mz\tMetabolite name\ta\r\n"
    data, said = joined(
        head + b'17\t1.02\t195.0877\t5"-x\t9\r\n', make_annotation("17"), name="t.txt"
    )
    rows = [line.split(b"\t") for line in data.split(b"\r\n")]
    assert rows[0] == [*b"\t\t\tClass\tA".split(b"\t"), *[b""] * len(COLUMNS)]
    assert rows[1][5:] == [name.encode() for name in COLUMNS]
    assert rows[2][:5] == [b"17", b"1.02", b"195.0877", b'5"-x', b"9"]
    assert rows[2][5] == b"Caffeine"
    assert said == ["t.txt: 1 of 1 rows have an annotation"]


def test_rows_of_another_ion_and_twins_are_told(joined, make_annotation) -> None:
    _, said = joined(MZMINE, make_annotation("18"), make_annotation("18"))
    assert said[1:] == [
        "table.csv: 1 features have the name of one before them",
        "table.csv: 1 rows have another m/z than their feature (more than 0.05 apart): "
        "is it the table of these spectra?",
    ]


def test_rows_longer_than_the_header_stay_and_are_told(joined, make_annotation) -> None:
    data, said = joined(b"row ID,row m/z\n17,195.0877,1,2\n", make_annotation("17"))
    assert data.endswith(b"\n17,195.0877,1,2\n")
    assert said[-1] == "table.csv: 1 rows are longer than the header, not joined"


def test_a_table_that_was_joined_before_is_refused(joined, make_annotation, tmp_path: Path) -> None:
    data, _ = joined(MZMINE, make_annotation("17"))
    with pytest.raises(InputError, match="has a column mzseek_name already"):
        joined(data)
    assert (tmp_path / "out.csv").read_bytes() == data


def test_a_csv_needs_a_table(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="give --features"), Output(tmp_path / "a.csv", Settings()):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_has_the_table(tmp_path: Path, make_annotation) -> None:
    (tmp_path / "quant.csv").write_bytes(MZMINE)
    with Output(tmp_path / "out", Settings(features=tmp_path / "quant.csv")) as output:
        output.write(make_annotation("17"))
        assert output.finish()[0] == "quant.csv: 1 of 3 rows have an annotation"
    assert (tmp_path / "out/features.csv").read_bytes().startswith(b"row ID,row m/z,")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=50)  # fmt: skip
@given(st.text(st.characters(exclude_categories=[])) | st.sampled_from(["=1,2", 'a"b', "a;b\nc"]))
def test_no_name_breaks_a_row(joined, make_annotation, make_candidate, name: str) -> None:
    annotation = make_annotation("17", candidates=(make_candidate(name=name),))
    data, _ = joined(b"row ID,row m/z\n17,195.0877\n18,2\n", annotation)
    rows = list(csv.reader(data.decode("utf-8").splitlines()))
    assert [len(row) for row in rows] == [2 + len(COLUMNS)] * 3
    assert rows[1][2][:1] not in set("=@")
    assert rows[2][0] == "18"


PROGENESIS = (
    b',,,,,"Normalised abundance",\r\n,,,,,"Condition 1",\r\n'
    b'"Compound","Neutral mass (Da)","m/z","Charge","Retention time (min)","A_01","Adducts"\r\n'
    b'"0.46_195.0877m/z",,"195.087712","1","0.46","10",\r\n'
    b'"0.82_180.0634n","180.063388","203.052611","1","0.82","11","M+H, M+Na"\r\n'
)


@pytest.fixture
def named_annotation(make_annotation, make_candidate, make_peaks):
    """An annotation to a spectrum with fields as some program writes them."""

    def make(name: str, ion: str = "[M+H]+", mz: float = 195.0877, **metadata: str):
        spectrum = make_peaks(name, adduct=ion, precursor_mz=mz, metadata=metadata)
        annotation = make_annotation(
            name, candidates=(make_candidate(adduct=ion, name=f"{name} {ion}"),)
        )
        return replace(annotation, feature=Feature(name, "title", (spectrum,)))

    return make


def cells(data: bytes, column: str) -> list[str]:
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    header = next(row for row in rows if "mzseek_name" in row)
    place = header.index(column) - len(header)
    return [row[place] for row in rows[rows.index(header) + 1 :]]


def test_progenesis_joins_by_the_comment_of_its_msp(joined, named_annotation) -> None:
    """An identified compound is called by another name; of two ions the row's own is joined."""
    sugar = {"compound_name": "CSID8711 (Sugar)", "comment": "0.82_180.0634n"}
    data, said = joined(
        PROGENESIS,
        named_annotation("Unknown (0.46_195.0877m/z)"),
        named_annotation("CSID8711 (Sugar)", "[M+H]+", 181.0707, **sugar),
        named_annotation("CSID8711 (Sugar) #2", "[M+Na]+", 203.0526, **sugar),
    )
    assert cells(data, "mzseek_name") == [
        "Unknown (0.46_195.0877m/z) [M+H]+", "CSID8711 (Sugar) #2 [M+Na]+",
    ]  # fmt: skip
    assert cells(data, "mzseek_ion_conflict") == ["", ""]
    assert said == [
        "table.csv: 2 of 2 rows have an annotation",
        "table.csv: 1 features share a row with another that is nearer in m/z, and are not "
        "joined: CSID8711 (Sugar)",
    ]


def test_an_ion_of_a_compound_is_near_by_its_neutral_mass(joined, named_annotation) -> None:
    data, said = joined(PROGENESIS, named_annotation("0.82_180.0634n", "[M+H]+", 181.0707))
    assert cells(data, "mzseek_adduct") == ["", "[M+H]+"]
    assert said == ["table.csv: 1 of 2 rows have an annotation"]


METABOSCAPE = (
    b'"SHARED_NAME","FEATURE_ID","RT","PEPMASS","ADDUCT","MaxIntensity"\n'
    b"1,44,5.57,194.08037,ION=[M+H]+,2787.44\n2,63,5.78,180.06338,ION=[M+H+H]2+,26939.06\n"
    b"3,98,5.99,194.08037,ION=[M-H]-,57973.11\n"
)


def test_ions_that_differ_are_reported_and_in_a_column(joined, named_annotation) -> None:
    """MetaboScape writes neutral masses as PEPMASS, which is no other m/z."""
    data, said = joined(
        METABOSCAPE,
        named_annotation("44"),
        named_annotation("63", "[M+H]+", 181.07066),
        named_annotation("98", "[M+H]+", 195.0877),
    )
    assert cells(data, "mzseek_ion_conflict") == [
        "",
        "ion: table [M+2H]2+, annotation [M+H]+",
        "polarity: table [M-H]-, annotation [M+H]+",
    ]
    assert said == [
        "table.csv: 3 of 3 rows have an annotation",
        "table.csv: 2 of 3 annotated rows state another ion than the annotation used (1 of another "
        "polarity), see mzseek_ion_conflict; the first: row 63, ion: table [M+2H]2+, annotation "
        "[M+H]+",
    ]


@pytest.mark.parametrize("name", ["FT0017", "17"])
def test_xcms_numbers_are_found_with_and_without_their_letters(
    joined, named_annotation, name
) -> None:
    table = b'"","mzmed","rtmed"\n"FT0017",195.0877,61.2\n"FT0018",200.1,70\n'
    data, said = joined(table, named_annotation(name))
    assert cells(data, "mzseek_adduct") == ["[M+H]+", ""]
    assert said == ["table.csv: 1 of 2 rows have an annotation"]
    names = b"mzmed\trtmed\nFT0017\t195.0877\t61.2\n"  # row names under no header
    data, _ = joined(names, named_annotation(name), name="t.txt")
    header, row, _ = data.decode().split("\n")
    assert header.split("\t") == ["mzmed", "rtmed", *COLUMNS]
    assert row.split("\t")[:4] == ["FT0017", "195.0877", "61.2", f"{name} [M+H]+"]
    data, _ = joined(
        b"featureidx,mzmed,rtmed\n17,195.0877,61\n", named_annotation("FT0017", scans="17")
    )
    assert cells(data, "mzseek_adduct") == ["[M+H]+"]


def test_another_field_joins_only_where_the_mz_agrees(joined, named_annotation) -> None:
    _, said = joined(MZMINE, named_annotation("peak a", scans="18"))
    assert said[0] == "table.csv: 0 of 3 rows have an annotation"
    _, said = joined(MZMINE, named_annotation("peak a", scans="17"))
    assert said == ["table.csv: 1 of 3 rows have an annotation"]


@pytest.mark.parametrize(
    ("stated", "used", "conflict"),
    [
        ("", "[M+H]+", ""),
        ("caffeine", "[M+H]+", ""),  # MZmine's row identity may be a name
        ("[M+Xx]+", "[M+H]+", ""),  # not understood
        ("M+H", "[M+H]+", ""),
        ("[M+HCOOH-H]-", "[M+FA-H]-", ""),
        ("[M+H]+", "+", ""),
        ("[M+H]+", "", ""),
        ("[M+H]+", "-", "polarity: table [M+H]+, annotation -"),
        ("[M+Na]+; [M+K]+", "[M+H]+", "ion: table [M+Na]+ or [M+K]+, annotation [M+H]+"),
        ("[2M+H]+", "[M+H]+", "ion: table [2M+H]+, annotation [M+H]+"),
    ],
)
def test_ions_of_tables_are_compared(stated: str, used: str, conflict: str) -> None:
    assert ion_conflict(stated, used) == conflict
