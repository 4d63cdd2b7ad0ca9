"""Isotope patterns: measured in survey scans, predicted of formulas, and compared."""

from dataclasses import dataclass
from functools import lru_cache

import IsoSpecPy
import numpy as np
import numpy.typing as npt

from mzseek.formulas.enumeration import ELEMENTS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_OFFSET = 4  # of isotopologues, in neutrons
_COVERED = 0.9995  # share of the isotopologues that is predicted
# Neutrons weigh between these masses in isotopologues: 15N, 34S and 81Br at one end, 13C and 2H at
# the other.
_LEAST_STEP, _MOST_STEP, _REACH = 0.9950, 1.0045, 0.004
# Error of intensities over that of the monoisotopic peak: relative, and at least.
_RELATIVE, _LEAST = 0.07, 0.012
_FREEDOM = 4.0  # degrees of freedom of Student's t: a peak may be quite wrong


@dataclass(frozen=True, eq=False)
class IsotopePattern:
    """Intensities of the isotopologues of an ion over that of the monoisotopic one.

    Attributes
    ----------
    ratios : float64 array, shape (offsets,)
        With 0, 1, 2 … neutrons more; 0 for those that were not seen.
    least : float
        The lowest ratio that the scan would have shown.
    """

    ratios: Floats
    least: float


def parse_peaks(text: str) -> tuple[Floats, Floats]:
    """Read peaks as readers keep survey scans: ``mz:intensity`` with blanks between.

    Examples
    --------
    >>> parse_peaks("285.07:100 286.08:17")
    (array([285.07, 286.08]), array([100.,  17.]))
    """
    pairs = np.array([pair.split(":") for pair in text.split()], np.float64).reshape(-1, 2)
    order = np.argsort(pairs[:, 0], kind="stable")
    return pairs[order, 0], pairs[order, 1]


def measured_pattern(
    mz: Floats, intensities: Floats, precursor_mz: float, charge: int, ppm: float
) -> IsotopePattern | None:
    """Return the isotope pattern of a precursor in a survey scan.

    None where its monoisotopic peak is missing, or no other of its isotopologues was seen.

    Examples
    --------
    >>> mz, intensities = np.array([287.0550, 288.0584, 289.061]), np.array([100.0, 16.5, 2.0])
    >>> measured_pattern(mz, intensities, 287.0550, 1, 10.0).ratios.tolist()
    [1.0, 0.165, 0.02, 0.0, 0.0]
    """
    size = abs(charge)
    near = np.abs(mz - precursor_mz) <= max(ppm * 1e-6 * precursor_mz, _REACH / 2)
    if not near.any():
        return None
    mono = mz[near][np.argmax(intensities[near])]
    first = intensities[near].max()
    ratios = np.zeros(MAX_OFFSET + 1)
    ratios[0] = 1.0
    for offset in range(1, MAX_OFFSET + 1):
        low = mono + (offset * _LEAST_STEP - _REACH) / size
        high = mono + (offset * _MOST_STEP + _REACH) / size
        ratios[offset] = intensities[(mz >= low) & (mz <= high)].sum() / first
        if ratios[offset] == 0:  # what comes after a gap belongs to another ion
            break
    if not ratios[1:].any():
        return None
    return IsotopePattern(ratios, float(intensities.min() / first))


def predicted_ratios(ion: Ints) -> Floats:
    """Return the predicted pattern of an ion, by its counts, over its monoisotopic peak.

    Examples
    --------
    >>> from mzseek.chem.formulas import parse_formula
    >>> from mzseek.formulas.enumeration import counts_of
    >>> predicted_ratios(counts_of(parse_formula("C6H5Cl"))).round(3).tolist()
    [1.0, 0.066, 0.322, 0.021, 0.001]
    """
    text = "".join(f"{name}{n}" for name, n in zip(ELEMENTS, ion.tolist(), strict=True) if n > 0)
    return _predicted(text)


@lru_cache(maxsize=65_536)
def _predicted(formula: str) -> Floats:
    pattern = IsoSpecPy.IsoTotalProb(formula=formula, prob_to_cover=_COVERED)
    masses, shares = pattern.np_masses(), pattern.np_probs()
    mono = IsoSpecPy.Iso(formula=formula).getMonoisotopicPeakMass()
    offsets = np.round((masses - mono) / 1.0015).astype(np.int64)
    inside = (offsets >= 0) & (offsets <= MAX_OFFSET)
    total = np.bincount(offsets[inside], shares[inside], minlength=MAX_OFFSET + 1)
    return np.asarray(total / max(total[0], 1e-12))


def pattern_scores(pattern: IsotopePattern, ions: Ints) -> Floats:
    """Return the log-likelihood of a measured pattern for each ion, shape (ions,).

    Up to a constant; up to the first isotopologue that was not seen, which must be rarer than the
    lowest intensity of the scan.
    """
    predicted = np.array([predicted_ratios(ion) for ion in ions]).reshape(len(ions), MAX_OFFSET + 1)
    missing = np.flatnonzero(pattern.ratios == 0)
    last = int(missing[0]) if len(missing) else MAX_OFFSET
    score = np.zeros(len(ions))
    for offset in range(1, last + 1):
        expected, seen = predicted[:, offset], pattern.ratios[offset]
        if seen == 0:
            expected = np.maximum(expected - pattern.least, 0.0)
        spread = np.hypot(_RELATIVE * np.maximum(predicted[:, offset], seen), _LEAST)
        away = (expected - seen) / spread
        score -= 0.5 * (_FREEDOM + 1) * np.log1p(away**2 / _FREEDOM) + np.log(spread)
    return score
