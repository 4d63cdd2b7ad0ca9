from pathlib import Path

import pytest

import mzseek as mz
from mzseek.core.errors import DatasetError


def test_a_table_with_its_lists(small_set, tmp_path: Path) -> None:
    source = small_set.folder.parent
    lists = {"mass": str(source / "candidates_mass.json")}
    made = mz.prepare(str(source / "spectra.tsv"), str(tmp_path / "made"), lists,
                      fingerprint="maccs", jobs=1, watch=False)  # fmt: skip
    assert isinstance(made, mz.Prepared)
    assert list(made.settings) == ["mass"]
    assert len(made) == len(mz.Prepared.open(str(small_set.folder)))
    frame = made.to_frame().set_index("what")["number"]
    assert frame["spectra"] == len(made)
    assert "mass lists" in made._repr_html_()


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nowhere: no such folder"):
        mz.prepare(str(tmp_path / "nowhere"), tmp_path / "made")


CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"


def test_a_database_is_built_and_asked(tmp_path: Path) -> None:
    listed = tmp_path / "mine.smi"
    listed.write_text(f"{CAFFEINE} caffeine\nCCO ethanol\n")
    mine = mz.Database.build(str(listed), str(tmp_path / "db"), fingerprint="maccs", jobs=1,
                             watch=False)  # fmt: skip
    assert isinstance(mine, mz.Database)
    frame = mine.by_mass(194.0804, ppm=10).to_frame()
    assert list(frame["formula"]) == ["C8H10N4O2"]
    assert "fingerprint" not in frame
    assert "C8H10N4O2" in mine.by_formula("C8H10N4O2")._repr_html_()
    again = mz.Database.open(tmp_path / "db")
    assert len(again.by_mass(46.0419, ppm=10)) == 1


def test_several_lists(tmp_path: Path) -> None:
    for name, smiles in (("a.smi", "CCO"), ("b.smi", "CCN")):
        (tmp_path / name).write_text(f"{smiles}\n")
    paths = (tmp_path / name for name in ("a.smi", "b.smi"))
    made = mz.Database.build(paths, tmp_path / "db", jobs=1, watch=False)
    assert made.manifest["counts"]["molecules"] == 2
