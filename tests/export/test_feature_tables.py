"""All that was in a table stays as it was; annotations stand behind it."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzseek.annotation.feature_tables import FeatureTable
from mzseek.annotation.features import Feature
from mzseek.core.errors import InputError, RunError
from mzseek.export.feature_tables import COLUMNS, ion_conflict, join_features
from mzseek.export.output import Output
from mzseek.export.writer import Settings

MZMINE = b"row ID,row m/z,row retention time,a.mzML Peak area,\n17,195.0877,1.02,1234.5,\n"
FULL = b"id,rt,mz,charge\r\n17,1.02,195.0877,1\r\n"
MSDIAL = (
    b"\t\t\tClass\tA\n\t\t\tFile type\tSample\n\t\t\tInjection order\t1\n\t\t\tBatch ID\t1\n"
    b"Alignment ID\tAverage Rt(min)\tAverage Mz\tMetabolite name\ta\n"
    b'17\t1.02\t195.0877\t5"-x\t1234\n'
)
PROGENESIS = (
    b',,,,,"Normalised abundance","Raw abundance",,\r\n,,,,,"Condition 1","Condition 1",,\r\n'
    b'"Compound","Neutral mass (Da)","m/z","Charge","Retention time (min)","A_01","A_01",'
    b'"Accepted Compound ID","Adducts"\r\n'
    b'"0.29_313.9653n","313.965309666316","294.947468546316","1","0.291316666666667","1789.01",'
    b'"1789.01",,"M-H2O-H, M-H"\r\n'
)
METABOSCAPE = (
    b'"SHARED_NAME","FEATURE_ID","RT","PEPMASS","SIGMA_SCORE","NAME_METABOSCAPE",'
    b'"MOLECULAR_FORMULA","ADDUCT","KEGG","CAS","MaxIntensity","Hallertauer 1_01_2252"\n'
    b'18,50,39.01,132.05314,4.366,"L-Asparagine","C4H8N2O3",ION=[M+H]+,"C00152","70-47-3",1,2\n'
)
BUCKETS = (
    b"Bucket label,RT [min],m/z meas.,M meas.,Ions,Name,S1\n"
    b"39.01s : 133.0604m/z,0.65,133.0604,132.0531,[M+H]+,,7\n"
)
XCMS_CSV = (
    b'"","mzmed","mzmin","mzmax","rtmed","rtmin","rtmax","npeaks","ms_level"\n'
    b'"FT0003",84.9600,84.9591,84.9612,768.79,748.99,816.48,18,1\n'
)
XCMS_TABLE = (
    b"mzmed\tmzmin\tmzmax\trtmed\trtmin\trtmax\tnpeaks\ta.mzML\n"
    b"FT0003\t84.9600\t84.9591\t84.9612\t768.79\t748.99\t816.48\t18\tNA\n"
)
XCMS_GNPS = XCMS_TABLE.replace(b"mzmed", b"Row.names\tmzmed", 1)
XCMS_CAMERA = (
    b"mzmed\trtmed\trow ID\tannotation network number\tbest ion\ta.mzML\n"
    b"89.0597\t253.89\t15\t213\t[M+H]+\t8366.02\n"
)
XCMS_ONLINE = (
    b"featureidx\tname\tfold\tmzmed\tmzmin\tmzmax\trtmed\tisotopes\tadducts\ta\n"
    b"7\tM85T769\t1.4\t84.9600\t84.9591\t84.9612\t768.79\t\t[M+H]+ 83.95\t12\n"
)
MZMINE_IONS = b"row ID,row m/z,row retention time,best ion,a Peak area\n17,195.0877,1,[M+H]+,9\n"
MZMINE_FULL = b"id,mz,charge,rt,ion_identities:ion_identities\n17,195.0877,1,1.02,[M+H]+\n"
MSDIAL_IONS = b"Alignment ID\tAverage Mz\tAdduct type\n17\t195.0877\t[M+H]+\n"


@pytest.fixture
def table(tmp_path: Path):
    def opened(data: bytes) -> FeatureTable:
        path = tmp_path / "table"
        path.write_bytes(data)
        return FeatureTable(path)

    return opened


@pytest.mark.parametrize(
    ("data", "name", "id_", "mz", "ion", "neutral"),
    [
        (MZMINE, "MZmine", "17", "195.0877", None, None),
        (MZMINE.replace(b",", b";"), "MZmine", "17", "195.0877", None, None),
        (b"\xef\xbb\xbf" + MZMINE, "MZmine", "17", "195.0877", None, None),
        (FULL, "MZmine", "17", "195.0877", None, None),
        (MSDIAL, "MS-DIAL", "17", "195.0877", None, None),
        (PROGENESIS, "Progenesis QI", "0.29_313.9653n", "294.947468546316", "M-H2O-H, M-H",
         "313.965309666316"),
        (METABOSCAPE, "MetaboScape", "50", "132.05314", "ION=[M+H]+", "132.05314"),
        (BUCKETS, "MetaboScape", "39.01s : 133.0604m/z", "133.0604", "[M+H]+", "132.0531"),
        (XCMS_CSV, "XCMS", "FT0003", "84.9600", None, None),
        (XCMS_TABLE, "XCMS", "FT0003", "84.9600", None, None),
        (XCMS_GNPS, "XCMS", "FT0003", "84.9600", None, None),
        (XCMS_CAMERA, "XCMS", "15", "89.0597", "[M+H]+", None),
        (XCMS_ONLINE, "XCMS", "7", "84.9600", "[M+H]+ 83.95", None),
        (MZMINE_IONS, "MZmine", "17", "195.0877", "[M+H]+", None),
        (MZMINE_FULL, "MZmine", "17", "195.0877", "[M+H]+", None),
        (MSDIAL_IONS, "MS-DIAL", "17", "195.0877", "[M+H]+", None),
    ],
)  # fmt: skip
def test_columns_of_each_program(table, data, name, id_, mz, ion, neutral) -> None:
    found = table(data)
    *before, row = rows = list(found.rows())
    assert b"".join(row.text + row.end for row in rows) == data
    assert (found.form.name, found.header) == (name, len(before) - 1)
    assert len(row.cells) == found.width
    assert (row.cells[found.id], row.cells[found.mz]) == (id_, mz)
    for place, cell in ((found.ion, ion), (found.neutral, neutral)):
        assert (None if place is None else row.cells[place]) == cell


def test_a_table_of_another_program_is_refused_with_what_it_has(table) -> None:
    with pytest.raises(InputError, match="it begins with 'Peak', 'Mass', 'RT'; expected") as error:
        table(b"Peak,Mass,RT\n1,195.0877,1\n")
    for name in ("MZmine (row ID", "MS-DIAL (", "Progenesis QI (", "MetaboScape (", "XCMS ("):
        assert name in str(error.value)


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


JOINED_MZMINE = (
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
    data, said = joined(JOINED_MZMINE, make_annotation("17"), make_annotation("99"))
    lines, old = data.split(b"\n"), JOINED_MZMINE.split(b"\n")
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
    _, said = joined(JOINED_MZMINE, make_annotation("18"), make_annotation("18"))
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
    data, _ = joined(JOINED_MZMINE, make_annotation("17"))
    with pytest.raises(InputError, match="has a column mzseek_name already"):
        joined(data)
    assert (tmp_path / "out.csv").read_bytes() == data


def test_a_joined_table_needs_a_table(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="give --features"), Output(tmp_path / "a.txt", Settings()):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_has_the_table(tmp_path: Path, make_annotation) -> None:
    (tmp_path / "quant.csv").write_bytes(JOINED_MZMINE)
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


IONS = (
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
        IONS,
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
    data, said = joined(IONS, named_annotation("0.82_180.0634n", "[M+H]+", 181.0707))
    assert cells(data, "mzseek_adduct") == ["", "[M+H]+"]
    assert said == ["table.csv: 1 of 2 rows have an annotation"]


NEUTRAL = (
    b'"SHARED_NAME","FEATURE_ID","RT","PEPMASS","ADDUCT","MaxIntensity"\n'
    b"1,44,5.57,194.08037,ION=[M+H]+,2787.44\n2,63,5.78,180.06338,ION=[M+H+H]2+,26939.06\n"
    b"3,98,5.99,194.08037,ION=[M-H]-,57973.11\n"
)


def test_ions_that_differ_are_reported_and_in_a_column(joined, named_annotation) -> None:
    """MetaboScape writes neutral masses as PEPMASS, which is no other m/z."""
    data, said = joined(
        NEUTRAL,
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
    _, said = joined(JOINED_MZMINE, named_annotation("peak a", scans="18"))
    assert said[0] == "table.csv: 0 of 3 rows have an annotation"
    _, said = joined(JOINED_MZMINE, named_annotation("peak a", scans="17"))
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
