import numpy as np

from mzseek.networks.scorers.layers import norms, slices


def test_slices_cover_all_lists_in_order() -> None:
    assert slices(np.array([2, 0, 3])) == [slice(0, 2), slice(2, 2), slice(2, 5)]
    assert slices(np.array([], np.int64)) == []


def test_norms_are_lengths_of_rows() -> None:
    rows = np.array([[3, 4], [0, 0]], np.float32)
    assert norms(rows).tolist() == [5, 0]
    assert norms(rows).dtype == np.float32
