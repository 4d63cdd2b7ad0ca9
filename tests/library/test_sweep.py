"""The kernel passes over nothing that it should find: held to all pairs, scored one by one."""

import numpy as np
import pytest

from mzseek.library.library import Index
from mzseek.library.similarity import greedy_cosine, peak_lists


@pytest.mark.parametrize("tolerance", [0.02, 0.3])
@pytest.mark.parametrize("kind", ["cosine", "modified"])
def test_all_pairs_one_by_one(draw, kind: str, tolerance: float) -> None:
    references, spectra = draw(50), draw(20, seed=3)
    index = Index(kind, *peak_lists(references), tolerance)
    best = index.search(*peak_lists(spectra), 50, np.arange(50), np.ones(50, bool))
    for query, spectrum in enumerate(spectra):
        wanted = np.zeros(50)
        for record, reference in enumerate(references):
            shift = reference.precursor_mz - spectrum.precursor_mz if kind == "modified" else 0.0
            wanted[record], _ = greedy_cosine(
                reference.mz, reference.intensities, spectrum.mz, spectrum.intensities, tolerance,
                shift,
            )  # fmt: skip
        found = np.zeros(50)
        met = best.records[query] >= 0
        found[best.records[query][met]] = best.scores[query][met]
        np.testing.assert_array_equal(found, wanted)


def test_equal_scores_come_in_the_order_of_the_library(draw) -> None:
    one = draw(1)
    best = Index("cosine", *peak_lists(one * 5), 0.02).search(
        *peak_lists(one), 3, np.arange(5), np.ones(5, bool)
    )
    assert best.records.tolist() == [[0, 1, 2]]
