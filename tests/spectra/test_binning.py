import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.spectra import BINS, Spectrum, bin_peaks, bin_spectra
from mzseek.spectra.binning import bin_index

# m/z as files have them: four decimals, edges included; and any number at all.
written = st.integers(0, 12_000_000).map(lambda n: n / 10_000)
peak = st.tuples(written | st.floats(0.001, 1200), st.floats(1e-6, 1e6))
spectra = st.lists(st.lists(peak, max_size=30), max_size=5)


def dense_loop(peaks: list[tuple[float, float]]) -> list[float]:
    """The definition, peak by peak."""
    row = [0.0] * BINS
    for mz, intensity in sorted(peaks):
        if 10 <= mz <= 1005:
            tenths = mz * 10
            nearest = round(tenths)
            place = nearest if abs(tenths - nearest) <= 1e-6 else math.floor(tenths)
            row[min(place, BINS - 1)] += intensity
    return row


def to_arrays(lists: list[list[tuple[float, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flat = [peak for peaks in lists for peak in peaks]
    values = np.array(flat, dtype=float).reshape(-1, 2)
    return values[:, 0], values[:, 1], np.array([len(peaks) for peaks in lists], dtype=int)


@given(spectra)
def test_equals_the_dense_loop(lists: list[list[tuple[float, float]]]) -> None:
    got = bin_peaks(*to_arrays(lists), normalise=False)
    assert got.shape == (len(lists), BINS)
    for row, peaks in zip(got.toarray(), lists, strict=True):
        np.testing.assert_allclose(row, dense_loop(peaks), rtol=1e-6)


@given(spectra)
def test_intensity_in_range_is_conserved(lists: list[list[tuple[float, float]]]) -> None:
    got = bin_peaks(*to_arrays(lists), normalise=False).sum(axis=1)
    wanted = [sum(i for mz, i in peaks if 10 <= mz <= 1005) for peaks in lists]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@given(spectra)
def test_largest_bin_is_one(lists: list[list[tuple[float, float]]]) -> None:
    rows = bin_peaks(*to_arrays(lists))
    for row, peaks in zip(rows.toarray(), lists, strict=True):
        filled = any(10 <= mz <= 1005 for mz, _ in peaks)
        assert row.max(initial=0) == (1.0 if filled else 0.0)


@given(st.lists(peak, min_size=1, max_size=30), st.randoms())
def test_order_of_peaks_leaves_no_trace(peaks: list[tuple[float, float]], random) -> None:
    shuffled = peaks.copy()
    random.shuffle(shuffled)
    one, other = (bin_peaks(*to_arrays([p])) for p in (peaks, shuffled))
    assert np.array_equal(one.indices, other.indices)
    assert np.array_equal(one.data, other.data)  # to the last bit


@given(st.integers(100, 10_050))
def test_an_edge_belongs_to_the_bin_that_begins_there(tenths: int) -> None:
    expected = min(tenths, BINS - 1)
    noisy = [tenths / 10, tenths * 0.1, sum([0.1] * 10) * tenths / 10, float(f"{tenths / 10:.1f}")]
    noisy += [np.nextafter(tenths / 10, 0), np.nextafter(tenths / 10, 2000)]
    assert bin_index(np.array(noisy)).tolist() == [expected] * len(noisy)


def test_the_edge_that_division_misses() -> None:
    assert math.floor(77.1 / 0.1) == 770  # what naive code does
    assert bin_index(np.array([77.1])).tolist() == [771]
    assert bin_index(np.array([77.1], dtype=np.float32)).tolist() == [771]
    assert bin_index(np.array([77.0999])).tolist() == [770]


def test_range_is_closed() -> None:
    row = bin_peaks(np.array([9.9999, 10.0, 1005.0, 1005.0001]), np.ones(4), np.array([4]))
    assert row.indices.tolist() == [100, 10_049]


def test_other_widths() -> None:
    row = bin_peaks(np.array([50.0, 99.99]), np.ones(2), np.array([2]), width=1.0, high=100.0)
    assert row.shape == (1, 100)
    assert row.indices.tolist() == [50, 99]


def test_one_many_and_none(make_spectrum) -> None:
    one = make_spectrum([50.0, 60.0], [1.0, 2.0])
    assert bin_spectra(one).toarray().tolist() == bin_spectra([one]).toarray().tolist()
    assert bin_spectra([]).shape == (0, BINS)
    many = bin_spectra(iter([one, make_spectrum([5.0], [1.0]), one]))
    assert np.diff(many.indptr).tolist() == [2, 0, 2]
    assert many.dtype == np.float32


def test_vectorised_over_many_spectra() -> None:
    rng = np.random.default_rng(0)
    mz, intensities = rng.uniform(1, 1100, 50_000), rng.exponential(1, 50_000)
    together = bin_peaks(mz, intensities, np.full(1000, 50))
    for place in (0, 17, 999):
        part = slice(50 * place, 50 * (place + 1))
        alone = bin_spectra(Spectrum(mz[part], intensities[part], 1.0, None, None, "x"))
        assert (together[[place]] != alone).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes(dtype: type) -> None:
    row = bin_peaks(np.array([100.05], dtype), np.array([3], dtype), np.array([1]))
    assert row.indices.tolist() == [1000]
