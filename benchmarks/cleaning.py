"""What cleaning removes, by reason, and how much of it are fragments of the measured molecule.

    python benchmarks/cleaning.py set.tsv.gz [--fold val] [--corrupt]
    python benchmarks/cleaning.py cbio_standards.msp

A removed peak counts as a fragment if the molecule explains it within 10 ppm (25 ppm for the
standards), by up to three cleavages; beside it the same share of the peaks that stay. With
``--corrupt`` all parts of `mzseek.spectra.augmentation` but the drift are added before.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from corrupted import corruption, drawn, molecule_of
from mzseek.core.errors import MzseekError
from mzseek.datasets.files import read_table
from mzseek.fragments import explain
from mzseek.spectra import Spectrum
from mzseek.spectra.augmentation import PARTS
from mzseek.spectra.cleaning import artefacts, count_reasons
from uncurated import records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spectra", type=Path)
    parser.add_argument("--fold", default="val")
    parser.add_argument("--molecules", type=int, default=300)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--corrupt", action="store_true")
    given = parser.parse_args()
    peaks, explained, intensity = Counter[str](), Counter[str](), Counter[str]()
    spectra = touched = 0
    ppm = 25.0 if given.spectra.suffix == ".msp" else 10.0
    for spectrum, smiles in measured(given):
        try:
            rows = explain(spectrum, smiles, ppm=ppm, refine=False)
        except MzseekError:
            continue
        reasons = artefacts(spectrum)
        spectra, touched = spectra + 1, touched + any(reasons)
        total = spectrum.intensities.sum()
        for reason, row, height in zip(reasons, rows, spectrum.intensities, strict=True):
            kind = next(iter(count_reasons([reason])), "stays")
            peaks[kind] += 1
            explained[kind] += row.formula is not None
            intensity[kind] += height / total
    print(f"{spectra} spectra, {touched} of which lose peaks")
    for kind, number in peaks.most_common():
        print(
            f"{kind}: {number} peaks ({number / peaks.total():.1%}), "
            f"{intensity[kind] / spectra:.2%} of the intensity; "
            f"fragments of the molecule: {explained[kind] / number:.1%}"
        )


def measured(given: argparse.Namespace) -> Iterator[tuple[Spectrum, str]]:
    """Spectra and the SMILES of their molecules."""
    if given.spectra.suffix == ".msp":
        yield from records(given.spectra)
        return
    pool = [
        spectrum
        for spectrum in read_table(given.spectra, lambda where, reason: None)
        if spectrum.metadata["fold"] == given.fold
    ]
    corrupt = corruption(pool, tuple(part for part in PARTS if part != "drift"), 0)
    for spectrum in drawn(pool, given.molecules, given.each):
        smiles = molecule_of(spectrum)
        yield (corrupt(spectrum, smiles) if given.corrupt else spectrum), smiles


if __name__ == "__main__":
    main()
