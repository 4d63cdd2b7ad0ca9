"""Kernel regression over known spectra."""

from dataclasses import replace

import numpy as np

from mzseek.evidence.known import Lessons
from mzseek.evidence.regression import Regression
from mzseek.library.lists import lists_of


def test_a_known_spectrum_speaks_for_its_own_molecule(lessons: Lessons) -> None:
    peaks, ions = lists_of(lessons.spectra)
    made = Regression.of(peaks, ions, lessons.molecule, 0.01)
    weights = made.weights(peaks, ions)
    assert weights.shape == (len(made.molecule), len(lessons.spectra))
    assert (made.molecule[weights.argmax(0)] == lessons.molecule).mean() > 0.95


def test_doubt_makes_plain_similarities_of_weights(lessons: Lessons) -> None:
    peaks, ions = lists_of(lessons.spectra)
    one = lists_of(lessons.spectra[:3])
    more, most = (
        Regression.of(peaks, ions, lessons.molecule, doubt).weights(*one) * doubt
        for doubt in (1e4, 1e6)
    )
    assert np.allclose(more, most, atol=2e-2)
    assert most.min() >= -1e-5
    assert 0.5 < most.max() <= 1.001


def test_modes_do_not_mix(lessons: Lessons) -> None:
    turned = [replace(each, adduct="[M-H]-", charge=-1) for each in lessons.spectra[:4]]
    peaks, ions = lists_of(lessons.spectra)
    made = Regression.of(peaks, ions, lessons.molecule, 1.0)
    assert (made.weights(*lists_of(turned)) == 0).all()
    both, signs = lists_of([*lessons.spectra, *turned])
    molecule = np.append(lessons.molecule, lessons.molecule[:4])
    more = Regression.of(both, signs, molecule, 1.0)
    assert len(more.molecule) == len(made.molecule) + len(np.unique(lessons.molecule[:4]))
    said = more.weights(*lists_of(turned))
    assert (np.count_nonzero(said, axis=0) <= len(np.unique(lessons.molecule[:4]))).all()
    assert said.max() > 0.1
