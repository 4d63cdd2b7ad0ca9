import csv
import gzip
import io
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mzseek.database import sources
from mzseek.database.formats.columns import one_line
from mzseek.database.record import MoleculeRecord
from mzseek.database.rows import RecordsAt, describe_records
from mzseek.database.sources import read_hmdb, read_molecules, read_pubchem
from mzseek.errors import InputError, MzseekError
from mzseek.files import open_source, text_lines

Rejects = list[tuple[str, str]]


def read(*paths: Path, **options) -> tuple[list[MoleculeRecord], Rejects]:
    rejects: Rejects = []
    records = list(read_molecules(paths, lambda w, r: rejects.append((w, r)), **options))
    return records, [(where.removeprefix(f"{paths[0]}: "), reason) for where, reason in rejects]


def read_as(path: Path, data: str | bytes, **options) -> tuple[list[MoleculeRecord], Rejects]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read(path, **options)


def shown(records: list[MoleculeRecord]) -> list[tuple[str, str, str]]:
    return [(record.text, record.identifier, record.name) for record in records]


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
TWO = [("c1ccccc1", "241", "benzene"), ("CCO", "702", "ethyl alcohol")]
SAME = {
    "a.tsv": "smiles\tcid\tname\nc1ccccc1\t241\tbenzene\nCCO\t702\tethyl alcohol\n",
    "a.csv": "Name,SMILES,CID\nbenzene,c1ccccc1,241\nethyl alcohol,CCO,702\n",
    "excel.csv": "\ufeffCID;Title;Canonical SMILES\r\n241;benzene;c1ccccc1\r\n"
    '702;"ethyl alcohol";CCO\r\n',
    "a.smi": "c1ccccc1\t241\tbenzene\nCCO\t702\tethyl alcohol\n",
    "headed.smi": "#smiles pubchem\nc1ccccc1\t241\tbenzene\nCCO\t702\tethyl alcohol\n",
    "CID-SMILES": "241\tc1ccccc1\tbenzene\n702\tCCO\tethyl alcohol\n",
    "old_mac.txt": "id\tstructure\tname\r241\tc1ccccc1\tbenzene\r702\tCCO\tethyl alcohol\r",
}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("name", SAME)
def test_tables_and_lists_plain_and_packed(tmp_path: Path, name: str, packing: str) -> None:
    path = tmp_path / (name + packing)
    records, rejects = read_as(path, PACKINGS[packing](SAME[name].encode()))
    assert (shown(records), rejects) == (TWO, [])
    has_header = name not in {"a.smi", "CID-SMILES"}
    assert [r.where for r in records] == [f"{path}: line {n + has_header}" for n in (1, 2)]
    assert {r.source for r in records} == {name.partition(".")[0]}
    assert not any(r.is_block for r in records)


def test_what_a_file_is_shows_in_its_content(tmp_path: Path) -> None:
    for name, text in SAME.items():
        assert shown(read_as(tmp_path / f"{name}.dat", text)[0]) == TWO
        assert shown(read_as(tmp_path / f"{name}.sdf.gz", text)[0]) == TWO


def test_lists_with_titles_of_one_word_or_more(tmp_path: Path) -> None:
    text = "CCO\n\n  CCN   CHEMBL25 \nCCC propane gas\nC[C@H](O)F |r,w:1.0| Z99\n"
    records, rejects = read_as(tmp_path / "a.smi", text)
    assert rejects == []
    assert shown(records) == [
        ("CCO", "", ""), ("CCN", "CHEMBL25", ""), ("CCC", "", "propane gas"),
        ("C[C@H](O)F", "Z99", ""),
    ]  # fmt: skip
    assert [r.where[-6:] for r in records] == ["line 1", "line 3", "line 4", "line 5"]


def test_a_list_with_bad_lines_is_still_a_list(tmp_path: Path) -> None:
    """They are left to whoever parses them."""
    records, rejects = read_as(tmp_path / "a.smi", "not-smiles\nCCO\nC1CC\n\n")
    assert [r.text for r in records] == ["not-smiles", "CCO", "C1CC"]
    assert rejects == []
    records, rejects = read_as(tmp_path / "b.tsv", "1\tCCO\n2\t\n3\n4\tCCN\n")
    assert shown(records) == [("CCO", "1", ""), ("CCN", "4", "")]
    assert rejects == [("line 2", "has no molecule"), ("line 3", "has no molecule")]


def test_several_files_in_the_order_given(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("z.smi", "release_5.0.gz", "a.tsv.zst")]
    paths[0].write_text("C\n")
    paths[1].write_bytes(gzip.compress(b"smiles,source\nCC,\nCCC,hmdb\n", mtime=0))
    paths[2].write_bytes(zstandard.ZstdCompressor().compress(b"1\tCCCC\n"))
    records, _ = read(*paths)
    assert [(r.text, r.source) for r in records] == [
        ("C", "z"), ("CC", "release_5.0"), ("CCC", "hmdb"), ("CCCC", "a"),
    ]  # fmt: skip
    records, _ = read(*paths, source="mine")
    assert [r.source for r in records] == ["mine", "mine", "hmdb", "mine"]
    assert read()[0] == []


def test_all_files_are_looked_into_first(tmp_path: Path) -> None:
    (tmp_path / "good.smi").write_text("CCO\n")
    with pytest.raises(InputError, match="no such file"):
        read_molecules([tmp_path / "good.smi", tmp_path / "absent.smi"], print)


def test_columns_by_preference(tmp_path: Path) -> None:
    text = "structure,inchikey,iupac_name,title,smiles,hmdb_id\np.png,XX,ethanol,EtOH,CCO,H1\n"
    assert shown(read_as(tmp_path / "a.csv", text)[0]) == [("CCO", "H1", "EtOH")]


TWINS = {
    "two of one name": ("smiles,smiles,name\nCCO,CCN,x\n", {}, "columns 1 .* and 2 .* one name"),
    "two spellings of it": (
        "SMILES;name;smiles\nCCO;x;CCN\n", {}, r"1 \('SMILES'\) and 3 \('smiles'\)"
    ),
    "of the one that is taken": (
        "name\tCanonical SMILES\tcanonical_smiles\nx\tCCO\tCCN\n", {}, "columns 2 .* and 3 "
    ),
    "two names": ("smiles,name,Name\nCCO,x,y\n", {}, "columns 2 .* and 3 "),
    "two identifiers": ("id,smiles,ID\n1,CCO,2\n", {}, "columns 1 .* and 3 "),
    "two sources": ("source,smiles,source\n1,CCO,2\n", {}, "columns 1 .* and 3 "),
    "two InChI": ("inchi,smiles,InChI\n1,CCO,2\n", {}, "columns 1 .* and 3 "),
    "two that the user named": ("a,mine,mine\n1,CCO,CCN\n", {"smiles": "mine"}, "2 .* and 3 "),
    "two that are meant": ("a,Mine,mine\n1,CCO,CCN\n", {"smiles": "MINE"}, "columns 2 .* and 3 "),
    "a list": ("smiles smiles\nCCO CCN\n", {}, "columns 1 .* and 2 "),
    "an export": (
        "smiles,formula,mass,key,sources,identifiers,names,names\nCCO,,,,,,x,y\n", {}, "7 .* and 8 "
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TWINS)
def test_a_header_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, case: str) -> None:
    text, columns, message = TWINS[case]
    with pytest.raises(InputError, match=message) as caught:
        read_as(tmp_path / "a.csv", text, columns=columns)
    assert str(caught.value).startswith(f"{tmp_path / 'a.csv'}: columns ")


def test_columns_that_are_not_read_may_repeat(tmp_path: Path) -> None:
    text = "note,smiles,note,isomeric_smiles,isomeric_smiles\na,CCO,b,C,C\n"
    assert shown(read_as(tmp_path / "a.csv", text)[0]) == [("CCO", "", "")]
    text = "smiles,SMILES,name\nC,CCO,x\n"  # of which the user says which
    assert shown(read_as(tmp_path / "a.csv", text, columns={"smiles": "SMILES"})[0]) == [
        ("CCO", "", "x")
    ]


def test_inchi_stands_in_for_smiles(tmp_path: Path) -> None:
    inchi = "InChI=1S/CH4/h1H4"
    records, _ = read_as(tmp_path / "a.tsv", f"name\tInChI\nmethane\t{inchi}\n")
    assert shown(records) == [(inchi, "", "methane")]
    records, rejects = read_as(
        tmp_path / "b.tsv", f"inchi\tsmiles\n{inchi}\tnan\n{inchi}\tC\n\tNA\n"
    )
    assert [r.text for r in records] == [inchi, "C"]
    assert rejects == [("line 4", "has no molecule")]
    for text in (f"{inchi} methane\n", f"inchi\n{inchi} methane\n"):
        assert shown(read_as(tmp_path / "c.txt", text)[0]) == [(inchi, "methane", "")]


def test_columns_named_by_the_user(tmp_path: Path) -> None:
    text = "smiles;My Smiles;ref;Bezeichnung;woher\nbad;CCO;7;Äthanol;Labor\n"
    named = {"smiles": "My Smiles", "id": "REF", "name": "Bezeichnung", "source": "woher"}
    records, _ = read_as(tmp_path / "a.csv", text, columns=named)
    assert shown(records) == [("CCO", "7", "Äthanol")]
    assert records[0].source == "Labor"
    with pytest.raises(
        InputError, match=r"no column is called 'Nom'; it has 'smiles', 'My Smiles'"
    ):
        read(tmp_path / "a.csv", columns={"name": "Nom"})
    with pytest.raises(InputError, match=r"no column is called 'SM'; it has 'smiles', 'My Smiles'"):
        read(tmp_path / "a.csv", columns={"smiles": "SM"})
    with pytest.raises(MzseekError, match=r"'mass' is unknown, expected smiles, inchi, id"):
        read(tmp_path / "a.csv", columns={"mass": "mw"})
    records, _ = read_as(tmp_path / "one.txt", "My Smiles\nCCO\n", columns={"smiles": "My Smiles"})
    assert [r.text for r in records] == ["CCO"]


def test_bad_rows_are_set_aside(tmp_path: Path) -> None:
    text = "smiles,name\nCCO\n,nothing\nCC,a,b\nC,methane,,\n\nCCC,propane\n"
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert [r.text for r in records] == ["C", "CCC"]  # empty cells beyond the last do no harm
    assert rejects == [
        ("line 2", "has 1 columns, expected 2"),
        ("line 3", "has no molecule"),
        ("line 4", "has 3 columns, expected 2"),
    ]
    assert records[-1].where.endswith("line 7")


def test_quotes(tmp_path: Path) -> None:
    text = 'name,smiles\n"butane, 2-methyl-",CCC(C)C\n"the ""best"" one","CC"\n5" rod,C\n'
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert [r.name for r in records] == ["butane, 2-methyl-", 'the "best" one', '5" rod']
    text = 'name\tsmiles\n"2""-O\tC\n3"-x\tCC\n"in ""marks"""\tCCC\n"two\nlines"\tCCCC\nz\tCO\n'
    records, rejects = read_as(tmp_path / "a.tsv", text)
    assert [r.name for r in records] == ['"2""-O', '3"-x', 'in "marks"', "two lines", "z"]
    assert [r.where[-1] for r in records] == ["2", "3", "4", "5", "7"]
    assert rejects == []


def test_a_quote_that_is_never_closed_costs_one_line(tmp_path: Path) -> None:
    rows = "".join(f"name {n},{'C' * n}\n" for n in range(1, 101))
    records, rejects = read_as(tmp_path / "a.csv", f'name,smiles\n"oops,CO\n{rows}')
    assert rejects == [("line 2", "has a quotation mark that is not closed")]
    assert [r.name for r in records] == [f"name {n}" for n in range(1, 101)]
    records, rejects = read_as(tmp_path / "b.csv", 'name,smiles\nx,CO\n"oops,CO\ny,CC\n')
    assert ([r.name for r in records], len(rejects)) == (["x", "y"], 1)


def test_a_cell_of_any_length_costs_its_row_at_most(tmp_path: Path) -> None:
    long = "x" * 200_000  # more than the csv module takes
    text = f'name,smiles\n"{long}",CCO\na,"{"C" * 200_000}"\n"{"y" * 3_000_000}",C\n"z",CC\n'
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert [(len(r.name), r.text[:3]) for r in records] == [(200_000, "CCO"), (1, "CCC"), (1, "CC")]
    assert rejects == [("line 4", "is longer than 1,000,000 characters")]
    records, rejects = read_as(tmp_path / "a.smi", f"CCO\n{'C' * 9_000_000}\nCCN\n")
    assert [r.text for r in records] == ["CCO", "CCN"]
    assert [reason for _, reason in rejects] == ["is longer than 1,000,000 characters"]


def test_what_mzseek_exports_keeps_its_lists(tmp_path: Path) -> None:
    text = (
        "smiles,formula,mass,key,sources,identifiers,names\n"
        "CCO,C2H6O,46.041865,LFQSCWFLJHTTHZ,a; b,a:1; b:2,'=cmd; ethanol\n"
    )
    [record], _ = read_as(tmp_path / "a.csv", text)
    assert record.is_listed
    table = describe_records(RecordsAt([record], 0), "maccs").table
    assert table["sources"].to_pylist() == [["a", "b"]]
    assert table["identifiers"].to_pylist() == [["a:1", "b:2"]]
    assert table["names"].to_pylist() == [["=cmd", "ethanol"]]
    [record], _ = read_as(tmp_path / "a.csv", text, columns={"name": "names"})
    assert (record.is_listed, record.name) == (False, "'=cmd; ethanol")


def test_encodings(tmp_path: Path) -> None:
    text = "name,smiles\r\nnaïve,CCO\r\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        records, rejects = read_as(tmp_path / "a.csv", text.encode(encoding))
        assert (shown(records), rejects) == ([("CCO", "", "naïve")], [])


# Control characters show a file to be no text.
CONTROLS = "".join(map(chr, [*range(9), *range(14, 27)]))
CELLS = st.text(st.characters(codec="utf-8", exclude_characters=CONTROLS), max_size=12)


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_a_table_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, delimiter: str, rows: list[tuple[str, str]]
) -> None:
    if delimiter == "\t":  # where a mark before the end of a line is taken for a prime
        rows = [(identifier, one_line(name)) for identifier, name in rows]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(["id", "smiles", "name"])
    writer.writerows([identifier, "CCO", name] for identifier, name in rows)
    records, rejects = read_as(tmp_path_factory.mktemp("table") / "a.txt", buffer.getvalue())
    assert rejects == []
    assert shown(records) == [("CCO", one_line(i), one_line(name)) for i, name in rows]


@given(data=st.binary(min_size=1, max_size=300))
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("junk") / "a"
    for content in (data, b"smiles,name\n" + data, b"M  END\n" + data, b"PAR1" + data):
        message = ""
        try:
            read_as(path, content)
        except InputError as error:
            message = str(error)
        assert not message or (message.startswith(str(path)) and "\n" not in message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"PK\x03\x04\0\0", "is not a text file; expected a table with a smiles column"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not a text file"),
        (b"caffeine\n", r"is no list of molecules \(it begins with 'caffeine'\); expected a table"),
        (b"name,weight\nx,1\n", "no column holds molecules; it has 'name', 'weight'; expected"),
        (b"name\tinchikey\nx\tAAA\n", "no column holds molecules; it has 'name', 'inchikey'"),
        (b"C,methane\nCC,ethane\n", "no column holds molecules; it has 'C', 'methane'"),
        (gzip.compress(b"PAR1 and so on", mtime=0), "is Parquet packed once more"),
        (b"PAR1 and so on", "damaged or cut short"),
    ],
)
def test_no_list_of_molecules(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_as(tmp_path / "a.smi", data)
    assert str(caught.value).startswith(str(tmp_path / "a.smi"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_files_cut_short(tmp_path: Path, packing: str) -> None:
    text = "".join(f"{n}\t{'C' * (n % 50 + 1)}\n" for n in range(200_000)).encode()
    path = tmp_path / f"a{packing}"
    path.write_bytes(PACKINGS[packing](text)[:-20])
    records = read_molecules([path], print)
    assert next(records).identifier == "0"
    with pytest.raises(InputError, match=f"a{packing}: damaged or cut short"):
        list(records)


@pytest.mark.slow
def test_memory_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.zst"
    row = "{0}\tC(=O)N{0}\ta name of some length, so that the file is no small one {0}\n"
    text = "id\tsmiles\tname\n" + "".join(row.format(n) for n in range(200_000))
    path.write_bytes(PACKINGS[".zst"](text.encode()))
    size = len(text)
    del text
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_molecules([path], print))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 200_000
    assert peak < 12e6 < size


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    table = pa.table(
        {
            "mass": [1.0, 2.0, 3.0],
            "Title": pa.array(["ethanol", None, "x"]).dictionary_encode(),
            "SMILES": ["CCO", "", "CCN"],
            "cid": [702.0, None, 7.0],
            "source": ["", "b", b"hmdb".decode()],
        }
    )
    pq.write_table(table, path)
    records, rejects = read(path)
    assert shown(records) == [("CCO", "702", "ethanol"), ("CCN", "7", "x")]
    assert [(r.source, r.where) for r in records] == [
        ("pool", f"{path}: record 1"), ("hmdb", f"{path}: record 3"),
    ]  # fmt: skip
    assert rejects == [("record 2", "has no molecule")]
    records, _ = read(path, columns={"name": "SMILES", "id": "mass"})
    assert shown(records)[0] == ("CCO", "1", "CCO")
    with pytest.raises(InputError, match=r"no column is called smiles, .*; it has 'mass', 'Title'"):
        pq.write_table(table.select(["mass", "Title"]), path)
        read(path)
    with pytest.raises(InputError, match="damaged or cut short"):
        path.write_bytes(path.read_bytes()[:-30])
        read(path)


def texts(*values: bytes) -> pa.Array:
    """A column of text that nobody has looked at."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


@pytest.mark.parametrize("column", ["smiles", "name"])
def test_parquet_rows_that_are_no_utf8_are_set_aside(tmp_path: Path, column: str) -> None:
    table = {"smiles": texts(b"CCO", b"CCN"), "name": texts(b"x", b"y")}
    table[column] = texts(b"CCO", b"C\xff\xfe")
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert [r.text for r in records] == ["CCO"]
    assert rejects == [("record 2", "holds text that is no UTF-8 (at byte 2)")]


def test_parquet_texts_without_bounds_are_set_aside(tmp_path: Path) -> None:
    table = pa.table({"smiles": ["CCO", "C" * 2_000_000, "CCN"]})
    pq.write_table(table, tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert [r.text for r in records] == ["CCO", "CCN"]
    assert rejects == [("record 2", "holds a text longer than 1,000,000 characters")]


@pytest.mark.parametrize(
    "smiles",
    [
        pa.array(["CCO"], pa.large_string()), pa.array(["CCO"], pa.string_view()),
        pa.array([b"CCO"], pa.binary()), pa.array([b"CCO"], pa.large_binary()),
        pa.array([b"CCO"], pa.binary(3)), pa.array(["CCO"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_parquet_text_of_any_type(tmp_path: Path, smiles: pa.Array) -> None:
    number = pa.array([7], pa.uint8())
    pq.write_table(pa.table({"smiles": smiles, "cid": number}), tmp_path / "a.parquet")
    assert shown(read(tmp_path / "a.parquet")[0]) == [("CCO", "7", "")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"smiles": [1, 2]}, "column 'smiles' holds int64, expected text$"),
        ({"smiles": [["CCO"]]}, "column 'smiles' holds list<.*>, expected text$"),
        ({"smiles": ["CCO"], "name": [{"a": 1}]}, "'name' holds struct<.*>, expected text or numb"),
        ({"smiles": ["C"], "id": pa.array([1], pa.timestamp("s"))}, "'id' holds timestamp"),
    ],
)
def test_parquet_columns_of_something_else_are_refused(
    tmp_path: Path, table: dict, message: str
) -> None:
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.parquet")


def test_parquet_of_nothing_but_nulls_has_no_molecules(tmp_path: Path) -> None:
    pq.write_table(pa.table({"smiles": pa.nulls(2), "name": pa.nulls(2)}), tmp_path / "a.parquet")
    records, rejects = read(tmp_path / "a.parquet")
    assert (records, {reason for _, reason in rejects}) == ([], {"has no molecule"})


@pytest.mark.parametrize("names", [["smiles", "smiles"], ["smiles", "SMILES"]])
def test_parquet_with_two_columns_of_one_name_is_refused(tmp_path: Path, names: list[str]) -> None:
    pq.write_table(pa.table([pa.array(["C"])] * 2, names=names), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"columns 1 \(.*\) and 2 \(.*\) have one name"):
        read(tmp_path / "a.parquet")


def test_encrypted_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is encrypted Parquet"):
        read_as(tmp_path / "a.parquet", b"PARE\0\0\0\0PARE")


def test_parquet_is_read_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"smiles": [f"C{n}" for n in range(10_000)]}), path)
    records, _ = read(path)
    assert [r.text for r in records] == [f"C{n}" for n in range(10_000)]
    assert records[-1].where.endswith("record 10000")


def test_pubchem_with_and_without_titles(tmp_path: Path) -> None:
    smiles = b"1\tCC(=O)O\n2\tCCO\nx\tC\n4\t\n7\tCCN\n"
    (tmp_path / "CID-SMILES.gz").write_bytes(gzip.compress(smiles))
    rejects: Rejects = []

    def records() -> list[MoleculeRecord]:
        rejects.clear()
        return list(read_pubchem(tmp_path, lambda w, r: rejects.append((Path(w).name, r))))

    assert shown(records()) == [("CC(=O)O", "CID1", ""), ("CCO", "CID2", ""), ("CCN", "CID7", "")]
    assert rejects == [
        ("CID-SMILES.gz: line 3", "has no CID and tab: 'x\\tC'"),
        ("CID-SMILES.gz: line 4", "has no molecule"),
    ]
    titles = "2\tethanol\n3\tmethane\n7\tethyl amine, naïve\n8\tx\n".encode("latin-1")
    (tmp_path / "CID-Title.gz").write_bytes(gzip.compress(titles))
    assert [r.name for r in records()] == ["", "ethanol", "ethyl amine, naïve"]
    assert {r.source for r in records()} == {"pubchem"}
    (tmp_path / "CID-SMILES").write_text("1" * 5000 + "\tC\n7\tCCN\n")
    (tmp_path / "CID-SMILES.gz").rename(tmp_path / "kept")
    assert [r.identifier for r in records()] == ["CID7"]
    assert rejects == [("CID-SMILES: line 1", f"has no CID and tab: {'1' * 40!r}")]
    (tmp_path / "kept").rename(tmp_path / "CID-SMILES.gz")
    (tmp_path / "CID-Title.gz").write_bytes(b"2\tethanol\n1\tacetic acid\n9\tx\n")
    with pytest.raises(InputError, match=r"CID-Title\.gz: line 2: CID 1 comes behind 2"):
        records()


def test_pubchem_that_is_not_there(tmp_path: Path) -> None:
    message = r"has no CID-SMILES\.gz, expected that file of PubChem's https.*/Compound/Extras/"
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match=message):
            read_pubchem(folder, print)


@pytest.mark.skipif(find_spec("pyopenms") is None, reason="pyopenms is not installed")
def test_hmdb() -> None:
    rejects: Rejects = []
    records = list(read_hmdb(lambda w, r: rejects.append((w, r))))
    assert rejects == []
    assert len(records) > 100_000
    first = records[0]
    assert first[1:] == (
        "CN1C=NC(C[C@H](N)C(O)=O)=C1", "HMDB0000001", "1-Methylhistidine", "hmdb", False, False,
    )  # fmt: skip
    assert first.where.endswith("HMDB2StructMapping.tsv: line 1")
    assert len({r.identifier for r in records}) == len(records)
    assert 'ADP-ribose 1"-2" cyclic phosphate' in {r.name for r in records}
    assert "pyopenms" not in sys.modules


def test_hmdb_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MzseekError, match=r"is not installed: pip install 'mzseek\[hmdb\]'"):
        read_hmdb(print)


@pytest.mark.shared
def test_the_shared_molecules(shared: Path, tmp_path: Path) -> None:
    source = open_source(shared / "data" / "molecules.tsv.gz")
    with source.open() as stream:
        lines = [line for _, line in islice(text_lines(stream), 1000)]
    records, rejects = read_as(tmp_path / "part.tsv.gz", gzip.compress("".join(lines).encode()))
    assert rejects == []
    rows = [line.split("\t") for line in lines[1:]]
    assert [r.text for r in records] == [row[2].strip() for row in rows]
    assert Counter(r.source for r in records) == Counter(row[3].strip() for row in rows)
