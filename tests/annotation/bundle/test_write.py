"""Writing a bundle."""

from pathlib import Path

import pytest

from mzseek.bundle import Bundle, write
from mzseek.bundle.export import Extras, export_run
from mzseek.bundle.molecules import BundledMolecules
from mzseek.core.errors import BundleError, DatasetError
from mzseek.runs.run import Run


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_run_gives_the_same_bytes(
    fitted_run: Run, bundle_folder: Path, tmp_path: Path
) -> None:
    details = {"S0-1": {"license": "CC BY", "contributor": "Anna", "source": "a.tsv"}}
    export_run(fitted_run, tmp_path / "again", Extras(details=details), jobs=1)
    assert contents_of(tmp_path / "again") == contents_of(bundle_folder)


def test_what_is_no_bundle_is_not_replaced(fitted_run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(DatasetError, match="exists and is no model bundle"):
        export_run(fitted_run, tmp_path / "mine", jobs=1)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_one_that_is_too_large_is_refused_and_not_written(
    fitted_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MOST_BYTES", 1000)
    with pytest.raises(BundleError, match=r"would have [\d,]+ bytes, expected at most 1,000"):
        export_run(fitted_run, tmp_path / "large", jobs=1)
    assert not (tmp_path / "large").exists()


def test_a_molecule_that_is_missing_is_told(bundle: Bundle) -> None:
    none = BundledMolecules(bundle.molecules.table.slice(0, 0))
    with pytest.raises(BundleError, match="AAAA: a molecule of the library is not among"):
        write._rows([("AAAA", 1.0)], none)
