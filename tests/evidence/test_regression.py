"""Kernel regression over known spectra."""

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mzseek.evidence.analogs import Regression, _mirrored, _solve, _solve_by_rows
from mzseek.evidence.queries import TrainingSet
from mzseek.library.similarity import peak_lists
from mzseek.spectra import Spectrum


def test_a_known_spectrum_speaks_for_its_own_molecule(lessons: TrainingSet) -> None:
    peaks, ions = peak_lists(lessons.spectra)
    made = Regression.of(peaks, ions, lessons.molecule, 0.01)
    weights = made.weights(peaks, ions)
    assert weights.shape == (len(made.molecule), len(lessons.spectra))
    assert (made.molecule[weights.argmax(0)] == lessons.molecule).mean() > 0.95


def test_doubt_makes_plain_similarities_of_weights(lessons: TrainingSet) -> None:
    peaks, ions = peak_lists(lessons.spectra)
    one = peak_lists(lessons.spectra[:3])
    more, most = (
        Regression.of(peaks, ions, lessons.molecule, doubt).weights(*one) * doubt
        for doubt in (1e4, 1e6)
    )
    assert np.allclose(more, most, atol=2e-2)
    assert most.min() >= -1e-5
    assert 0.5 < most.max() <= 1.001


def test_modes_do_not_mix(lessons: TrainingSet) -> None:
    turned = [replace(each, adduct="[M-H]-", charge=-1) for each in lessons.spectra[:4]]
    peaks, ions = peak_lists(lessons.spectra)
    made = Regression.of(peaks, ions, lessons.molecule, 1.0)
    assert (made.weights(*peak_lists(turned)) == 0).all()
    both, signs = peak_lists([*lessons.spectra, *turned])
    molecule = np.append(lessons.molecule, lessons.molecule[:4])
    more = Regression.of(both, signs, molecule, 1.0)
    assert len(more.molecule) == len(made.molecule) + len(np.unique(lessons.molecule[:4]))
    said = more.weights(*peak_lists(turned))
    assert (np.count_nonzero(said, axis=0) <= len(np.unique(lessons.molecule[:4]))).all()
    assert said.max() > 0.1


def test_the_weights_of_a_spectrum_are_the_same_bits_whatever_is_solved_beside_it(
    lessons: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = peak_lists(lessons.spectra)

    def weights(spectra: list[Spectrum]) -> np.ndarray:
        """By a regression that has kept nothing."""
        return Regression.of(*known, lessons.molecule, 1.0).weights(*peak_lists(spectra))

    together = weights(lessons.spectra)
    with threadpool_limits(1):
        assert np.array_equal(weights(lessons.spectra), together)
    for place in (0, 7, len(lessons.spectra) - 1):
        assert np.array_equal(weights(lessons.spectra[place : place + 1])[:, 0], together[:, place])
    monkeypatch.setattr("mzseek.evidence.analogs.is_plain", lambda: True)
    assert np.array_equal(weights(lessons.spectra), together)


def test_weights_that_are_kept_are_those_of_the_same_spectrum(lessons: TrainingSet) -> None:
    made = Regression.of(*peak_lists(lessons.spectra), lessons.molecule, 1.0)
    together = made.weights(*peak_lists(lessons.spectra))
    turned = [lessons.spectra[place] for place in (5, 2, 5)]
    assert np.array_equal(made.weights(*peak_lists(turned)), together[:, [5, 2, 5]])
    other = replace(lessons.spectra[5], precursor_mz=lessons.spectra[5].precursor_mz + 1)
    assert not np.array_equal(made.weights(*peak_lists([other]))[:, 0], together[:, 5])
    assert made.weights(*peak_lists([])).shape == (len(made.molecule), 0)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 257, 600])
def test_triangular_systems_are_solved(size: int) -> None:
    rng = np.random.default_rng(size)
    half = rng.normal(size=(size, size)).astype(np.float32) / np.sqrt(size)
    matrix = half @ half.T + np.eye(size, dtype=np.float32)
    factor = _mirrored(np.linalg.cholesky(matrix.astype(np.float64)).T)
    assert np.array_equal(factor, factor.T)
    wanted = rng.normal(size=(3, size))
    compiled, plain = wanted @ matrix, wanted @ matrix
    _solve(factor, compiled)
    _solve_by_rows(factor, plain)
    assert np.array_equal(compiled, plain)
    assert np.allclose(compiled, wanted, atol=1e-4)
