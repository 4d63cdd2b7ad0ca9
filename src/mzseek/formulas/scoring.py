"""Evidence for the formulas of a feature: a row of numbers for each formula and ion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.chem.adducts import ELECTRON_MASS, Adduct, parse_adduct
from mzseek.core.errors import AdductError, MoleculeError
from mzseek.formulas.enumeration import DEFAULT_ELEMENTS, MASSES, enumerate_formulas
from mzseek.formulas.isotopes import IsotopePattern, measured_pattern, parse_peaks, pattern_scores
from mzseek.formulas.model import FEATURES, OTHER, RECALIBRATED, FormulaModel
from mzseek.formulas.subformulas import (
    Ions,
    Matches,
    PeakMasses,
    chosen_peaks,
    matched,
)
from mzseek.spectra import Spectrum
from mzseek.spectra.records import MS1_PEAKS, ORBITRAP, QTOF, instrument_kind

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SCORED = 200  # formulas whose fragments are compared with the peaks: the best by mass and prior
BEFORE_ISOTOPES = 4  # times as many have their isotope pattern compared
PRECURSOR_SPREAD = 2.0  # ppm, of a precursor that is sought within up to 10 ppm
_PEAK_PPM = {ORBITRAP: 10.0, QTOF: 20.0, OTHER: 15.0}
_BINS = (0.2, 0.05, 0.01)  # of the strongest peak: strong, medium and weak from here on
_SAME_PEAK = 5e-6  # m/z of pooled spectra
_RELATED_SHARE = 0.01  # of the strongest peak of the survey scan


@dataclass(frozen=True, eq=False)
class SpectrumEvidence:
    """What a feature shows: the peaks of its spectra together, and its survey scan.

    Attributes
    ----------
    mz, intensities : float64 arrays
        Of all spectra, each scaled to its strongest peak; peaks of several only once.
    precursor_mz : float
    ppm : float
        Tolerance of peaks.
    errors : str
        What is known of their errors, a key of `FormulaModel.error_cases`.
    ms1 : pair of float64 arrays, or None
        m/z and intensities of the survey scan.
    """

    mz: Floats
    intensities: Floats
    precursor_mz: float
    ppm: float
    errors: str
    ms1: tuple[Floats, Floats] | None

    @classmethod
    def of(cls, spectra: Sequence[Spectrum]) -> "SpectrumEvidence":
        """Pool the spectra of a feature."""
        mz = np.concatenate([spectrum.mz for spectrum in spectra])
        shares = np.concatenate([s.intensities / s.intensities.max() for s in spectra])
        if len(spectra) > 1:
            mz, shares = _pooled(mz, shares)
        estimated = spectra[0].peak_ppm
        kind = instrument_kind(spectra[0].metadata) or OTHER
        scans = [text for s in spectra if (text := s.metadata.get(MS1_PEAKS))]
        return cls(
            mz,
            shares,
            float(np.median([spectrum.precursor_mz for spectrum in spectra])),
            _PEAK_PPM.get(kind, _PEAK_PPM[OTHER]) if estimated is None else estimated,
            RECALIBRATED if estimated is not None else kind,
            parse_peaks(max(scans, key=len)) if scans else None,
        )


@dataclass(frozen=True, eq=False)
class ScoredFormulas:
    """Formulas of a feature under all adduct hypotheses, with their evidence.

    Attributes
    ----------
    counts : int64 array, shape (formulas, elements)
        Of the molecules.
    adducts : list of Adduct
        Of each formula.
    charges : int64 array, shape (formulas,)
        Permanent charge of the molecule.
    features : float64 array, shape (formulas, features)
        In the order of `FEATURES`.
    error_ppm : float64 array, shape (formulas,)
        Measured minus computed m/z of the precursor.
    explained, explained_peaks : arrays, shape (formulas,)
        Share of the intensity in explained peaks, and their number.
    pattern : IsotopePattern or None
    peaks : PeakMasses
    matches : list of (rows, Ions, Matches)
        By charge: the formulas (as rows of `counts`) that peaks were compared with.
    found : int
        Formulas that were enumerated; `counts` has the best of them.
    notes : tuple of str
    """

    counts: Ints
    adducts: list[Adduct]
    charges: Ints
    features: Floats
    error_ppm: Floats
    explained: Floats
    explained_peaks: Ints
    pattern: IsotopePattern | None
    peaks: PeakMasses
    matches: list[tuple[Ints, Ions, Matches]]
    found: int
    notes: tuple[str, ...]


def score_formulas(
    evidence: SpectrumEvidence,
    adducts: Sequence[str],
    reach_ppm: float,
    model: FormulaModel,
    elements: Sequence[str] = DEFAULT_ELEMENTS,
    *,
    stated: bool = True,
) -> ScoredFormulas:
    """Enumerate the formulas of a feature for each ion, and compare them with its peaks.

    Parameters
    ----------
    evidence : SpectrumEvidence
    adducts : sequence of str
        The ions that it may be.
    reach_ppm : float
        Tolerance of the precursor.
    model : FormulaModel
    elements : sequence of str
    stated : bool
        Whether a file or a user names the ion: one that is tried as usual is no radical.

    Raises
    ------
    MoleculeError
        Of no ion can formulas be enumerated.
    """
    parsed = [parse_adduct(name) for name in adducts]
    lists: list[tuple[Ints, Adduct, int]] = []
    notes = []
    for adduct in parsed:
        try:
            lists += _enumerated(evidence.precursor_mz, adduct, reach_ppm, elements, stated)
        except (AdductError, MoleculeError) as error:
            notes.append(str(error))
    if not lists:
        raise MoleculeError(notes[0] if notes else "no ion to enumerate formulas for")
    counts = np.concatenate([found for found, _, _ in lists])
    of_list = np.repeat(np.arange(len(lists)), [len(found) for found, _, _ in lists])
    features = np.zeros((len(counts), len(FEATURES)))
    column = {name: at for at, name in enumerate(FEATURES)}
    errors = np.zeros(len(counts))
    sign = 1 if parsed[0].charge > 0 else -1
    mode = model.modes[sign]
    features[:, column["prior"]] = model.prior.log_odds(counts)
    for at, (found, adduct, _) in enumerate(lists):
        rows = of_list == at
        mz = adduct.slope * (found @ MASSES) + adduct.offset
        errors[rows] = (evidence.precursor_mz - mz) / mz * 1e6
        features[rows, column["ion"]] = mode.ion_log_share(adduct.name)
        features[rows, column["related"]] = _related(evidence, adduct)
    spread = max(PRECURSOR_SPREAD, reach_ppm / 2.5 - PRECURSOR_SPREAD)
    features[:, column["mass"]] = -0.5 * (errors / spread) ** 2
    pattern = None
    if evidence.ms1 is not None:
        pattern = measured_pattern(
            *evidence.ms1, evidence.precursor_mz, parsed[0].charge, reach_ppm
        )
    ions = np.concatenate([Ions.of(found, adduct).counts for found, adduct, _ in lists])
    chosen = _first(
        _scores(features, mode.weights), SCORED * (1 if pattern is None else BEFORE_ISOTOPES)
    )
    if pattern is not None:
        features[chosen, column["isotopes"]] = pattern_scores(pattern, ions[chosen])
        chosen = chosen[_first(_scores(features[chosen], mode.weights), SCORED)]
    features, of_list, ions = features[chosen], of_list[chosen], ions[chosen]
    charges = np.array([parsed_.charge for _, parsed_, _ in lists])[of_list]
    peaks = chosen_peaks(evidence.mz, evidence.intensities, _last_mz(evidence, parsed))
    explained, explained_peaks = np.zeros(len(chosen)), np.zeros(len(chosen), np.int64)
    matches = []
    for charge in dict.fromkeys(adduct.charge for adduct in parsed):
        rows = np.flatnonzero(charges == charge)
        if not len(rows):
            continue
        of_charge = Ions(ions[rows], ions[rows] @ MASSES)
        ion_mass = abs(charge) * evidence.precursor_mz + charge * ELECTRON_MASS
        match = matched(
            peaks, of_charge, charge, ion_mass, evidence.ppm, model.part_weights, mode.common
        )
        matches.append((rows, of_charge, match))
        log_odds = match.log_odds(model.error_cases[evidence.errors])
        is_explained = match.parts >= 0
        bins = np.searchsorted(-np.array(_BINS), -peaks.shares)
        for at, name in enumerate(("strong", "medium", "weak", "faint")):
            features[rows, column[name]] = _sums(log_odds * (bins == at))
        roots = np.sqrt(peaks.shares)
        features[rows, column["explained"]] = _sums(is_explained * roots) / max(roots.sum(), 1e-9)
        total = max(peaks.shares.sum(), 1e-9)
        explained[rows] = _sums(is_explained * peaks.shares) / total
        explained_peaks[rows] = is_explained.sum(1)
    return ScoredFormulas(
        counts[chosen],
        [lists[at][1] for at in of_list],
        np.array([lists[at][2] for at in of_list], np.int64),
        features,
        errors[chosen],
        explained,
        explained_peaks,
        pattern,
        peaks,
        matches,
        len(counts),
        tuple(notes),
    )


def _enumerated(
    mz: float, adduct: Adduct, ppm: float, elements: Sequence[str], stated: bool
) -> list[tuple[Ints, Adduct, int]]:
    """Return the formulas that an ion may have, with the permanent charge of their molecules."""
    mass, reach = adduct.neutral_mass(mz), ppm * 1e-6 * mz / adduct.slope
    is_open = adduct.parts_charge is None or adduct.parts_charge != adduct.charge
    kinds = ([False] if stated or not is_open else []) + ([True] if is_open else [])
    lists = []
    for charged in kinds:
        found = enumerate_formulas(mass, reach, elements, charged=charged)
        is_possible = (Ions.of(found, adduct).counts >= 0).all(1)
        lists.append((found[is_possible], adduct, adduct.charge if charged else 0))
    return lists


def _scores(features: Floats, weights: Floats) -> Floats:
    """Return weighted sums of rows; not by BLAS, whose rounding depends on the number of rows."""
    return np.asarray(np.einsum("fi,i->f", features, weights))


def _first(scores: Floats, number: int) -> Ints:
    """Indices of the highest scores; of equal ones those of lower mass."""
    return np.argsort(-scores, kind="stable")[:number]


def _sums(values: npt.NDArray[Any]) -> Floats:
    """Sum each row from left to right, so that rounding does not depend on the array's shape."""
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.asarray(np.cumsum(values, 1)[:, -1], np.float64)


def _pooled(mz: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Merge peaks of nearly one m/z to the strongest of them."""
    kept: list[int] = []
    for at in np.lexsort((mz, -shares)).tolist():
        if all(abs(mz[at] - mz[other]) > _SAME_PEAK * mz[at] for other in kept):
            kept.append(at)
    order = np.array(sorted(kept, key=lambda at: float(mz[at])))
    return mz[order], shares[order]


def _last_mz(evidence: SpectrumEvidence, adducts: Sequence[Adduct]) -> float:
    """Return the highest m/z of a singly charged fragment."""
    return evidence.precursor_mz * max(abs(adduct.charge) for adduct in adducts)


def _related(evidence: SpectrumEvidence, adduct: Adduct) -> float:
    """Count other ions of the same molecule among the peaks of the survey scan."""
    if evidence.ms1 is None:
        return 0.0
    mz, intensities = evidence.ms1
    seen = mz[intensities >= _RELATED_SHARE * intensities.max()]
    mass = adduct.neutral_mass(evidence.precursor_mz)
    number = 0
    for name in _RELATED[1 if adduct.charge > 0 else -1]:
        other = parse_adduct(name)
        if name == adduct.name or other.slope * mass + other.offset <= 0:
            continue
        expected = other.slope * mass + other.offset
        number += bool((np.abs(seen - expected) <= evidence.ppm * 1e-6 * expected).any())
    return float(number)


_RELATED = {
    1: ("[M+H]+", "[M+Na]+", "[M+K]+", "[M+NH4]+", "[2M+H]+", "[2M+Na]+", "[M+H-H2O]+"),
    -1: ("[M-H]-", "[M+Cl]-", "[M+FA-H]-", "[M+HAc-H]-", "[2M-H]-", "[M-H-H2O]-"),
}
