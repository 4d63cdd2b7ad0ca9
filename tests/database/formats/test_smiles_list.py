from pathlib import Path

import pytest

from mzseek.core.errors import InputError

from ..conftest import read_as, shown


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.smi", "CCO ethanol\nOc1ccc2ccccc2c1 2-naphthol\nCC CHEMBL135626\n"),
        ("a.txt", "CCO\tethanol\nOc1ccc2ccccc2c1\t2-naphthol\nCC\tCHEMBL135626\n"),
        ("a.csv", "CCO,ethanol\nOc1ccc2ccccc2c1,2-naphthol\nCC,CHEMBL135626\n"),
        ("b.csv", "ethanol;CCO\n2-naphthol;Oc1ccc2ccccc2c1\nCHEMBL135626;CC\n"),
        ("b.txt", "ethanol\tCCO\n2-naphthol\tOc1ccc2ccccc2c1\nCHEMBL135626\tCC\n"),
    ],
)
def test_smiles_and_names_without_a_header(tmp_path: Path, name: str, text: str) -> None:
    records, rejects = read_as(tmp_path / name, text)
    assert shown(records) == [
        ("CCO", "", "ethanol"), ("Oc1ccc2ccccc2c1", "", "2-naphthol"), ("CC", "CHEMBL135626", ""),
    ]  # fmt: skip
    assert rejects == []


def test_quoted_and_further_cells_without_a_header(tmp_path: Path) -> None:
    text = '"CCO","ethanol, absolute",702\n"CC",,6324\nC,methane\n,none\nCCC\n'
    records, rejects = read_as(tmp_path / "a.csv", text)
    assert shown(records) == [
        ("CCO", "702", "ethanol, absolute"), ("CC", "6324", ""), ("C", "", "methane"),
    ]  # fmt: skip
    assert rejects == [("line 4", "has no molecule"), ("line 5", "has no molecule")]


def test_a_header_that_is_not_known_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column holds molecules; it has 'Struktur', 'Wert'"):
        read_as(tmp_path / "a.csv", "Struktur,Wert\nCCO,1\nCCN,2\n")
