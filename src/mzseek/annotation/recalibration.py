"""Mass errors and background of a file, from its peaks and fragments of candidates."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mzseek.annotation.candidates import Molecule, Source
from mzseek.annotation.config import AUTO, OFF, AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.query import FeatureQuery, Hypothesis, ask
from mzseek.core.errors import AnnotationError
from mzseek.evidence.queries import Molecules
from mzseek.fragments import ion_forms, plausible
from mzseek.fragments.fragmentation import BONDS, Fragments
from mzseek.fragments.matching import MAX_HYDROGENS_MOVED
from mzseek.io import stable_hash
from mzseek.spectra import Spectrum
from mzseek.spectra.cleaning import background_lines
from mzseek.spectra.recalibration import (
    MAX_ERROR,
    MIN_SPECTRA,
    FileErrors,
    MassErrors,
    estimate_curve,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
CANDIDATES = 10  # of a spectrum, whose fragments its peaks are compared with
MAX_BONDS = 2  # cleavages of a fragment that a mass error is read from
_LEAST_INTENSITY = 0.01  # of the strongest peak
_SAME_FORMULA = 1e-7  # m/z


def file_errors(sample: Sequence[Feature], source: Source, config: AnnotateConfig) -> FileErrors:
    """Estimate the mass error of a file and find its background lines, from some of its features.

    No curve is returned if it is not significant.

    Parameters
    ----------
    sample : sequence of Feature
        Their order has an effect on rounding only.
    source : Source
        Of candidates, some of which are drawn for each feature by a hash of their keys.
    config : AnnotateConfig
    """
    if len(sample) < MIN_SPECTRA:
        return FileErrors()
    queries = []
    for feature in sample:
        try:
            query = ask(feature, source, config)
        except AnnotationError:
            continue
        if query.n_candidates:
            queries.append(query)
    errors = mass_errors(queries, source)
    curve = estimate_curve(errors) if config.recalibrate == AUTO else None
    if config.clean == OFF:
        return FileErrors(curve)
    # Features of a sample have one spectrum each.
    spectra = [query.feature.spectra[0] for query in queries]
    return FileErrors(curve, background_lines(spectra, errors, curve))


def mass_errors(queries: Sequence[FeatureQuery], source: Source) -> MassErrors:
    """Compare peaks with the fragments of candidates, of up to two cleavages and no radicals."""
    drawn = [_drawn(query) for query in queries]
    table, row_of = _table([m for pairs in drawn for _, m in pairs], source)
    weights = plausible()
    parts: list[tuple[Floats, Ints, Floats, Floats]] = []
    spectrum_of: list[int] = []
    for number, (query, pairs) in enumerate(zip(queries, drawn, strict=True)):
        for at, spectrum in enumerate(query.feature.spectra):
            matches = [
                _formulas(
                    spectrum, hypothesis.adducts[at], table.fragments.of(row_of[m.smiles]), weights
                )
                for hypothesis, m in pairs
            ]
            part = _errors(spectrum, np.concatenate([np.empty((0, 3)), *matches]))
            parts.append(part)
            spectrum_of += [number] * len(part[0])
    empty = np.empty(0)
    mz, counts, ppm, of_formula = (
        np.concatenate([empty, *(part[column] for part in parts)]) for column in range(4)
    )
    return MassErrors(mz, np.array(spectrum_of, np.int64), counts.astype(np.int64), ppm, of_formula)


def _drawn(query: FeatureQuery) -> list[tuple[Hypothesis, Molecule]]:
    pairs = [
        (hypothesis, molecule)
        for hypothesis, listed in zip(query.hypotheses, query.molecules, strict=True)
        for molecule in listed
    ]
    pairs.sort(key=lambda pair: stable_hash(pair[1].key.encode(), pair[0].adduct.encode()))
    return pairs[:CANDIDATES]


def _table(molecules: Sequence[Molecule], source: Source) -> tuple[Molecules, dict[str, int]]:
    """Return a table of molecules, those of the source's index first, and the row of each."""
    row = {molecule.smiles: molecule.row for molecule in molecules}
    order = sorted(row, key=lambda smiles: row[smiles] < 0)
    indexed = None
    if source.index is not None:
        indexed = np.array([row[smiles] for smiles in order if row[smiles] >= 0], np.int64)
    table = Molecules(order, jobs=1, index=source.index, index_rows=indexed)
    table.compute(fragments=True)
    return table, {smiles: at for at, smiles in enumerate(order)}


def _formulas(spectrum: Spectrum, adduct: str, fragments: Fragments, weights: Floats) -> Floats:
    """Pairs of a peak and a fragment ion within `MAX_ERROR`: peak, m/z and plausibility."""
    forms = ion_forms(adduct)
    few_cleavages = np.flatnonzero(BONDS[fragments.codes] <= MAX_BONDS)
    masses, codes = fragments.masses[few_cleavages], fragments.codes[few_cleavages]
    # An even number of electrons: no radicals, whose masses are met by chance more often.
    electrons = fragments.electrons[few_cleavages][:, None] + forms.electrons
    hydrogens = fragments.hydrogens[few_cleavages][:, None] + forms.hydrogens
    is_possible = (electrons % 2 == 0) & (hydrogens >= 0)
    row, form = np.nonzero(is_possible)
    mz = (masses[row] + forms.shifts[form]) / np.abs(forms.charges[form])
    plausibility = weights[codes[row], 0, forms.hydrogens[form] + MAX_HYDROGENS_MOVED]
    order = np.argsort(mz, kind="stable")
    mz, plausibility = mz[order], plausibility[order]
    peaks = np.flatnonzero(
        spectrum.intensities >= _LEAST_INTENSITY * spectrum.intensities.max(initial=0.0)
    )
    measured = spectrum.mz[peaks]
    low = np.searchsorted(mz, measured / (1 + MAX_ERROR * 1e-6))
    high = np.searchsorted(mz, measured / (1 - MAX_ERROR * 1e-6), side="right")
    counts = high - low
    peak = np.repeat(peaks, counts)
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - low, counts)
    return np.stack([peak, mz[inside], plausibility[inside]], 1)


def _errors(spectrum: Spectrum, matches: Floats) -> tuple[Floats, Ints, Floats, Floats]:
    """Merge equal formulas of candidates: peaks, formulas of each, their errors and weights."""
    matches = matches[np.lexsort((matches[:, 1], matches[:, 0]))]
    peak, mz, plausibility = matches.T
    is_new = np.ones(len(matches), np.bool_)
    is_new[1:] = (np.diff(peak) > 0) | (np.diff(mz) > _SAME_FORMULA)
    first = np.flatnonzero(is_new)
    weight = np.add.reduceat(plausibility, first) if len(first) else plausibility
    peaks, index, counts = np.unique(peak[first], return_inverse=True, return_counts=True)
    measured = spectrum.mz[peaks.astype(np.int64)]
    total = np.bincount(index, weight, minlength=len(peaks))
    ppm = (measured[index] - mz[first]) / mz[first] * 1e6
    return measured, counts, ppm, weight / total[index]
