"""The control: the spectrum of another molecule."""

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.fitting import structure_groups_from, swapped


def test_every_spectrum_is_of_another_molecule_that_is_nearest(small: Prepared) -> None:
    queries = small.in_fold("train")
    found = swapped(small, queries)
    groups = structure_groups_from(small, np.unique(small.molecule[queries]), 1)
    cluster = groups.cluster[groups.indices(small.inchikey14[small.molecule[queries]])]
    own = groups.cluster[groups.indices(small.inchikey14[small.molecule[found]])]
    assert (own != cluster).all()
    mz = small.precursor_mz
    for place, (query, other) in enumerate(zip(queries, found, strict=True)):
        free = queries[cluster != cluster[place]]
        assert abs(mz[other] - mz[query]) <= np.abs(mz[free] - mz[query]).min() + 1e-3


def test_no_order_shows(small: Prepared) -> None:
    queries = small.in_fold("train")
    order = np.random.default_rng(0).permutation(len(queries))
    assert np.array_equal(swapped(small, queries[order]), swapped(small, queries)[order])


def test_a_molecule_alone_has_none_to_take(small: Prepared) -> None:
    alone = small.in_fold("train")[:2]  # two spectra of one molecule
    with pytest.raises(EvidenceError, match=r"no spectrum of \[M\+H\]\+ of another molecule"):
        swapped(small, alone)
