from pathlib import Path

import pytest

from mzseek.core.errors import DatasetError, ExperimentError
from mzseek.database import build_database, file_sources
from mzseek.experiments.sweep import Site, claim


def test_data_are_prepared_once_for_each_fingerprint(site: Site) -> None:
    first = site.prepared("maccs")
    assert site.prepared("maccs") is first
    assert site.prepared("morgan2").folder != first.folder
    assert site.facts() == {"spectra": "spectra.tsv"}
    again = Site.at(site.out, site.files.spectra)  # by its table
    assert again.prepared("maccs").manifest == first.manifest


def test_negatives_are_mined_once(site: Site, tmp_path: Path, small_set) -> None:
    with pytest.raises(ExperimentError, match="hard negatives need molecules: give --database"):
        site.lists("morgan2", ("mass", 4))
    molecules = tmp_path / "molecules.smi"
    molecules.write_text("\n".join(dict.fromkeys(small_set.smiles.values())))
    build_database(file_sources([molecules]), tmp_path / "db")
    site = Site.at(site.out, site.files.spectra, tmp_path / "db")
    assert "hard-mass-4" in site.lists("morgan2", ("mass", 4)).settings
    manifest = site.prepared("morgan2").manifest
    assert site.lists("morgan2", ("mass", 4)).manifest == manifest


def test_a_data_set_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        Site.at(tmp_path, tmp_path / "none.tsv")


def test_only_a_folder_of_experiments_is_used(tmp_path: Path) -> None:
    claim(tmp_path / "new")
    claim(tmp_path / "new")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(ExperimentError, match="exists and holds no experiments"):
        claim(tmp_path / "other")
    with pytest.raises(ExperimentError, match="is a file"):
        claim(tmp_path / "other" / "thesis.txt")
