import gzip
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mzseek.core.errors import InputError, MzseekError
from mzseek.database.records import MoleculeRecord
from mzseek.database.sources import (
    file_sources,
    hmdb_sources,
    hmdb_table,
    pubchem_sources,
    read_molecules,
)
from mzseek.io import open_source, text_lines

from .conftest import Rejects, read, read_as, read_twice, shown

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
    with pytest.raises(InputError, match="no such file"):  # before any is read
        read_molecules([*paths, tmp_path / "absent.smi"], print)


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
        assert shown(read_as(tmp_path / "c.txt", text)[0]) == [(inchi, "", "methane")]


def test_a_cell_of_any_length_costs_its_row_at_most(tmp_path: Path) -> None:
    long = "x" * 200_000  # more than the csv module takes
    text = f'name,smiles\n"{long}",CCO\na,"{"C" * 200_000}"\n"{"y" * 3_000_000}",C\n"z",CC\n'
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert [(len(r.name), r.text[:3]) for r in records] == [(200_000, "CCO"), (1, "CCC"), (1, "CC")]
    assert rejects == [("line 4", "is longer than 1,000,000 characters")]
    records, rejects = read_as(tmp_path / "a.smi", f"CCO\n{'C' * 9_000_000}\nCCN\n")
    assert [r.text for r in records] == ["CCO", "CCN"]
    assert [reason for _, reason in rejects] == ["is longer than 1,000,000 characters"]


def test_encodings(tmp_path: Path) -> None:
    text = "name,smiles\r\nnaïve,CCO\r\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        records, rejects = read_as(tmp_path / "a.csv", text.encode(encoding))
        assert (shown(records), rejects) == ([("CCO", "", "naïve")], [])


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
        (
            b"PK\x03\x04\0\0",
            "is not a text file; expected a list of SMILES, a table with a smiles column, SDF",
        ),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not a text file"),
        (b"caffeine\n", r"is no list of molecules \(it begins with 'caffeine'\); expected a list"),
        (b"name,weight\nx,1\n", "no column holds molecules; it has 'name', 'weight'; expected"),
        (b"name\tinchikey\nx\tAAA\n", "no column holds molecules; it has 'name', 'inchikey'"),
        (b"Nr,Struktur\n1,CCO\n", "no column holds molecules; it has 'Nr', 'Struktur'"),
        (gzip.compress(b"PAR1 and so on", mtime=0), "is Parquet packed once more"),
        (b"PAR1 and so on", "damaged or cut short"),
    ],
)
def test_no_list_of_molecules(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_as(tmp_path / "a.smi", data)
    assert str(caught.value).startswith(str(tmp_path / "a.smi"))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
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
    row = "{0}\tC(=O)N{0}\t" + 8 * "a name of some length {0} " + "\n"
    text = "id\tsmiles\tname\n" + "".join(row.format(n) for n in range(60_000))
    path.write_bytes(PACKINGS[".zst"](text.encode()))
    size = len(text)
    del text
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_molecules([path], print))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 60_000
    assert peak < 12e6 < size


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


def test_files_with_their_options(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("structure,nr\nCCO,1\n")
    (tmp_path / "b.smi").write_text("CCN 2\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.smi"]
    sources = file_sources(paths, source="mine", columns={"smiles": "structure", "id": "nr"})
    assert sources.files == tuple(paths)
    assert sources.options == {"source": "mine", "columns": {"smiles": "structure", "id": "nr"}}
    assert read_twice(file_sources(paths[:1], columns={"id": "nr"})) == [("CCO", "1", "a")]
    assert read_twice(file_sources(paths[1:], source="mine"))[0][2] == "mine"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyopenms") is None, reason="pyopenms is not installed")
def test_hmdb() -> None:
    rejects: Rejects = []
    records = list(hmdb_sources().read(lambda w, r: rejects.append((w, r))))
    assert rejects == []
    assert len(records) > 100_000
    first = records[0]
    assert first[1:5] == (
        "CN1C=NC(C[C@H](N)C(O)=O)=C1", "HMDB0000001", "1-Methylhistidine", "hmdb",
    )  # fmt: skip
    assert first.where.endswith("HMDB2StructMapping.tsv: line 1")
    assert len({r.identifier for r in records}) == len(records)
    assert 'ADP-ribose 1"-2" cyclic phosphate' in {r.name for r in records}
    assert "pyopenms" not in sys.modules
    assert hmdb_sources().files == (hmdb_table(),)


def test_hmdb_is_the_table_of_the_package(monkeypatch, tmp_path: Path) -> None:
    table = tmp_path / "HMDB2StructMapping.tsv"
    table.write_text("HMDB:HMDB0000001\t1-Methylhistidine\tCn1cnc(CC(N)C(=O)O)c1\tInChI=x\n")
    monkeypatch.setattr("mzseek.database.sources.hmdb_table", lambda: table)
    sources = hmdb_sources()
    assert sources.files == (table,)
    assert read_twice(sources) == [("Cn1cnc(CC(N)C(=O)O)c1", "HMDB0000001", "hmdb")]


def test_hmdb_without_the_package_says_so(monkeypatch) -> None:
    monkeypatch.setattr("mzseek.database.sources.importlib.util.find_spec", lambda name: None)
    with pytest.raises(MzseekError, match=r"is not installed: pip install 'mzseek\[hmdb\]'"):
        hmdb_sources()


def test_pubchem_with_and_without_titles(tmp_path: Path) -> None:
    smiles = b"1\tCC(=O)O\n2\tCCO\nx\tC\n4\t\n7\tCCN\n"
    (tmp_path / "CID-SMILES.gz").write_bytes(gzip.compress(smiles))
    rejects: Rejects = []

    def records() -> list[MoleculeRecord]:
        rejects.clear()
        sources = pubchem_sources(tmp_path)
        return list(sources.read(lambda w, r: rejects.append((Path(w).name, r))))

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


def test_pubchem_is_a_folder(tmp_path: Path) -> None:
    message = r"has no CID-SMILES\.gz, expected that file of PubChem's https.*/Compound/Extras/"
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match=message):
            pubchem_sources(folder)
    (tmp_path / "CID-SMILES").write_text("702\tCCO\n")
    assert pubchem_sources(tmp_path).files == (tmp_path / "CID-SMILES",)
    (tmp_path / "CID-Title").write_text("702\tEthanol\n")
    sources = pubchem_sources(tmp_path)
    assert sources.files == (tmp_path / "CID-SMILES", tmp_path / "CID-Title")
    assert read_twice(sources) == [("CCO", "CID702", "pubchem")]
