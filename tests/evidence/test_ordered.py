"""Questions in an order of their own."""

import numpy as np

from mzseek.evidence.queries import LabelledQueries, in_order


def test_any_order_becomes_one_order(asked: LabelledQueries, shuffled: LabelledQueries) -> None:
    one, other = in_order(asked), in_order(shuffled)
    assert [s.identifier for s in one.lists.spectra] == [s.identifier for s in other.lists.spectra]
    assert np.array_equal(one.blocks, other.blocks)
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one.lists.candidates, other.lists.candidates)


def test_nothing_is_lost(asked: LabelledQueries) -> None:
    one = in_order(asked)
    assert sorted(s.identifier for s in one.lists.spectra) == sorted(
        s.identifier for s in asked.lists.spectra
    )
    truths = {s.identifier: b for s, b in zip(asked.lists.spectra, asked.blocks, strict=True)}
    assert [truths[s.identifier] for s in one.lists.spectra] == one.blocks.tolist()
    assert np.array_equal(one.lists.counts.sum(), asked.lists.counts.sum())
    named = np.array(one.lists.molecules.smiles)[one.lists.candidates]
    assert set(named[one.labels]) == set(
        np.array(asked.lists.molecules.smiles)[asked.lists.candidates][asked.labels]
    )
