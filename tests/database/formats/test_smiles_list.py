from pathlib import Path

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
