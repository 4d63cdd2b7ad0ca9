"""What peaks of uncurated spectra are: fragments, isotope peaks, or neither; and how intense.

    python benchmarks/uncurated.py cbio_standards.msp

Reads MS2 records of positive mode with an InChI whose precursor is [M+H]+. Isotope peaks are
1.00336 above a peak of more than twice their intensity; others are explained by the molecule or
not, within 25 ppm. Ranges of `mzseek.spectra.augmentation` follow these numbers.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem.Descriptors import ExactMolWt

from mzseek.fragments import explain
from mzseek.spectra import Spectrum

PROTON, ISOTOPE_STEP, CARBON_RATIO = 1.00728, 1.00336, 0.0108 / 19


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    given = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    spectra = peaks = isotopes = above = 0
    unexplained: list[float] = []
    ratios: list[float] = []
    for spectrum, smiles in records(given.library):
        mz, heights = spectrum.mz, spectrum.intensities
        rows = explain(spectrum, smiles, ppm=25, refine=False)
        explained = np.array([row.formula is not None for row in rows])
        higher, lower = np.nonzero(
            (np.abs(mz[:, None] - mz - ISOTOPE_STEP) < 0.006) & (heights[:, None] < 0.5 * heights)
        )
        isotope = np.isin(np.arange(len(mz)), higher)
        ratios += (heights[higher] / heights[lower] / (CARBON_RATIO * mz[lower])).tolist()
        neither = ~explained & ~isotope & (np.abs(mz - spectrum.precursor_mz) > 3)
        unexplained += (heights / heights.max())[neither].tolist()
        spectra, peaks, isotopes = spectra + 1, peaks + len(mz), isotopes + isotope.sum()
        above += (mz > spectrum.precursor_mz + 0.5).sum()
    print(f"{spectra} spectra, {peaks} peaks, {above / peaks:.1%} above the precursor")
    quartiles = np.quantile(ratios, [0.25, 0.5, 0.75]).round(2).tolist()
    print(f"isotope peaks: {isotopes / peaks:.1%}; their intensity over that of an average")
    print(f"composition, quartiles: {quartiles}")
    quantiles = np.quantile(unexplained, [0.05, 0.25, 0.5, 0.75, 0.9]).round(4).tolist()
    print(f"neither: {len(unexplained) / peaks:.1%}")
    print(f"their relative intensities, quantiles 5, 25, 50, 75, 90 %: {quantiles}")


def records(library: Path) -> Iterator[tuple[Spectrum, str]]:
    """Spectra of [M+H]+ with the SMILES of their molecule."""
    for number, text in enumerate(library.read_text(encoding="utf-8").split("\n\n")):
        lines = text.splitlines()
        stated = dict(line.split(": ", 1) for line in lines if ": " in line)
        pairs = [line.split()[:2] for line in lines if line[:1].isdigit()]
        if stated.get("Spectrum_type") != "MS2" or stated.get("Ion_mode") != "POSITIVE":
            continue
        molecule = Chem.MolFromInchi(f"InChI={stated.get('InChI', '')}")
        if molecule is None or not pairs:
            continue
        precursor = float(stated["PrecursorMZ"])
        if abs(precursor - ExactMolWt(molecule) - PROTON) > 0.02:
            continue
        mz, heights = np.array(sorted((float(a), float(b)) for a, b in pairs)).T
        spectrum = Spectrum(mz, heights, precursor, "[M+H]+", 1, str(number))
        yield spectrum, Chem.MolToSmiles(molecule)


if __name__ == "__main__":
    main()
