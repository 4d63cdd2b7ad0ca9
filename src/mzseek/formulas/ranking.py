"""Rank the formulas and ions that a feature may have: a calibrated posterior over both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import ELECTRON_MASS, USUAL_ADDUCTS
from mzseek.core.errors import MoleculeError
from mzseek.formulas.enumeration import DEFAULT_ELEMENTS, MASSES, formula_text
from mzseek.formulas.model import FEATURES, FormulaModel, shipped_model
from mzseek.formulas.scoring import ScoredFormulas, SpectrumEvidence, score_formulas
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]

PPM = 5.0
_LISTED = 10


@dataclass(frozen=True)
class PeakFormula:
    """The part of an ion that explains a peak.

    Attributes
    ----------
    mz : float
    formula : str
        With the charge.
    error_ppm : float
        Measured minus computed m/z.
    """

    mz: float
    formula: str
    error_ppm: float


@dataclass(frozen=True)
class RankedFormula:
    """A formula that a feature may have, under an adduct hypothesis.

    Attributes
    ----------
    formula : str
        Of the molecule, in Hill order.
    adduct : str
    probability : float
        Calibrated, among the formulas of all ions tried.
    mass : float
        Monoisotopic, of the molecule.
    error_ppm : float
        Measured minus computed m/z of the precursor.
    explained : float
        Share of the intensity in peaks that a part of the ion explains.
    peaks_explained : int
    isotope_score : float or None
        Log-likelihood of the isotope pattern, over that of the best formula; None without one.
    prior : float
        Log-odds of the formula, whatever the spectrum, over the average formula of the list.
    contributions : mapping of str to float
        Log-odds that each kind of evidence adds, over the average formula of the list.
    peaks : tuple of PeakFormula
        Explained peaks, of the first formulas only.
    """

    formula: str
    adduct: str
    probability: float
    mass: float
    error_ppm: float
    explained: float
    peaks_explained: int
    isotope_score: float | None
    prior: float
    contributions: Mapping[str, float] = field(default_factory=dict)
    peaks: tuple[PeakFormula, ...] = ()


def rank_formulas(
    spectra: Any,
    adducts: Sequence[str] | None = None,
    *,
    ppm: float = PPM,
    elements: Sequence[str] = DEFAULT_ELEMENTS,
    top: int = _LISTED,
    model: FormulaModel | None = None,
) -> tuple[RankedFormula, ...]:
    """Rank the formulas of a feature, without any database.

    Parameters
    ----------
    spectra : Spectrum, sequence of Spectrum, or Feature
        Of one ion; survey scans that readers have found with them (``ms1_peaks``) are used.
    adducts : sequence of str, optional
        Ions that it may be; by default the one that the spectra state, or the usual ones of their
        polarity.
    ppm : float
        Tolerance of the precursor.
    elements : sequence of str
        Of `mzseek.formulas.ELEMENTS`.
    top : int
        How many to return.
    model : FormulaModel, optional
        By default the one that comes with mzseek.

    Returns
    -------
    tuple of RankedFormula
        The most probable first.

    Raises
    ------
    MoleculeError
        The mass is too large or the tolerance too wide, or no ion can be tried.

    Examples
    --------
    >>> caffeine = Spectrum(
    ...     np.array([110.0713, 138.0662, 195.0877]), np.array([20.0, 100.0, 50.0]), 195.0877,
    ...     "[M+H]+", 1, "caffeine")
    >>> rank_formulas(caffeine)[0].formula
    'C8H10N4O2'
    """
    listed = _as_list(spectra)
    stated = adducts is not None
    if adducts is None:
        named = tuple(dict.fromkeys(s.adduct for s in listed if s.adduct))
        stated = bool(named)
        adducts = named[:1] or USUAL_ADDUCTS[_charge(listed)]
    scored = score_formulas(
        SpectrumEvidence.of(listed), adducts, ppm, model or shipped_model(), elements,
        stated=stated,
    )  # fmt: skip
    return ranked(scored, model or shipped_model(), top)


def ranked(scored: ScoredFormulas, model: FormulaModel, top: int) -> tuple[RankedFormula, ...]:
    """Turn evidence into probabilities, and return the most probable formulas."""
    if not len(scored.counts):
        return ()
    mode = model.modes[1 if scored.adducts[0].charge > 0 else -1]
    scaled = scored.features * mode.weights / mode.temperature
    logs = np.cumsum(scaled, 1)[:, -1]
    weights = np.exp(logs - logs.max())
    p = weights / weights.sum()
    texts = [
        formula_text(counts, int(charge))
        for counts, charge in zip(scored.counts, scored.charges, strict=True)
    ]
    order = sorted(range(len(p)), key=lambda at: (-p[at], texts[at], scored.adducts[at].name))
    average = scaled.mean(0)
    isotopes = FEATURES.index("isotopes")
    best_pattern = scored.features[:, isotopes].max()
    return tuple(
        RankedFormula(
            formula=texts[at],
            adduct=scored.adducts[at].name,
            probability=float(p[at]),
            mass=float(scored.counts[at] @ MASSES),
            error_ppm=float(scored.error_ppm[at]),
            explained=float(scored.explained[at]),
            peaks_explained=int(scored.explained_peaks[at]),
            isotope_score=None
            if scored.pattern is None
            else float(scored.features[at, isotopes] - best_pattern),
            prior=float((scaled - average)[at, FEATURES.index("prior")]),
            contributions=_contributions((scaled - average)[at]),
            peaks=peak_formulas(scored, at) if rank < 1 else (),
        )
        for rank, at in enumerate(order[:top])
    )


def peak_formulas(scored: ScoredFormulas, row: int) -> tuple[PeakFormula, ...]:
    """Return the parts of an ion that explain peaks, by rising m/z."""
    found = []
    for rows, ions, match in scored.matches:
        for at in np.flatnonzero(rows == row).tolist():
            sign = 1 if scored.adducts[row].charge > 0 else -1
            for peak, mz in enumerate(scored.peaks.mz.tolist()):
                counts = match.fragment(ions.counts[at], at, peak)
                if counts is not None:
                    exact = float(counts @ MASSES) - sign * ELECTRON_MASS
                    text = formula_text(counts, sign)
                    found.append(PeakFormula(mz, text, (mz - exact) / exact * 1e6))
    return tuple(found)


def _contributions(values: Floats) -> dict[str, float]:
    """Return log-odds by kind of evidence."""
    kinds = {"strong": "fragments", "medium": "fragments", "weak": "fragments",
             "faint": "fragments", "explained": "fragments"}  # fmt: skip
    sums: dict[str, float] = {}
    for name, value in zip(FEATURES, values.tolist(), strict=True):
        kind = kinds.get(name, name)
        sums[kind] = sums.get(kind, 0.0) + value
    return sums


def _as_list(spectra: Any) -> list[Spectrum]:
    if isinstance(spectra, Spectrum):
        return [spectra]
    listed = list(getattr(spectra, "spectra", spectra))
    if not listed:
        raise MoleculeError("no spectrum was given, expected at least one")
    return listed


def _charge(spectra: Sequence[Spectrum]) -> int:
    sign = next((s.polarity for s in spectra if s.polarity), 1)
    size = next((abs(s.charge) for s in spectra if s.charge), 1)
    if sign * size not in USUAL_ADDUCTS:
        raise MoleculeError(f"charge {sign * size} and no adduct: name the ion")
    return sign * size
