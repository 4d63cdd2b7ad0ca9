"""Mass error curves: a drift is found, noise gives none, and no order shows."""

import numpy as np
import pytest

from mzseek.spectra.recalibration import (
    MAX_ERROR,
    MIN_PEAKS,
    MassErrorCurve,
    MassErrors,
    estimate_curve,
    tolerance_of,
)
from mzseek.spectra.spectrum import Spectrum


def errors_of(drift, *, spread=1.5, peaks=900, share=0.5, seed=0, spectra=60):
    """Peaks of which a share has the right formula, with others that fit by chance."""
    rng = np.random.default_rng(seed)
    mz = np.sort(rng.uniform(50, 400, peaks))
    counts = rng.integers(1, 4, peaks)
    ppm = rng.uniform(-MAX_ERROR, MAX_ERROR, counts.sum())
    first = np.cumsum(counts) - counts
    is_right = rng.random(peaks) < share
    ppm[first[is_right]] = drift(mz[is_right]) + rng.normal(0, spread, is_right.sum())
    # The right formula is the last of some: its place says nothing.
    weights = np.repeat(1 / counts, counts)
    return MassErrors(mz, rng.integers(0, spectra, peaks), counts, ppm, weights)


STEEP = ([60.0, 140.0, 300.0], [30.0, 12.0, -3.0])
MZ = np.array([70.0, 100.0, 150.0, 200.0, 300.0, 380.0])


@pytest.mark.parametrize(
    "drift",
    [
        lambda mz: np.interp(mz, *STEEP),
        lambda mz: np.interp(mz, [70.0, 200.0], [12.0, 0.0]),
        lambda mz: np.full(len(mz), 8.0),
        lambda mz: np.full(len(mz), -25.0),
    ],
)
def test_a_drift_is_recovered(drift):
    curve = estimate_curve(errors_of(drift))
    assert curve is not None
    assert np.abs(curve.error_at(MZ) - drift(MZ)).max() < 2.0
    assert np.abs(curve.error_at(MZ) - drift(MZ)).mean() < 0.8
    assert curve.spread_after == pytest.approx(1.5, rel=0.3)
    assert curve.spread_before > 1.5 * curve.spread_after


def test_a_constant_error_is_one_knot():
    curve = estimate_curve(errors_of(lambda mz: np.full(len(mz), 8.0)))
    assert len(curve.mz) == 1
    assert curve.ppm[0] == pytest.approx(8.0, abs=0.3)


@pytest.mark.parametrize("seed", range(8))
def test_no_drift_gives_no_curve(seed):
    assert estimate_curve(errors_of(lambda mz: np.zeros(len(mz)), seed=seed)) is None


@pytest.mark.parametrize("seed", range(8))
def test_errors_by_chance_give_no_curve(seed):
    assert estimate_curve(errors_of(lambda mz: np.zeros(len(mz)), share=0.0, seed=seed)) is None


def test_few_peaks_or_spectra_give_no_curve():
    def drift(mz):
        return np.full(len(mz), 20.0)

    assert estimate_curve(errors_of(drift, peaks=MIN_PEAKS - 1)) is None
    assert estimate_curve(errors_of(drift, spectra=5)) is None
    nothing = np.empty(0)
    none = nothing.astype(np.int64)
    assert estimate_curve(MassErrors(nothing, none, none, nothing, nothing)) is None


def test_a_spectrum_is_corrected_to_exact_masses():
    curve = MassErrorCurve((100.0, 200.0), (10.0, 0.0), 500, 50, 6.0, 2.0)
    exact = np.array([80.0, 150.0, 250.0])
    measured = exact * (1 + np.array([10.0, 5.0, 0.0]) * 1e-6)
    spectrum = Spectrum(measured, np.ones(3), 300.0, "[M+H]+", 1, "a")
    assert curve.corrected(spectrum).mz == pytest.approx(exact, rel=1e-9)
    assert spectrum.mz is measured


def test_tolerances_follow_the_spread_within_bounds():
    widths = [tolerance_of(spread) for spread in np.linspace(0.1, 20, 50)]
    assert widths == sorted(widths)
    assert (widths[0], widths[-1]) == (10.0, 30.0)
