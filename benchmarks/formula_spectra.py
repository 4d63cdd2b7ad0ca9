"""Spectra of the shared folds for formula ranking: precursors blurred, survey scans simulated."""

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mzseek.chem.adducts import parse_adduct
from mzseek.chem.formulas import parse_formula
from mzseek.formulas.enumeration import counts_of
from mzseek.formulas.isotopes import predicted_ratios
from mzseek.formulas.subformulas import Ions
from mzseek.io import stable_hash
from mzseek.spectra import Spectrum, read_spectra

SETS = ("massbank", "massbank_more")
BLUR_PPM = 2.0
_LEAST_RATIO = 0.005  # of the monoisotopic peak, that a survey scan shows


def fold_spectra(shared: Path, fold: str, per_molecule: int = 1) -> Iterator[Spectrum]:
    """Yield spectra of a fold of both sets, at most so many for each molecule and ion.

    They are drawn by a hash of their identifiers. Precursors are blurred, since what is recorded
    is often the exact mass of the formula.
    """
    for name in SETS:
        drawn: dict[tuple[str, str], list[tuple[int, Spectrum]]] = {}
        for spectrum in read_spectra(shared / "data" / f"{name}.tsv.gz", []):
            if spectrum.metadata["fold"] != fold or spectrum.adduct is None:
                continue
            key = (spectrum.metadata["inchikey"], spectrum.adduct)
            order = stable_hash(spectrum.identifier.encode())
            drawn.setdefault(key, []).append((order, spectrum))
            drawn[key] = sorted(drawn[key], key=lambda pair: pair[0])[:per_molecule]
        for pairs in drawn.values():
            yield from (blurred(spectrum) for _, spectrum in pairs)


def blurred(spectrum: Spectrum) -> Spectrum:
    """Return a spectrum with an error of 2 ppm (standard deviation) added to its precursor."""
    error = BLUR_PPM * 1e-6 * generator(spectrum, "blur").standard_normal()
    return replace(spectrum, precursor_mz=spectrum.precursor_mz * (1 + error))


def generator(spectrum: Spectrum, purpose: str) -> np.random.Generator:
    """Return random numbers that depend on the spectrum's identifier only."""
    return np.random.default_rng(stable_hash(spectrum.identifier.encode(), purpose.encode()))


def true_formula(spectrum: Spectrum) -> str:
    """Return the formula of the molecule, as ranking writes it."""
    return str(parse_formula(spectrum.metadata["formula"]))


def with_simulated_scan(spectrum: Spectrum, error: float | tuple[float, float]) -> Spectrum:
    """Add a survey scan with the ion's isotope pattern, intensities off by a relative error.

    Of a pair of errors one between them is drawn.
    """
    random = generator(spectrum, "isotopes")
    adduct = parse_adduct(str(spectrum.adduct))
    counts = counts_of(parse_formula(spectrum.metadata["formula"]))
    ratios = predicted_ratios(Ions.of(counts[None], adduct).counts[0])
    relative = error if isinstance(error, float) else random.uniform(*error)
    measured = ratios * (1 + relative * random.standard_normal(len(ratios)))
    offsets = np.flatnonzero(measured >= _LEAST_RATIO)
    mz = spectrum.precursor_mz + offsets * 1.00287 / abs(adduct.charge)
    peaks = " ".join(
        f"{m!r}:{i!r}" for m, i in zip(mz.tolist(), measured[offsets].tolist(), strict=True)
    )
    return replace(spectrum, metadata=spectrum.metadata | {"ms1_peaks": peaks})


def open_text(path: Path) -> Iterator[str]:
    """Yield the lines of a gzipped text."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from stream
