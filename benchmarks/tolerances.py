"""How near peaks are to fragments of their molecules, by instrument, and how widths rank.

    python benchmarks/tolerances.py set.tsv.gz set_candidates_mass.json.gz

First the share of explained peaks within each width, less those that fall there by chance (counted
far out). Then hits of the shipped model's fragments alone, at each width: one spectrum of each of
some molecules of the test fold, among some of their candidates. The shipped model has learned from
all folds, so that widths can be compared with each other, and with nothing else.
"""

import argparse
import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np

from mzseek.annotation.annotator import _with_tolerance
from mzseek.annotation.config import Tolerance
from mzseek.bundle import Bundle
from mzseek.evidence.model import precompute
from mzseek.evidence.queries import Queries
from mzseek.fragments import explained_pairs, fragment_table, ion_forms, peak_table
from mzseek.spectra import Spectrum

WIDTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)  # ppm
RANKED = (3, 5, 10, 15, 20, 30)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("table", type=Path)
    asked.add_argument("candidates", type=Path)
    asked.add_argument("--spectra", type=int, default=1_500)
    asked.add_argument("--molecules", type=int, default=120)
    asked.add_argument("--each", type=int, default=25, help="candidates beside the molecule")
    given = asked.parse_args()
    csv.field_size_limit(sys.maxsize)
    with gzip.open(given.table, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    with gzip.open(given.candidates, "rt", encoding="utf-8") as file:
        lists = json.load(file)
    for kind in sorted({row["instrument_type"] for row in rows}):
        own = [row for row in rows if row["instrument_type"] == kind]
        print(f"{kind}: {len(own):,} spectra")
        shares(own, given.spectra)
        ranks(own, lists, given.molecules, given.each)


def shares(rows: list[dict[str, str]], number: int) -> None:
    """Print the share of explained peaks within each width."""
    rng = np.random.default_rng(0)
    drawn = [rows[at] for at in rng.choice(len(rows), min(number, len(rows)), replace=False)]
    spectra = [spectrum_of(row) for row in drawn]
    smiles = sorted({row["smiles"] for row in drawn})
    place = {text: at for at, text in enumerate(smiles)}
    fragments = fragment_table(smiles, jobs=1)
    forms = [ion_forms(str(spectrum.adduct)) for spectrum in spectra]
    whose = np.array([place[row["smiles"]] for row in drawn])
    found = {}
    for width in WIDTHS:
        peaks = peak_table(spectra, forms, ppm=width, least=0.0)
        ones = np.ones(len(spectra), np.int64)
        found[width] = len(
            np.unique(explained_pairs(peaks, fragments, whose, ones, threads=1).peak)
        )
    by_chance = (found[50] - found[30]) / 20
    total = found[30] - 30 * by_chance
    for width, count in found.items():
        print(f"  within {width:2} ppm: {(count - width * by_chance) / total:.1%}")


def ranks(
    rows: list[dict[str, str]], candidates: dict[str, list[str]], number: int, each: int
) -> None:
    """Print hits of fragments alone at each width."""
    rng = np.random.default_rng(1)
    drawn: dict[str, dict[str, str]] = {}
    rows = [row for row in rows if row["fold"] == "test" and row["smiles"] in candidates]
    for at in rng.permutation(len(rows)):
        if len(drawn) < number and rows[at]["mzs"].count(",") >= 3:
            drawn.setdefault(rows[at]["smiles"], rows[at])
    lists = []
    for smiles in drawn:
        others = [one for one in candidates[smiles] if one != smiles]
        lists.append([smiles, *(others[at] for at in rng.permutation(len(others))[:each])])
    asked = Queries.of([spectrum_of(row) for row in drawn.values()], lists, jobs=1)
    fitted = Bundle.open().fitted
    precompute(fitted.channels, asked.molecules)
    said = [c.features(own, asked) for c, own in zip(fitted.channels, fitted.states, strict=True)]
    for width in RANKED:
        other = _with_tolerance(fitted, Tolerance(float(width), 0.001))
        pairs = zip(other.channels, other.states, said, strict=True)
        features = [c.features(own, asked) if c.needs_fragments else old for c, own, old in pairs]
        parts = other.ranker.contributions(features, asked.modes, asked.counts)
        column = parts[:, [c.needs_fragments for c in other.channels].index(True)]
        place = np.array(
            [
                1 + (column[start + 1 : start + count] >= column[start]).sum()
                for start, count in zip(asked.ragged.starts, asked.counts, strict=True)
            ]
        )
        print(
            f"  {width:2} ppm, {len(place)} molecules: HR@1 {(place == 1).mean():.1%}, "
            f"HR@5 {(place <= 5).mean():.1%}, mean 1/rank {(1 / place).mean():.3f}"
        )


def spectrum_of(row: dict[str, str]) -> Spectrum:
    mz, heights = (np.array(row[name].split(","), float) for name in ("mzs", "intensities"))
    return Spectrum(mz, heights, float(row["precursor_mz"]), row["adduct"], 1, row["identifier"])


if __name__ == "__main__":
    main()
