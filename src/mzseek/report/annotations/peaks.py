"""The peaks of a feature and what a candidate's pieces make of them, as few numbers."""

from typing import Any

import numpy as np

from mzseek.annotation.answers import Candidate, Floats
from mzseek.annotation.features import Feature
from mzseek.errors import MzseekError
from mzseek.fragments import explain
from mzseek.fragments.match import LEAST, PPM
from mzseek.spectra import Spectrum

# Peaks that are drawn; of more, the strongest.
MOST_PEAKS = 160
# Of a reference spectrum.
MOST_REFERENCE_PEAKS = 80
_PER_MZ = 10_000
_FULL = 1000  # intensity of the strongest


def shown_spectrum(feature: Feature) -> Spectrum:
    """The spectrum that stands for a feature: the one with the most peaks, of equals the first."""
    return max(feature.spectra, key=len)


def packed_peaks(mz: Floats, intensities: Floats, most: int = MOST_PEAKS) -> list[list[int]]:
    """The strongest peaks in order of m/z: m/z in 1/10,000, intensity in 1/1,000 of the strongest.

    Examples
    --------
    >>> packed_peaks(np.array([50.0, 60.5]), np.array([1.0, 4.0]))
    [[500000, 605000], [250, 1000]]
    """
    kept = strongest(intensities, most)
    if not len(kept):
        return [[], []]
    relative = intensities[kept] / float(intensities.max())
    return [
        [round(float(each) * _PER_MZ) for each in mz[kept]],
        [max(1, round(float(each) * _FULL)) for each in relative],
    ]


def strongest(intensities: Floats, most: int) -> Floats:
    """Places of the strongest, in rising order; of equals the first."""
    return np.sort(np.argsort(-intensities, kind="stable")[:most])


def packed_pieces(
    spectrum: Spectrum, candidate: Candidate, *, ppm: float = PPM, least: float = LEAST
) -> list[list[Any]]:
    """What a candidate explains of the peaks that are drawn.

    Returns
    -------
    list of list
        Of each explained peak: place among `packed_peaks`, formula, charge, error in 1/10 ppm,
        atoms (a number in hexadecimal whose bits are places in the SMILES), bonds broken, hydrogens
        moved, pieces alike. Empty where the molecule or its ion cannot be taken apart.
    """
    kept = strongest(spectrum.intensities, MOST_PEAKS)
    try:
        rows = explain(
            spectrum, candidate.smiles, adduct=candidate.adduct or None, ppm=ppm, least=least
        )
    except MzseekError:
        return []
    return [
        [
            place,
            row.formula,
            row.charge,
            round((row.error_ppm or 0.0) * 10),
            format(sum(1 << atom for atom in row.atoms), "x"),
            row.bonds,
            row.hydrogens,
            row.alike,
        ]
        for place, row in enumerate(rows[int(peak)] for peak in kept)
        if row.formula is not None
    ]
