"""Questions and lessons."""

import numpy as np

from mzseek.evidence.known import Lessons, Questions


def test_some_questions_keep_their_answers(asked: Questions) -> None:
    wanted = np.array([5, 2, 7])
    some = asked.only(wanted)
    assert np.array_equal(some.blocks, asked.blocks[wanted])
    assert np.array_equal(some.lists.candidates, asked.lists.candidates[asked.rows(wanted)])
    assert np.array_equal(some.labels, asked.labels[asked.rows(wanted)])
    assert some.lists.ragged.sum(some.labels, int).tolist() == [1, 1, 1]


def test_every_molecule_counts_once(asked: Questions) -> None:
    some = asked.only(np.array([0, 1, 2]))  # two spectra of one molecule, one of another
    assert some.weights().tolist() == [0.5, 0.5, 1.0]


def test_lessons_without_molecules_know_nothing_of_them(lessons: Lessons) -> None:
    gone = lessons.blocks[:5]
    left = lessons.without(gone)
    assert not np.isin(left.learned_from, gone).any()
    assert len(left.learned_from) == len(lessons.learned_from) - 5
    assert len(left.spectra) == len(lessons.spectra) - 10
    assert len(left.questions) == len(lessons.questions) - 10
    kept = {spectrum.identifier for spectrum in left.spectra}
    assert not kept & {
        spectrum.identifier
        for spectrum, molecule in zip(lessons.spectra, lessons.molecule, strict=True)
        if molecule < 5
    }
