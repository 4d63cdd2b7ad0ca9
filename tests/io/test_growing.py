"""Arrays that grow on disk."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.io.arrays import AppendableArray, appendable_arrays


def test_rows_are_those_that_were_added(tmp_path: Path) -> None:
    forms = [("flat.npy", np.uint16, ()), ("wide.npy", np.float64, (3,))]
    with appendable_arrays(tmp_path, forms) as (flat, wide):
        for start in range(0, 10_000, 2_500):
            flat.append(np.arange(start, start + 2_500))
        wide.append(np.ones((2, 3)))
        wide.append(np.zeros((0, 3)))
    assert np.array_equal(np.load(tmp_path / "flat.npy"), np.arange(10_000))
    assert np.load(tmp_path / "flat.npy").dtype == np.uint16
    assert np.load(tmp_path / "wide.npy").shape == (2, 3)


def test_nothing_at_all(tmp_path: Path) -> None:
    AppendableArray(tmp_path / "none.npy", np.int8, (4,)).close()
    assert np.load(tmp_path / "none.npy").shape == (0, 4)


@pytest.mark.parametrize(
    "rows", [np.array([70_000]), np.array([-1]), np.array([0.5]), np.ones((2, 2), int)]
)
def test_what_does_not_fit_is_refused(tmp_path: Path, rows: np.ndarray) -> None:
    array = AppendableArray(tmp_path / "narrow.npy", np.uint16)
    with pytest.raises(ValueError, match="do not fit"):
        array.append(rows)
    array.close()
    assert np.load(tmp_path / "narrow.npy").shape == (0,)
