from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.datasets.files import read_table
from mzseek.spectra import read_spectra

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
