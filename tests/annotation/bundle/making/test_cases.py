"""Validation lists with and without their molecule."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.confidence import NAMES
from mzseek.bundle.bundle import Bundle
from mzseek.bundle.fit_confidence import WHOLE, Case, CaseTable, make_cases, modes_of, only
from mzseek.bundle.molecules import BundledMolecules, molecule_table
from mzseek.bundle.refit import references_from
from mzseek.datasets.prepared import Prepared
from mzseek.decision import Calibration
from mzseek.evidence.model import EvidenceModel
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run


def some_lists() -> ListScores:
    return ListScores(
        queries=np.array([0, 1, 2]),
        molecule=np.array([5, 5, 6], np.int32),
        counts=np.array([3, 3, 1]),
        candidates=np.array([5, 7, 8, 5, 7, 8, 6], np.int32),
        identity=np.array([1, 0, 0, 1, 0, 0, 1], np.uint8),
        scores=np.array([2.0, 1.0, 0.0, 4.0, 0.0, 0.0, 1.0], np.float32),
    )


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


def test_only_some_lists() -> None:
    kept = only(some_lists(), np.array([2, 0]))
    assert kept.queries.tolist() == [2, 0]
    assert kept.scores.tolist() == [1.0, 2.0, 1.0, 0.0]


def test_modes_follow_adducts(small: Prepared) -> None:
    assert set(modes_of(small, np.arange(5)).tolist()) == {1}
