"""Feature tables are known by their headers; their rows are bytes."""

from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.export.feature_tables import FeatureTable

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


@pytest.mark.parametrize(
    ("data", "name", "id_", "mz", "ion", "neutral"),
    [
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
    *_, row = found.rows()
    assert found.form.name == name
    assert len(row.cells) == found.width
    assert (row.cells[found.id], row.cells[found.mz]) == (id_, mz)
    for place, cell in ((found.ion, ion), (found.neutral, neutral)):
        assert (None if place is None else row.cells[place]) == cell


def test_a_table_of_another_program_is_refused_with_what_it_has(table) -> None:
    with pytest.raises(InputError) as error:
        table(b"Peak,Mass,RT\n1,195.0877,1\n")
    said = str(error.value)
    assert "is no table of features: it begins with 'Peak', 'Mass', 'RT'; expected columns" in said
    for name in ("MZmine (row ID", "MS-DIAL (", "Progenesis QI (", "MetaboScape (", "XCMS ("):
        assert name in said


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
