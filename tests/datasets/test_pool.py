import gzip
from pathlib import Path

import pytest

from mzseek.datasets.pool import read_pool
from mzseek.errors import DatasetError, InputError, MzseekError


def read(path: Path, text: str, **options):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    rejects: list[tuple[str, str]] = []
    return read_pool(path, lambda w, r: rejects.append((w, r)), **options), rejects


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "formula\tmass\tsmiles\nC6H6\t78.04695\tc1ccccc1\nC2H6O\t46.04186\tCCO\n"),
        ("a.tsv.gz", "formula\tmass\tsmiles\nC6H6\t78.04695\tc1ccccc1\nC2H6O\t46.04186\tCCO\n"),
        ("a.csv", "name,SMILES\nbenzene,c1ccccc1\nethanol,CCO\n"),
        ("excel.csv", "\ufeffName;SMILES;CAS\r\nbenzene;c1ccccc1;71-43-2\r\nethanol;CCO;\r\n"),
        ("a.smi", "c1ccccc1 benzene\nCCO ethanol\n"),
        ("a.txt", "c1ccccc1\nCCO\n"),
    ],
)
def test_tables_and_lists(tmp_path: Path, name: str, text: str) -> None:
    pool, rejects = read(tmp_path / name, text)
    assert rejects == []
    assert pool.smiles == ["CCO", "c1ccccc1"]  # by mass
    assert pool.formulas == ["C2H6O", "C6H6"]
    assert pool.masses.tolist() == pytest.approx([46.04186, 78.04695], abs=1e-5)
    assert pool.by_mass(46.0419, 10).tolist() == [0]
    assert pool.by_mass(46.05, 10).tolist() == []
    assert pool.by_formula("C6H6").tolist() == [1]
    assert pool.by_formula("C99").tolist() == []


def test_bad_rows_are_set_aside(tmp_path: Path) -> None:
    text = "smiles\tformula\tmass\nCCO\tC2H6O\t46.04\n\tC\t1\nC\tCH4\theavy\nCC\tC2H6\t-1\n"
    pool, rejects = read(tmp_path / "a.tsv", text)
    assert pool.smiles == ["CCO"]
    assert [where[-6:] for where, _ in rejects] == ["line 3", "line 4", "line 5"]
    pool, rejects = read(tmp_path / "b.smi", "CCO\nnot-smiles\nC1CC\n")
    assert pool.smiles == ["CCO"]
    assert len(rejects) == 2


def test_columns_by_preference_quoted_commas_and_formulas_in_any_order(tmp_path: Path) -> None:
    text = "structure,name,smiles,formula,mass\n"
    text += 'picture.png,"butane, 2-methyl-",CCC(C)C,H12C5,72.0939\n'
    pool, rejects = read(tmp_path / "a.csv", text)
    assert rejects == []
    assert pool.smiles == ["CCC(C)C"]
    assert pool.by_formula("C5H12").tolist() == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smiles,smiles\nCCO,CCN\n", r"columns 1 \('smiles'\) and 2 \('smiles'\) have one name"),
        ("SMILES\tx\tsmiles\nCCO\t1\tCCN\n", r"columns 1 \('SMILES'\) and 3 \('smiles'\)"),
        ("smiles;mass;Mass;formula\nC;16;17;CH4\n", "columns 2 .* and 3 "),
        ("smiles smiles\nCCO CCN\n", "columns 1 .* and 2 "),
    ],
)
def test_a_header_that_can_be_read_in_two_ways_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.csv", text)


def test_columns_that_are_not_read_may_repeat(tmp_path: Path) -> None:
    pool, _ = read(tmp_path / "a.csv", "note,smiles,note\na,CCO,b\n")
    assert pool.smiles == ["CCO"]


def test_a_cell_of_any_length_costs_its_row_at_most(tmp_path: Path) -> None:
    long, longer = "x" * 200_000, "y" * 2_000_000
    for mark in ",;":
        text = f'name{mark}smiles\n"{long}"{mark}CCO\nz{mark}{long}\n{longer}{mark}C\n"q"{mark}CC\n'
        pool, rejects = read(tmp_path / "a.csv", text)
        assert pool.smiles == ["CC", "CCO"]
        assert [where[-6:] for where, _ in rejects] == ["line 4", "line 3"]
        assert all(len(reason) < 150 for _, reason in rejects)


def test_numbers_of_thousands_of_digits_are_set_aside_or_kept_as_they_are(tmp_path: Path) -> None:
    digits = "1" * 5000
    text = f"smiles,formula,mass\nCCO,C{digits},46.04\nCC,C2H6,{digits}\nC,CH4,1_6\n"
    pool, rejects = read(tmp_path / "a.csv", text)
    assert pool.smiles == ["CCO"]
    assert [where[-6:] for where, _ in rejects] == ["line 3", "line 4"]
    assert all(len(reason) < 100 for _, reason in rejects)


def test_formulas_without_carbon_are_found_as_rdkit_writes_them(tmp_path: Path) -> None:
    pool, _ = read(tmp_path / "a.csv", "smiles,formula,mass\nCl,ClH,35.9767\nN,NH3,17.0265\n")
    assert pool.by_formula("HCl").tolist() == [1]
    assert pool.by_formula("H3N").tolist() == [0]


def test_salts_are_found_in_their_neutral_form(tmp_path: Path) -> None:
    text = (
        "smiles\tformula\tmass\n[Na+].O=Cc1cccc([O-])c1\tC7H5NaO2\t144.0187\nCCO\tC2H6O\t46.0419\n"
    )
    pool, _ = read(tmp_path / "a.tsv", text)
    assert [pool.smiles[i] for i in pool.by_formula("C7H6O2")] == ["[Na+].O=Cc1cccc([O-])c1"]
    assert pool.by_mass(122.0368, 10).size == 1


def test_repeated_lines_count_once(tmp_path: Path) -> None:
    pool, rejects = read(tmp_path / "a.smi", "CCO\nCCO\nCCN\n")
    assert (len(pool), rejects) == (2, [])


def test_no_molecules_at_all(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no column is called smiles"):
        read(tmp_path / "a.csv", "name,weight\nx,1\n")
    with pytest.raises(DatasetError, match="holds no molecule"):
        read(tmp_path / "b.tsv", "smiles\tmass\n\t1\n")
    with pytest.raises(DatasetError, match=r"line 1: SMILES 'caffeine'.*expected a table with"):
        read(tmp_path / "e.txt", "caffeine\n")
    (tmp_path / "f.xlsx").write_bytes(b"PK\x03\x04\0\0")
    with pytest.raises(DatasetError, match="is not a text file"):
        read_pool(tmp_path / "f.xlsx", lambda *_: None)
    with pytest.raises(DatasetError, match="has no header and no molecules"):
        read(tmp_path / "c.tsv.gz", "")
    with pytest.raises(MzseekError, match="damaged or cut short"):
        (tmp_path / "d.tsv.gz").write_bytes(gzip.compress(b"smiles\n" + b"CCO\n" * 9999)[:-20])
        read_pool(tmp_path / "d.tsv.gz", lambda *_: None)
