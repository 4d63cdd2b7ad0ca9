"""Tables of spectra: text, Parquet and Arrow, formats "table", "parquet" and "arrow"."""

import csv
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from mzseek.core.errors import InputError, SpectrumError
from mzseek.datasets.files import read_table
from mzseek.io.skipped import Skipped
from mzseek.io.sources import MAX_PEAKS
from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.formats.tables import parse_columns

HEADER = "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\tadduct\tfold\n"


def test_rows(tmp_path: Path) -> None:
    rows = [
        "A\t50.5,40\t1.0,2\tCCO\t195.08\t[M+H]+\ttrain",
        "B\t50.5\t1.0,2\tCCO\t195.08\t[M+H]+\ttrain",
        "C\t50.5\t1.0\tCCO\t195.08\t[M+H]+",
        "D\t50,x\t1,2\tCCO\t195.08\t[M+H]+\tval",
        "E\t\t\tCCO\t195.08\t[M+H]+\tval",
        "G\t100,,300\t1,2,\tCCO\t195.08\t[M+H]+\tval",
        "H\t1_00\t1\tCCO\t195.08\t[M+H]+\tval",
        'F\t"[50.5, 60]"\t"[1, 2]"\tCCO\t195.08\t[M+Na]+\ttest',
    ]
    path = tmp_path / "set.tsv"
    path.write_text(HEADER + "\n".join(rows) + "\n\n")
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(path, rejects))
    assert [s.identifier for s in got] == ["A", "F"]
    assert got[0].mz.tolist() == [40.0, 50.5]
    assert got[1].metadata["fold"] == "test"
    assert [where.rpartition(" ")[2] for where, _ in rejects] == ["3", "4", "5", "6", "7", "8"]
    assert [reason[:30] for _, reason in rejects] == [
        "1 m/z values but 2 intensities", "has 6 columns, expected 7",
        "column mzs is not a list of nu", "has no peaks", "column mzs is not a list of nu",
        "column mzs is not a list of nu",
    ]  # fmt: skip


@pytest.mark.parametrize("twin", ["smiles", "SMILES", "mzs", "precursor_mz", "fold", "adduct"])
def test_two_columns_of_a_name_that_is_read_are_refused(tmp_path: Path, twin: str) -> None:
    path = tmp_path / "set.tsv"
    row = "A\t50.5,40\t1.0,2\tCCO\t195.08\t[M+H]+\ttrain"
    path.write_text(f"{HEADER.rstrip()}\t{twin}\n{row}\tCCN\n")
    rejects: list[tuple[str, str]] = []
    assert list(read_spectra(path, rejects)) == []
    [(where, reason)] = rejects
    assert where == str(path)
    assert f"and 8 ('{twin}') have one name, expected one column of it" in reason
    with pytest.raises(InputError, match="have one name"):
        list(read_table(path, print))


def test_columns_that_are_not_read_may_repeat(tmp_path: Path) -> None:
    path = tmp_path / "set.tsv"
    row = "A\t50.5,40\t1.0,2\tCCO\t195.08\t[M+H]+\ttrain"
    path.write_text(f"{HEADER.rstrip()}\tnote\tnote\n{row}\ta\tb\n")
    rejects: list[tuple[str, str]] = []
    assert [s.identifier for s in read_spectra(path, rejects)] == ["A"]
    assert rejects == []


def test_half_a_character_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xff\xfe\x00")
    rejects: list[tuple[str, str]] = []
    assert list(read_spectra(tmp_path / "a.tsv", rejects)) == []
    assert len(rejects) == 1


MZ, HEIGHTS = [50.5, 60.25, 70.125], [1.0, 0.5, 0.25]
# One spectrum as rows of tables have it: (columns, values).
LISTS = {
    "commas": ("50.5,60.25,70.125", "1,0.5,0.25"),
    "brackets": ("[50.5, 60.25, 70.125]", "[1.0, 0.5, 0.25]"),
    "blanks": ("[50.5 60.25 70.125]", "1.0 0.5 0.25"),
    "tuples": ("(50.5, 60.25, 70.125)", "(1.0, 0.5, 0.25)"),
}
PAIRS = {
    "colons": "50.5:1 60.25:0.5 70.125:0.25",
    "colons, commas": "50.5:1, 60.25:0.5, 70.125:0.25",
    "lists of pairs": "[[50.5, 1.0], [60.25, 0.5], [70.125, 0.25]]",
    "two lists": "[[50.5, 60.25, 70.125], [1.0, 0.5, 0.25]]",
}


def spectra_of(path: Path, **columns: str) -> list[Spectrum]:
    rejects: list[tuple[str, str]] = []
    got = list(read_spectra(path, rejects, columns=columns))
    assert rejects == []
    for spectrum in got:
        assert spectrum.mz.tolist() == MZ
        assert spectrum.intensities.tolist() == HEIGHTS
    return got


@pytest.mark.parametrize("form", LISTS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_lists_in_cells(form: str, delimiter: str, tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["precursor_mz", "mz", "intensity", "adduct", "molecule_id"])
        writer.writerows([195.0877, *LISTS[form], "[M+H]+", number] for number in (7, 7))
    got = spectra_of(tmp_path / "a.csv")
    assert [s.metadata["feature_id"] for s in got] == ["7", "7"]
    assert [(s.precursor_mz, s.adduct) for s in got] == [(195.0877, "[M+H]+")] * 2


@pytest.mark.parametrize("form", PAIRS)
def test_pairs_in_cells(form: str, tmp_path: Path) -> None:
    table = f"my_mz\tpeaks\n195.0877\t{PAIRS[form]}\n"
    (tmp_path / "a.tsv").write_text(table)
    [spectrum] = spectra_of(tmp_path / "a.tsv", precursor="my_mz")
    assert spectrum.precursor_mz == 195.0877


def tables() -> dict[str, pa.Table]:
    plain = {"precursor": [195.0877], "charge": [1.0], "molecule_id": ["x"], "embedding": [[1.0]]}
    return {
        "lists": pa.table({**plain, "ms2_mzs": [MZ], "ms2_normalized_intensities": [HEIGHTS]}),
        "float32": pa.table(
            {**plain, "mzs": pa.array([MZ], pa.list_(pa.float32())), "intensities": [HEIGHTS]}
        ),
        "pairs": pa.table(
            {**plain, "peaks": [[list(pair) for pair in zip(MZ, HEIGHTS, strict=True)]]}
        ),
        "records": pa.table(
            {**plain,
             "peaks": [[{"mz": m, "intensity": h} for m, h in zip(MZ, HEIGHTS, strict=True)]]}
        ),
        "text": pa.table({**plain, "peaks": [PAIRS["colons"]]}),
    }  # fmt: skip


@pytest.mark.parametrize("form", tables())
@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_parquet_and_arrow(form: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    write_arrow(tables()[form], path)
    [spectrum] = spectra_of(path)
    assert (spectrum.precursor_mz, spectrum.charge) == (195.0877, 1)
    assert spectrum.metadata["feature_id"] == spectrum.metadata["molecule_id"] == "x"
    assert "embedding" not in spectrum.metadata


def write_arrow(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".feather":
        feather.write_feather(table, str(path))
    else:
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)


def test_columns_that_the_user_names_stand_for_their_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"a": [MZ], "b": [HEIGHTS], "mzs": ["old"], "own": [195.0877], "precursor_mz": [1.0]}
    write_arrow(pa.table(columns), path)
    [spectrum] = spectra_of(path, mz="a", intensity="b", precursor="own")
    assert spectrum.precursor_mz == 195.0877


def test_bad_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    many = [60.0] * (MAX_PEAKS + 1)
    lists = [MZ, [50.0, None], many, None, MZ, MZ]
    heights = [HEIGHTS, [1.0, 2.0], many, None, [1.0], HEIGHTS]
    table = pa.table({"precursor_mz": [195.0877] * 6, "mzs": lists, "intensities": heights,
                      "smiles": [b"C", b"C", b"C", b"C", b"C", b"\xff"]})  # fmt: skip
    as_text = table.column("smiles").combine_chunks().view(pa.utf8())
    write_arrow(table.set_column(3, "smiles", as_text), tmp_path / "a.parquet")
    rejects: list[Skipped] = []
    assert len(list(read_spectra(tmp_path / "a.parquet", rejects))) == 1
    assert [skipped.code for skipped in rejects] == [
        "bad-peak", "too-large", "no-peaks", "peak-count", "malformed",
    ]  # fmt: skip
    assert rejects[0].where.endswith("a.parquet: row 2")


@pytest.mark.parametrize(
    ("name", "content", "columns", "reason"),
    [
        ("a.mgf", "BEGIN IONS\nPEPMASS=1\n1 1\nEND IONS\n", {"id": "x"}, "is MGF, which has no"),
        ("a.csv", "precursor_mz,mzs,intensities\n1,2,3\n", {"id": "x"}, r"called 'x' \(id\)"),
        ("a.csv", "precursor_mz,a,b\n1,2,3\n", {"mz": "a"}, "name both"),
        (
            "a.csv",
            "x,mz,intensity\n1,2,3\n",
            {},
            "no columns hold peaks .*; it has 'x', 'mz', 'intensity'; name them with --columns "
            "precursor=",
        ),
        ("a.csv", "id,smiles\n1,CCO\n", {}, "if these are candidates, give them as --database"),
        ("a.csv", "id,mzs,intensities\n1,50,1\n", {}, r"no precursor m/z, .*--columns precursor=…"),
        ("a.csv", "mzs,intensities\n", {}, "holds no record"),
    ],
)
def test_tables_without_what_is_named(
    name: str, content: str, columns: dict[str, str], reason: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    rejects: list[Skipped] = []
    with suppress_input_error(rejects):
        assert list(read_spectra(tmp_path / name, rejects, columns=columns)) == []
    assert re.search(reason, rejects[0].reason)


@contextmanager
def suppress_input_error(rejects: list[Skipped]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        rejects.append(Skipped(error.where, error.reason))


@pytest.mark.parametrize("text", ["mz", "mz=", "x=y", "mz=a,mz=b"])
def test_columns_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(SpectrumError, match="expected NAME=COLUMN"):
        parse_columns(text)


def test_lists_that_unfold_without_end_are_refused(tmp_path: Path) -> None:
    lists = pa.array([np.full(1_000_001, 50.0, np.float32)])
    table = pa.table({"precursor_mz": [195.0], "mzs": lists, "intensities": lists})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    rejects: list[Skipped] = []
    assert list(read_spectra(tmp_path / "a.parquet", rejects)) == []
    assert "unfolds to 1,000,001 values" in rejects[0].reason


def test_a_packed_parquet_file_and_a_damaged_one_are_one_line(tmp_path: Path) -> None:
    write_arrow(tables()["lists"], tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress(content))
    (tmp_path / "c.parquet").write_bytes(content[:-40])
    rejects: list[Skipped] = []
    assert len(list(read_spectra(tmp_path, rejects))) == 1
    assert "unpack it first" in rejects[0].reason
    assert "damaged or cut short" in rejects[1].reason
