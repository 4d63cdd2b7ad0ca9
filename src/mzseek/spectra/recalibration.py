"""Mass error of a file as a smooth function of m/z, estimated from peaks of assumed formulas.

A peak is compared with the exact m/z of the formulas that it may have. At most one of them is
right, and often none: the errors are a mixture of a narrow distribution around the curve and a
uniform one. The curve of the highest likelihood is found by dynamic programming over m/z and then
refined by expectation maximisation. It is kept only if it predicts the errors of spectra that it
was not fitted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.ragged import Ragged
from mzseek.spectra.spectrum import Spectrum

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ERROR = 50.0  # ppm: errors beyond are not looked for
MIN_PEAKS, MIN_SPECTRA = 100, 20  # with an assumed formula, for a curve
_PEAKS_PER_KNOT, _MAX_KNOTS = 40, 16
_STEP = 0.5  # ppm of the grid that the curve is found on
_SLOPE = 0.5  # nats for each ppm by which neighbouring knots differ
_STIFFNESS = 0.02  # of the second differences, in peaks per ppm² at a spread of 1 ppm
_ROUNDS, _FOLDS = 12, 5
_FIRST_SPREAD, _FIRST_SHARE, _MIN_SPREAD = 4.0, 0.5, 0.3  # ppm; share of right formulas; ppm
_SURE = 3.0  # standard errors by which the gain in likelihood must exceed 0
_NARROWER = 0.9  # spread around the curve over that around 0, at most
_SPREADS, _LEAST_PPM, _MOST_PPM = 5.0, 10.0, 30.0  # tolerance: spreads, and its bounds in ppm
_ROBUST = 1.4826  # standard deviations of a normal distribution in one median absolute deviation


@dataclass(frozen=True, eq=False)
class MassErrors:
    """Errors of peaks against the formulas that each may have.

    Attributes
    ----------
    mz : float64 array, shape (peaks,)
    spectrum : int64 array, shape (peaks,)
        Index of the spectrum of each.
    counts : int64 array, shape (peaks,)
        Formulas of each peak, at least one.
    ppm : float64 array, shape (formulas,)
        Measured minus exact m/z, those of the first peak first; within ± `MAX_ERROR`.
    weights : float64 array, shape (formulas,)
        How plausible each formula is; they add up to 1 for each peak.
    """

    mz: Floats
    spectrum: Ints
    counts: Ints
    ppm: Floats
    weights: Floats

    def __len__(self) -> int:
        return len(self.mz)

    def only(self, peaks: npt.NDArray[np.bool_]) -> "MassErrors":
        """Return the errors of some of the peaks."""
        formulas = np.repeat(peaks, self.counts)
        return MassErrors(
            self.mz[peaks], self.spectrum[peaks], self.counts[peaks], self.ppm[formulas],
            self.weights[formulas],
        )  # fmt: skip


@dataclass(frozen=True)
class MassErrorCurve:
    """The mass error of a file: linear between knots, constant beyond the first and the last.

    Attributes
    ----------
    mz, ppm : tuple of float
        Knots: m/z rising, and the error there (measured minus exact).
    peaks, spectra : int
        With an assumed formula, that the curve rests on.
    spread_before, spread_after : float
        Standard deviation (robust, ppm) of the errors around 0 and around the curve.

    Examples
    --------
    >>> curve = MassErrorCurve((100.0, 200.0), (10.0, 0.0), 500, 50, 6.0, 2.0)
    >>> curve.error_at(np.array([50.0, 150.0, 300.0])).tolist()
    [10.0, 5.0, 0.0]
    """

    mz: tuple[float, ...]
    ppm: tuple[float, ...]
    peaks: int
    spectra: int
    spread_before: float
    spread_after: float

    def error_at(self, mz: Floats) -> Floats:
        """Return the estimated error, in ppm, at some m/z."""
        return np.asarray(np.interp(mz, self.mz, self.ppm), np.float64)

    def corrected(self, spectrum: Spectrum) -> Spectrum:
        """Return a spectrum with the error taken off the m/z of its peaks."""
        mz = spectrum.mz / (1 + self.error_at(spectrum.mz) * 1e-6)
        return replace(spectrum, mz=mz)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain data."""
        return {
            "mz": [round(value, 4) for value in self.mz],
            "ppm": [round(value, 3) for value in self.ppm],
            "peaks": self.peaks,
            "spectra": self.spectra,
            "spread_before_ppm": round(self.spread_before, 3),
            "spread_after_ppm": round(self.spread_after, 3),
        }


@dataclass(frozen=True)
class FileErrors:
    """What the peaks of a file tell about its instrument.

    Attributes
    ----------
    curve : MassErrorCurve or None
    background : tuple of float
        m/z of its background lines (`mzseek.spectra.cleaning.background_lines`).
    """

    curve: MassErrorCurve | None = None
    background: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class _Fit:
    """A curve at knots, with the spread around it and the share of peaks that belong to it."""

    knots: Floats
    ppm: Floats
    sigma: float
    share: float

    def log_likelihood(self, errors: MassErrors) -> Floats:
        """Log-likelihood of each peak."""
        density = _density(errors, np.interp(errors.mz, self.knots, self.ppm), self.sigma)
        likelihood = Ragged(errors.counts).sum(density)
        return np.asarray(np.log(self.share * likelihood + (1 - self.share) / (2 * MAX_ERROR)))


def estimate_curve(errors: MassErrors) -> MassErrorCurve | None:
    """Estimate the mass error as a function of m/z; None where it cannot be told from noise.

    A curve must raise the likelihood of spectra that were left out (five folds) by three standard
    errors, and be a tenth narrower than the errors around 0 are. A constant error is preferred to
    a curve that predicts no better.

    Parameters
    ----------
    errors : MassErrors
    """
    spectra = len(np.unique(errors.spectrum))
    if len(errors) < MIN_PEAKS or spectra < MIN_SPECTRA:
        return None
    chosen, gain = None, None
    for number in (1, min(len(errors) // _PEAKS_PER_KNOT, _MAX_KNOTS)):
        held_out = _gain(errors, number, gain)
        if held_out is None:
            continue
        fit = _fit(errors, number)
        before, after = _robust_spreads(errors, fit)
        if after > _NARROWER * before:
            continue
        chosen, gain = (fit, before, after), held_out
    if chosen is None:
        return None
    fit, before, after = chosen
    return MassErrorCurve(
        tuple(fit.knots.tolist()), tuple(fit.ppm.tolist()), len(errors), spectra, before, after
    )


def _robust_spreads(errors: MassErrors, fit: _Fit) -> tuple[float, float]:
    """Return robust standard deviations of formulas that belong to a curve, around 0 and it."""
    centre = np.interp(errors.mz, fit.knots, fit.ppm)
    density = fit.share * _density(errors, centre, fit.sigma)
    peak = Ragged(errors.counts)
    total = peak.sum(density) + (1 - fit.share) / (2 * MAX_ERROR)
    belongs = density / peak.repeat_per_list(total)
    left = errors.ppm - peak.repeat_per_list(centre)
    return _robust_deviation(errors.ppm, belongs), _robust_deviation(left, belongs)


def _robust_deviation(values: Floats, weights: Floats) -> float:
    """Weighted median of the sizes, as the standard deviation of a normal distribution around 0."""
    order = np.argsort(np.abs(values), kind="stable")
    total = np.cumsum(weights[order])
    return float(_ROBUST * np.abs(values)[order][np.searchsorted(total, total[-1] / 2)])


def _gain(errors: MassErrors, number: int, other: Floats | None) -> Floats | None:
    """Gain in likelihood over no curve, by spectrum left out; None if not above `other`, or 0."""
    _, index = np.unique(errors.spectrum, return_inverse=True)
    gains = np.zeros(int(index.max()) + 1)
    for fold in range(_FOLDS):
        is_out = index % _FOLDS == fold
        train, out = errors.only(~is_out), errors.only(is_out)
        zero = _fit_spread(train, np.zeros(1), np.zeros(1))
        gain = _fit(train, number).log_likelihood(out) - zero.log_likelihood(out)
        gains += np.bincount(index[is_out], gain, minlength=len(gains))
    above = gains if other is None else gains - other
    error = above.std(ddof=1) / np.sqrt(len(above))
    return gains if above.mean() > _SURE * error else None


def _fit(errors: MassErrors, number: int) -> _Fit:
    """Fit a curve of so many knots: the most likely path, refined."""
    quantiles = (np.arange(number) + 0.5) / number
    knots = np.unique(np.quantile(errors.mz, quantiles))
    ppm = _path(errors, knots)
    fit = _fit_spread(errors, knots, ppm)
    basis = _hat(errors.mz, knots)
    bend = np.diff(np.eye(len(knots)), 2, axis=0)
    for _ in range(_ROUNDS):
        density = fit.share * _density(errors, basis @ fit.ppm, fit.sigma)
        peak = Ragged(errors.counts)
        total = peak.sum(density) + (1 - fit.share) / (2 * MAX_ERROR)
        belongs = density / peak.repeat_per_list(total)
        weight = peak.sum(belongs)
        target = peak.sum(belongs * errors.ppm)
        stiffness = _STIFFNESS * fit.sigma**2 * len(errors) / len(knots) * bend.T @ bend
        normal = basis.T @ (weight[:, None] * basis) + stiffness
        normal += 1e-6 * np.eye(len(knots))
        ppm = np.linalg.solve(normal, basis.T @ target)
        fit = _fit_spread(errors, knots, ppm, fit)
    return fit


def _fit_spread(errors: MassErrors, knots: Floats, ppm: Floats, start: _Fit | None = None) -> _Fit:
    """Fit spread and share of the peaks around a given curve."""
    sigma, share = (start.sigma, start.share) if start else (_FIRST_SPREAD, _FIRST_SHARE)
    centre, peak = np.interp(errors.mz, knots, ppm), Ragged(errors.counts)
    squares = (errors.ppm - np.repeat(centre, errors.counts)) ** 2
    for _ in range(_ROUNDS if start is None else 2):
        density = share * _density(errors, centre, sigma)
        total = peak.sum(density) + (1 - share) / (2 * MAX_ERROR)
        belongs = density / peak.repeat_per_list(total)
        share = float(np.clip(belongs.sum() / len(errors), 0.01, 0.99))
        sigma = max(float(np.sqrt((belongs * squares).sum() / belongs.sum())), _MIN_SPREAD)
    return _Fit(knots, ppm, sigma, share)


def _density(errors: MassErrors, centre: Floats, sigma: float) -> Floats:
    """Weighted normal density of the error of each formula around the curve."""
    away = (errors.ppm - np.repeat(centre, errors.counts)) / sigma
    return np.asarray(
        errors.weights * np.exp(-0.5 * away**2) / (sigma * np.sqrt(2 * np.pi)), np.float64
    )


def _path(errors: MassErrors, knots: Floats) -> Floats:
    """Find the most likely errors at the knots, neighbouring ones being near to each other."""
    grid = np.arange(-MAX_ERROR + _FIRST_SPREAD, MAX_ERROR - _FIRST_SPREAD + _STEP / 2, _STEP)
    nearest = np.abs(errors.mz[:, None] - knots).argmin(1)
    peak = Ragged(errors.counts)
    score = np.zeros((len(knots), len(grid)))
    for at, error in enumerate(grid):
        density = _density(errors, np.full(len(errors), error), _FIRST_SPREAD)
        likelihood = _FIRST_SHARE * peak.sum(density) + (1 - _FIRST_SHARE) / (2 * MAX_ERROR)
        score[:, at] = np.bincount(nearest, np.log(likelihood), minlength=len(knots))
    # Of equal paths the one nearest to 0: no gain, no correction.
    score -= 1e-9 * np.abs(grid)
    jump = _SLOPE * np.abs(grid[:, None] - grid)
    back = np.zeros(score.shape, np.int64)
    for knot in range(1, len(knots)):
        reached = score[knot - 1][:, None] - jump
        back[knot] = reached.argmax(0)
        score[knot] += reached.max(0)
    column = int(score[-1].argmax())
    columns = [column]
    for knot in range(len(knots) - 1, 0, -1):
        column = int(back[knot, column])
        columns.append(column)
    return np.asarray(grid[columns[::-1]], np.float64)


def _hat(mz: Floats, knots: Floats) -> Floats:
    """Shares of the knots in the value at each m/z, shape (peaks, knots)."""
    columns = [np.interp(mz, knots, unit) for unit in np.eye(len(knots))]
    return np.asarray(np.stack(columns, 1), np.float64)


def tolerance_of(sigma: float) -> float:
    """Return the tolerance of peaks, in ppm, for the standard deviation of their errors.

    Examples
    --------
    >>> tolerance_of(0.8), tolerance_of(4.0), tolerance_of(20.0)
    (10.0, 20.0, 30.0)
    """
    return float(np.clip(_SPREADS * sigma, _LEAST_PPM, _MOST_PPM))


def describe_curves(curves: Mapping[str, MassErrorCurve]) -> list[str]:
    """Return a line about each file whose masses were recalibrated."""
    return [
        f"Recalibrated {file}: peaks were off by {_range(curve.ppm)} ppm (by m/z, from "
        f"{curve.peaks:,} peaks of {curve.spectra:,} spectra); spread {curve.spread_before:.1f} "
        f"ppm before, {curve.spread_after:.1f} ppm after. --recalibrate off leaves masses as they "
        "are."
        for file, curve in curves.items()
    ]


def _range(ppm: tuple[float, ...]) -> str:
    low, high = (f"{value:+.1f}" for value in (min(ppm), max(ppm)))
    return low if low == high else f"{low} to {high}"
