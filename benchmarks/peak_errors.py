"""How many peak formulas a spectrum's own mass error removes, and how many of them were by chance.

    python benchmarks/peak_errors.py set.tsv.gz

One spectrum of each of some molecules of the train and val folds is explained by its molecule,
within the tolerance alone and with `refine`. Assignments by chance are those of the same peaks
shifted by 45 and 60 ppm, where no fragment of the molecule is expected.
"""

import argparse
import csv
import gzip
import sys
from pathlib import Path

import numpy as np

from mzseek.fragments import explain
from mzseek.fragments.annotation import MIN_ASSIGNED, MIN_HALF_WIDTH, SPREADS
from mzseek.spectra import Spectrum

TOLERANCES = {"Orbitrap": 10.0, "QTOF": 20.0}  # ppm
SHIFTS = (-60, -45, 45, 60)  # ppm


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("table", type=Path)
    asked.add_argument("--molecules", type=int, default=500)
    given = asked.parse_args()
    csv.field_size_limit(sys.maxsize)
    first: dict[tuple[str, str], dict[str, str]] = {}
    with gzip.open(given.table, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["fold"] in ("train", "val"):
                first.setdefault((row["inchikey"], row["instrument_type"]), row)
    print(f"half width: {SPREADS:g} robust standard deviations, at least {MIN_HALF_WIDTH:g} ppm")
    rng = np.random.default_rng(0)
    for instrument, ppm in TOLERANCES.items():
        rows = [row for (_, kind), row in first.items() if kind == instrument]
        chosen = rng.choice(len(rows), min(given.molecules, len(rows)), replace=False)
        measure(instrument, ppm, [rows[at] for at in chosen])


def measure(instrument: str, ppm: float, rows: list[dict[str, str]]) -> None:
    """Print assignments before and after, and those by chance, of spectra that have enough."""
    before = after = isotopes = used = 0
    chance_before = chance_after = 0.0
    for row in rows:
        mz = np.array(row["mzs"].split(","), float)
        heights = np.array(row["intensities"].split(","), float)
        plain = errors(row, mz, heights, ppm, refine=False)
        if len(plain) < MIN_ASSIGNED:
            continue
        kept = explain(spectrum(row, mz, heights), row["smiles"], ppm=ppm)
        own = [each for each in kept if each.formula and not each.note]
        used += 1
        before += len(plain)
        after += len(own)
        isotopes += sum(bool(each.note) for each in kept)
        sure = np.array([each.error_ppm for each in own if not each.radical and each.bonds <= 2])
        kept_errors = sure if len(sure) >= MIN_ASSIGNED else np.array([e.error_ppm for e in own])
        spread = 1.4826 * np.median(np.abs(kept_errors - np.median(kept_errors)))
        half = max(SPREADS * spread, MIN_HALF_WIDTH)
        for shift in SHIFTS:
            moved = errors(row, mz * (1 + shift * 1e-6), heights, ppm, refine=False)
            chance_before += len(moved) / len(SHIFTS)
            chance_after += (np.abs(moved) <= half).sum() / len(SHIFTS)
    print(
        f"{instrument}: {used} spectra with {before} assigned peaks within {ppm:g} ppm, of which "
        f"{chance_before:.0f} by chance; {after} kept, of which {chance_after:.0f} by chance; "
        f"others kept {(after - chance_after) / (before - chance_before):.1%}; {isotopes} isotope "
        "peaks"
    )


def errors(
    row: dict[str, str], mz: np.ndarray, heights: np.ndarray, ppm: float, *, refine: bool
) -> np.ndarray:
    """Errors of the peaks that are assigned, in ppm."""
    found = explain(spectrum(row, mz, heights), row["smiles"], ppm=ppm, refine=refine)
    return np.array([each.error_ppm for each in found if each.error_ppm is not None])


def spectrum(row: dict[str, str], mz: np.ndarray, heights: np.ndarray) -> Spectrum:
    return Spectrum(mz, heights, float(row["precursor_mz"]), row["adduct"], None, row["identifier"])


if __name__ == "__main__":
    main()
