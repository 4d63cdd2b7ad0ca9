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
