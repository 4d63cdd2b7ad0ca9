"""Bundles of runs, and their cards."""

from pathlib import Path

import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.build_molecules import MoleculeLists
from mzseek.bundle.export import ExportOptions, card_of, export_run, fit_options, replace_molecules
from mzseek.bundle.fitting import References
from mzseek.core.errors import BundleError
from mzseek.evidence.fitting import FitOptions
from mzseek.library import Library
from mzseek.runs.run import Run

MGF = """BEGIN IONS
TITLE={name}
PEPMASS=195.0877
CHARGE=1+
ADDUCT=[M+H]+
SMILES=Cn1c(=O)c2c(ncn2C)n(C)c1=O
LICENSE=CC0
138.0662 {height}
195.0877 50
END IONS

"""


def test_a_library_of_ones_own_and_a_list_of_molecules(fitted_run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.mgf").write_text(
        MGF.format(name="a", height=10) + MGF.format(name="b", height=99)
    )
    Library.build(tmp_path / "mine.mgf", tmp_path / "library")
    (tmp_path / "list.smi").write_text("CCO ethanol\nCCN\n")
    lists = MoleculeLists([tmp_path / "list.smi"])
    options = ExportOptions(library=tmp_path / "library", lists=lists)
    made = export_run(fitted_run, tmp_path / "out", options, jobs=1)
    assert made.library.records["identifier"].to_pylist() == ["a", "b"]
    assert made.library.molecules["formula"].to_pylist() == ["C8H10N4O2"]
    assert len(made.molecules) == 3
    assert made.card["database"]["sources"] == {"library": 1, "list": 2}
    assert dict(made.confidence.of(1).ions) == {"[M+H]+": 1.0}
    analogs = made.fitted.states[1].arrays
    assert len(analogs["precursors"]) == 52  # the run's own, which the ranker was fitted for
    assert "- list: 2 molecules" in made.licence
    assert "CC BY-SA 4.0" in made.licence


@pytest.mark.slow
def test_molecules_replaced_later_give_the_same_bytes(
    fitted_run: Run, bundle: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "list.csv").write_text("smiles,name,id\nCCCCO,butanol,CID:263\nCCCCCC,hexane,\n")
    lists = MoleculeLists([tmp_path / "list.csv"], electrospray_only=True)
    details = {"S0-1": {"license": "CC BY", "contributor": "Anna", "source": "a.tsv"}}
    options = ExportOptions(details=details, lists=lists)
    whole = export_run(fitted_run, tmp_path / "whole", options, jobs=1)
    said: list[str] = []
    later = replace_molecules(bundle, tmp_path / "later", lists, jobs=1, say=said.append)

    def contents(folder: Path) -> dict[str, bytes]:
        """All but what depends on the confidence, which was fitted with other molecules."""
        fitted = {"confidence.json", "card.json", "manifest.json"}
        return {
            path.name: path.read_bytes() for path in folder.iterdir() if path.name not in fitted
        }

    assert contents(later.folder) == contents(whole.folder)
    assert len(contents(whole.folder)) >= 5
    assert len(later.molecules) == len(bundle.molecules) + 1
    assert said == [
        "1 records skipped: has no atom that takes or loses a proton "
        f"(first: {tmp_path / 'list.csv'}: line 3)"
    ]
    again = replace_molecules(later, later.folder, MoleculeLists(), jobs=1)
    assert again.manifest == bundle.manifest


def test_unknown_licences_are_said(bundle: Bundle) -> None:
    assert "Keep it to yourself" in bundle.licence
    assert "| Anna | CC BY | 1 |" in bundle.licence


def test_a_number_of_peaks_that_is_none_is_refused(fitted_run: Run, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="peaks to keep are 0, expected 1 to 10,000"):
        export_run(fitted_run, tmp_path / "out", ExportOptions(max_peaks=0))


def test_options_are_those_of_the_fit(fitted_run: Run) -> None:
    assert fit_options(fitted_run) == FitOptions()


def test_it_says_what_the_bundle_holds(bundle: Bundle) -> None:
    card = bundle.card
    own = card["library"]
    assert own["spectra"] == len(bundle.library)
    assert own["modes"]["positive"]["ions"] == {"[M+H]+": own["spectra"]}
    assert own["licences"] == {"not stated": own["spectra"] - 1, "CC BY": 1}
    assert card["database"] == {
        "molecules": len(bundle.molecules), "sources": {"library": len(bundle.molecules)},
        "named": 0, "identified": 0, "linked": 0,
    }  # fmt: skip
    assert card["channels"] == ["fragments", "analogs"]
    assert card["learned_from"] == ["train"]
    assert card["fitted_on"]["positive"] == {"molecules": 8, "own": False}
    assert any("too few molecules" in line for line in card["limits"])
    assert not any("learned once more" in line for line in card["limits"])


def test_it_says_that_channels_have_learned_once_more(bundle: Bundle) -> None:
    references = References.of_library(bundle.library)
    card = card_of(
        bundle.fitted, bundle.confidence, references, bundle.molecules,
        measured={}, made_of={}, folds=("train", "val", "test"), max_peaks=100,
    )  # fmt: skip
    assert "learned once more, from all folds" in card["limits"][0]
