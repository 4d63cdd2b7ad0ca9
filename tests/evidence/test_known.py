"""Questions and lessons."""

import numpy as np

from mzseek.evidence.queries import Queries, ReferenceSpectra, TrainingSet
from mzseek.library.similarity import PeakLists, PrecursorIons


def test_some_questions_keep_their_answers(asked: Queries) -> None:
    wanted = np.array([5, 2, 7])
    some = asked.only(wanted)
    assert np.array_equal(some.inchikey14, asked.inchikey14[wanted])
    assert np.array_equal(some.candidates, asked.candidates[asked.rows(wanted)])
    assert np.array_equal(some.labels, asked.labels[asked.rows(wanted)])
    assert some.ragged.sum(some.labels, int).tolist() == [1, 1, 1]


def test_every_molecule_counts_once(asked: Queries) -> None:
    some = asked.only(np.array([0, 1, 2]))  # two spectra of one molecule, one of another
    assert some.weights().tolist() == [0.5, 0.5, 1.0]


def test_lessons_without_molecules_know_nothing_of_them(lessons: TrainingSet) -> None:
    gone = lessons.inchikey14[:5]
    left = lessons.without(gone)
    assert not np.isin(left.molecules_used, gone).any()
    assert len(left.molecules_used) == len(lessons.molecules_used) - 5
    assert len(left.spectra) == len(lessons.spectra) - 10
    assert len(left.questions) == len(lessons.queries) - 10
    kept = {spectrum.identifier for spectrum in left.spectra}
    assert not kept & {
        spectrum.identifier
        for spectrum, molecule in zip(lessons.spectra, lessons.molecule, strict=True)
        if molecule < 5
    }


def test_measured_spectra_are_put_in_an_order_of_their_own():
    """Molecules of one block are one, equal spectra are one, and no order shows."""
    values, weights = np.array([50.0, 60.0, 50.0, 60.0, 70.0]), np.array([1.0, 0.5, 1.0, 0.5, 1.0])
    ions = PrecursorIons(np.array([100.0, 100.0, 90.0]), np.array([1, 1, 1], np.int8))
    peaks = PeakLists(np.array([0, 2, 4, 5]), values, weights)
    smiles, blocks = ["OCC", "CCO", "CC", "C"], np.array([b"B", b"B", b"A", b"Z"], "S14")
    given = ReferenceSpectra(peaks, ions, np.array([0, 1, 2]), smiles, blocks)
    found = given.in_order()
    assert (found.inchikey14.tolist(), list(found.smiles)) == ([b"A", b"B"], ["CC", "CCO"])
    assert found.molecule.tolist() == [0, 1]
    assert found.peaks.values.tolist() == [70.0, 50.0, 60.0]
    assert found.peaks.pointers.tolist() == [0, 1, 3]
    assert found.ions.precursors.tolist() == [90.0, 100.0]
    again = given.only(np.array([2, 1, 0])).in_order()
    assert again.contents() == found.contents()
    assert len(given.only(np.zeros(0, np.int64)).in_order()) == 0
