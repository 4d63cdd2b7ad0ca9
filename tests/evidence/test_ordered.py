"""Questions in an order of their own."""

import numpy as np

from mzseek.evidence.queries import Queries, in_order


def test_any_order_becomes_one_order(asked: Queries, shuffled: Queries) -> None:
    one, other = in_order(asked), in_order(shuffled)
    assert [s.identifier for s in one.spectra] == [s.identifier for s in other.spectra]
    assert np.array_equal(one.inchikey14, other.blocks)
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one.candidates, other.candidates)


def test_nothing_is_lost(asked: Queries) -> None:
    one = in_order(asked)
    assert sorted(s.identifier for s in one.spectra) == sorted(s.identifier for s in asked.spectra)
    truths = {s.identifier: b for s, b in zip(asked.spectra, asked.inchikey14, strict=True)}
    assert [truths[s.identifier] for s in one.spectra] == one.inchikey14.tolist()
    assert np.array_equal(one.counts.sum(), asked.counts.sum())
    named = np.array(one.molecules.smiles)[one.candidates]
    assert set(named[one.labels]) == set(
        np.array(asked.molecules.smiles)[asked.candidates][asked.labels]
    )
