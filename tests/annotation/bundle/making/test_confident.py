"""Confidence, fitted."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.absence import NAMES
from mzseek.annotation.bundle.making.cases import Cases
from mzseek.annotation.bundle.making.confident import (
    auc_of,
    error_of,
    fit_absence,
    fit_confidence,
    usable_lists,
)
from mzseek.annotation.bundle.making.references import references_from
from mzseek.annotation.confidence import COVERAGES, QUANTILES
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.crossfit import Groups
from mzseek.evidence.fitting.swapped import groups_from
from mzseek.prepared.reader import Prepared
from mzseek.runs.run import Run

IONS = {"positive": Counter({"[M+H]+": 3, "[M+Na]+": 1}), "negative": Counter[str]()}


def test_all_numbers_are_fitted(fitted_run: Run, small: Prepared) -> None:
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    found = fit_confidence(
        fitted_run, Fitted.open(fitted_run), small, library, IONS, "mass", jobs=1
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
    fitted_run: Run, small: Prepared
) -> None:
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    fitted = Fitted.open(fitted_run)
    found = fit_confidence(fitted_run, fitted, small, library, IONS, "mass", jobs=1, few=5)
    assert found.of(1).own
    assert not found.of(-1).own


def test_lists_hold_their_molecule(fitted_run: Run, small: Prepared) -> None:
    lists = usable_lists(fitted_run, small, "test", "mass")
    ends = np.cumsum(lists.counts)
    assert (np.add.reduceat(lists.identity, ends - lists.counts) == 1).all()
    blocks = small.blocks[lists.candidates[lists.identity > 0]]
    assert blocks.tolist() == small.blocks[lists.molecule].tolist()


def measured(small: Prepared) -> tuple[np.ndarray, Groups]:
    molecules = np.unique(small.molecule)
    return molecules, groups_from(small, molecules, 5)


def test_absence_is_measured_on_molecules_not_fitted_on(small: Prepared) -> None:
    """Signs that tell nothing must come out as such, though a fit on all would find something."""
    molecules, groups = measured(small)
    rng = np.random.default_rng(0)
    cases = Cases(
        rng.normal(size=(2 * len(molecules), len(NAMES))),
        np.tile([True, False], len(molecules)),
        np.repeat(molecules, 2),
    )
    found = fit_absence(cases, small, groups)
    assert found is not None
    assert found.auc < 0.65
    inside = auc_of(found.present(cases.features), cases.present, np.ones(len(cases.present)))
    assert inside > found.auc


def test_absence_finds_what_tells(small: Prepared) -> None:
    molecules, groups = measured(small)
    rng = np.random.default_rng(0)
    present = np.tile([True, False], len(molecules))
    features = rng.normal(size=(len(present), len(NAMES)))
    features[:, 1] += 3 * present
    found = fit_absence(Cases(features, present, np.repeat(molecules, 2)), small, groups)
    assert found is not None
    assert found.auc > 0.9
    assert found.weights.argmax() == 1
    assert found.molecules == len(molecules)


def test_where_nothing_can_be_fitted_there_is_none(small: Prepared) -> None:
    molecules, groups = measured(small)
    nothing = Cases(np.zeros((0, len(NAMES))), np.zeros(0, bool), np.zeros(0, int))
    assert fit_absence(nothing, small, groups) is None
    one = Cases(np.zeros((2, len(NAMES))), np.array([True, False]), molecules[[0, 0]])
    assert fit_absence(one, small, groups) is None


def test_error_is_the_gap_between_said_and_true() -> None:
    labels = np.array([True, False, False, False])
    assert error_of(np.full(4, 0.25), labels, np.ones(4)) == pytest.approx(0)
    assert error_of(np.full(4, 0.75), labels, np.ones(4)) == pytest.approx(0.5)
    assert error_of(np.full(4, 0.75), labels, np.array([3.0, 0, 0, 1])) == pytest.approx(0)
