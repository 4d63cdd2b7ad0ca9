from pathlib import Path

import mzseek as mz

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
