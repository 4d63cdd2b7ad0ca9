"""Confidence fitted on validation."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.confidence import COVERAGES, NAMES, QUANTILES
from mzseek.bundle import Bundle
from mzseek.bundle.fit_confidence import (
    WHOLE,
    Case,
    CaseTable,
    auc_of,
    error_of,
    fit_confidence,
    fit_in_database,
    fit_logistic,
    fit_match_odds,
    make_cases,
    modes_of,
    usable_lists,
)
from mzseek.bundle.fitting import references_from
from mzseek.bundle.molecules import BundledMolecules, molecule_table
from mzseek.chem import exact_mass, precursor_mz
from mzseek.datasets.prepared import Prepared
from mzseek.decision import Calibration
from mzseek.evidence.fitting import StructureGroups, structure_groups_from
from mzseek.evidence.model import EvidenceModel
from mzseek.library import Library
from mzseek.runs.run import Run


@pytest.fixture
def cases(fitted_run: Run, small: Prepared, bundle_folder: Path) -> list[Case]:
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    rows = [
        {"key": small.inchikey14[at].decode(), "smiles": small.smiles[at], "formula": "",
         "mass": float(small.masses[at]), "sources": [], "identifiers": [], "names": []}
        for at in range(small.base_molecules)
    ]  # fmt: skip
    molecules = BundledMolecules(molecule_table(rows))
    fitted = EvidenceModel.open(fitted_run)
    return make_cases(
        small, "val", "mass", fitted, Bundle.open(bundle_folder).confidence, library, molecules
    )


def test_lists_are_thinned_to_each_length_with_and_without_their_molecule(
    cases: list[Case], small: Prepared
) -> None:
    assert {case.molecule for case in cases} <= set(small.molecule[small.in_fold("val")])
    pairs = list(zip(cases[::2], cases[1::2], strict=True))
    assert {case.size for case in cases} >= {1, 2, WHOLE}
    for present, missing in pairs:
        assert (present.molecule, present.size) == (missing.molecule, missing.size)
        assert (present.is_present, missing.is_present) == (True, False)
        assert not missing.is_right
        assert len(present.evidence.scores) == len(missing.evidence.scores)
        if present.size > 0:
            assert len(present.evidence.scores) == present.size
        # The background tells the lists apart by nothing.
        assert present.evidence.same_mass == missing.evidence.same_mass
        assert len(present.evidence.background) == len(missing.evidence.background)
    assert any(case.is_right for case in cases)


def test_features_of_cases_are_finite_and_length_tells_nothing(cases: list[Case]) -> None:
    table = CaseTable.of(cases, Calibration(1.0))
    assert np.isfinite(table.features).all()
    length = table.features[:, NAMES.index("log candidates")]
    assert length[::2].tolist() == length[1::2].tolist()
    assert table.margin[table.present].mean() > table.margin[~table.present].mean()
    assert ((table.explained >= 0) & (table.explained <= 1)).all()
    assert len(CaseTable.of([], Calibration(1.0)).present) == 0


def test_modes_follow_adducts(small: Prepared) -> None:
    assert set(modes_of(small, np.arange(5)).tolist()) == {1}


IONS = {"positive": Counter({"[M+H]+": 3, "[M+Na]+": 1}), "negative": Counter[str]()}


def test_all_numbers_are_fitted(fitted_run: Run, small: Prepared, bundle: Bundle) -> None:
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    found = fit_confidence(
        fitted_run, EvidenceModel.open(fitted_run), small, library, IONS, "mass", bundle.molecules
    )
    own = found.of(1)
    assert set(own.thresholds) == set(COVERAGES)
    falling = [own.thresholds[each] for each in COVERAGES]
    assert falling == sorted(falling, reverse=True)
    assert dict(own.ions) == {"[M+H]+": 0.75, "[M+Na]+": 0.25}
    assert own.ion_prior("[M+K]+") == pytest.approx(0.1)
    assert set(own.nearest) == set(QUANTILES)
    assert own.own is found.of(-1).own is False  # eight molecules are few
    assert own.molecules == 8
    assert own.together == {}
    assert 0 <= own.pooling.dependence <= 1


def test_an_ion_mode_with_molecules_enough_has_its_own_numbers(
    fitted_run: Run, small: Prepared, bundle: Bundle
) -> None:
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    fitted = EvidenceModel.open(fitted_run)
    found = fit_confidence(
        fitted_run, fitted, small, library, IONS, "mass", bundle.molecules, min_molecules=5
    )
    assert found.of(1).own
    assert not found.of(-1).own


def test_lists_hold_their_molecule(fitted_run: Run, small: Prepared) -> None:
    lists = usable_lists(fitted_run, small, "test", "mass")
    ends = np.cumsum(lists.counts)
    assert (np.add.reduceat(lists.identity, ends - lists.counts) == 1).all()
    blocks = small.inchikey14[lists.candidates[lists.identity > 0]]
    assert blocks.tolist() == small.inchikey14[lists.molecule].tolist()


def measured(small: Prepared) -> tuple[np.ndarray, StructureGroups]:
    molecules = np.unique(small.molecule)
    return molecules, structure_groups_from(small, molecules, 5)


def some_cases(features: np.ndarray, present: np.ndarray, molecules: np.ndarray) -> CaseTable:
    zeros = np.zeros(len(present))
    return CaseTable(
        features, present, present, zeros.astype(int), molecules, zeros + 0.5, zeros + 2.0
    )


def test_the_probability_is_measured_on_molecules_not_fitted_on(small: Prepared) -> None:
    """Features that tell nothing must come out as such, though a fit on all finds something."""
    molecules, groups = measured(small)
    features = np.random.default_rng(0).normal(size=(2 * len(molecules), len(NAMES)))
    cases = some_cases(features, np.tile([True, False], len(molecules)), np.repeat(molecules, 2))
    found = fit_in_database(cases, small, groups)
    assert found is not None
    assert found.auc["whole lists"] < 0.65
    p = found.probability(cases.features, 0.5)
    assert auc_of(p, cases.present, np.ones(len(p))) > found.auc["whole lists"]


def test_the_fit_finds_what_separates(small: Prepared) -> None:
    molecules, groups = measured(small)
    present = np.tile([True, False], len(molecules))
    features = np.random.default_rng(0).normal(size=(len(present), len(NAMES)))
    features[:, 1] += 3 * present
    found = fit_in_database(some_cases(features, present, np.repeat(molecules, 2)), small, groups)
    assert found is not None
    assert found.auc["whole lists"] > 0.9
    assert found.weights.argmax() == 1
    assert found.molecules == len(molecules)
    assert (found.least_explained, found.least_margin) == (0.5, 2.0)


def test_where_nothing_can_be_fitted_there_is_none(small: Prepared) -> None:
    molecules, groups = measured(small)
    nothing = some_cases(np.zeros((0, len(NAMES))), np.zeros(0, bool), np.zeros(0, int))
    assert fit_in_database(nothing, small, groups) is None
    one = some_cases(np.zeros((2, len(NAMES))), np.array([True, False]), molecules[[0, 0]])
    assert fit_in_database(one, small, groups) is None


def test_error_is_the_gap_between_said_and_true() -> None:
    labels = np.array([True, False, False, False])
    assert error_of(np.full(4, 0.25), labels, np.ones(4)) == pytest.approx(0)
    assert error_of(np.full(4, 0.75), labels, np.ones(4)) == pytest.approx(0.5)
    assert error_of(np.full(4, 0.75), labels, np.array([3.0, 0, 0, 1])) == pytest.approx(0)


def test_the_fit_finds_the_feature_that_separates() -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(400) % 2 == 0
    values = rng.normal(size=(400, 3))
    values[:, 1] += 2 * labels
    weights, _ = fit_logistic(values, labels, np.ones(400))
    assert np.argmax(np.abs(weights)) == 1
    assert weights[1] > 0


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """80 molecules, pairs of one mass; each measured by two contributors, nearly alike."""
    folder = tmp_path_factory.mktemp("library")
    rng = np.random.default_rng(0)
    text = ""
    for number in range(40):
        chain = "C" * (number % 20 + 2)
        ring = "c1ccccc1" if number < 20 else "c1ccncc1"
        for smiles in (f"{chain}O{ring}", f"{chain[:-1]}OC{ring}"):
            mz = np.sort(rng.uniform(50, 150, 12)).round(3)
            heights = rng.uniform(0.1, 1, 12)
            for whose in ("Anna", "Berta"):
                peaks = heights * rng.uniform(0.9, 1.1, 12)
                text += (
                    f"BEGIN IONS\nSPECTRUM_ID={smiles}-{whose}\nSMILES={smiles}\n"
                    f"CONTRIBUTOR={whose}\nADDUCT=[M+H]+\n"
                    f"PEPMASS={precursor_mz(exact_mass(smiles), '[M+H]+'):.5f}\n"
                    + "".join(f"{m} {h:.4f}\n" for m, h in zip(mz, peaks, strict=True))
                    + "END IONS\n"
                )
    (folder / "a.mgf").write_text(text)
    return Library.build(folder / "a.mgf", folder / "library")


def test_the_same_molecule_is_told_by_its_spectrum(library):
    odds = fit_match_odds(library, 1)
    assert (odds.same, odds.other) == (160, 160)
    assert (np.diff(odds.log_odds) >= 0).all()
    assert odds.of([0.0])[0] < -2
    assert odds.of([0.98])[0] > 2


def test_too_few_pairs_say_nothing(library, bundle):
    assert fit_match_odds(library, -1) is None
    assert fit_match_odds(bundle.library, 1) is None  # one contributor
