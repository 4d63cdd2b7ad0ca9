"""Writing bundles, and their licences."""

from pathlib import Path

import pytest

from mzseek.bundle import Bundle, write
from mzseek.bundle.export import ExportOptions, export_run
from mzseek.bundle.molecules import BundledMolecules
from mzseek.bundle.write import is_allowed, licence_family, licence_text
from mzseek.core.errors import BundleError, DatasetError
from mzseek.runs.run import Run


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(
    fitted_run: Run, bundle_folder: Path, tmp_path: Path
) -> None:
    details = {"S0-1": {"license": "CC BY", "contributor": "Anna", "source": "a.tsv"}}
    export_run(fitted_run, tmp_path / "again", ExportOptions(details=details), jobs=1)
    assert contents_of(tmp_path / "again") == contents_of(bundle_folder)


def test_what_is_no_bundle_is_not_replaced(fitted_run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(DatasetError, match="exists and is no model bundle"):
        export_run(fitted_run, tmp_path / "mine", jobs=1)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_one_that_is_too_large_is_refused_and_not_written(
    fitted_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MAX_BYTES", 1000)
    with pytest.raises(BundleError, match=r"would have [\d,]+ bytes, expected at most 1,000"):
        export_run(fitted_run, tmp_path / "large", jobs=1)
    assert not (tmp_path / "large").exists()


def test_a_molecule_that_is_missing_is_told(bundle: Bundle) -> None:
    none = BundledMolecules(bundle.molecules.table.slice(0, 0))
    with pytest.raises(BundleError, match="AAAA: a molecule of the library is not among"):
        write.library_rows([("AAAA", 1.0)], none)


ALLOWED = ["CC0", "CC0 1.0", "CC BY", "CC-BY-4.0", "CC BY-SA", "dl-de/by-2-0", "DL-DE/BY",
           "http://creativecommons.org/publicdomain/zero/1.0/"]  # fmt: skip
REFUSED = ["CC BY-NC", "CC BY-NC-SA 4.0", "cc-by-nc-nd", "CC BY-ND", "", "all rights reserved",
           "CC", "https://creativecommons.org/licenses/by-nc/4.0/"]  # fmt: skip


def test_which_licences_allow_shipping() -> None:
    assert [text for text in ALLOWED if not is_allowed(text)] == []
    assert [text for text in REFUSED if is_allowed(text)] == []
    assert is_allowed("CC BY-NC 4.0", ["CC BY-NC"])
    assert not is_allowed("CC BY", ["CC BY-NC"])
    assert is_allowed("", ["any"])
    assert licence_family("  my   own ") == "my own"


def test_the_file_names_every_contributor_and_licence() -> None:
    text = licence_text([("Eva", "CC BY", 3), ("Anna", "CC0", 1200)], [("chemicals", 41178)], True)
    assert "CC BY-SA 4.0" in text
    assert "| Anna | CC0 | 1,200 |\n| Eva | CC BY | 3 |" in text
    assert "- chemicals: 41,178 molecules" in text
    private = licence_text([("Eva", "CC BY-NC", 3)], [], False)
    assert "Keep it to yourself" in private
    assert "CC BY-SA 4.0" not in private
