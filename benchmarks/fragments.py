"""Fragments of molecules, and scores of candidate lists by the peaks that pieces explain.

usage: fragments.py MOLECULES.tsv [SPECTRA.tsv CANDIDATES.json] [--molecules N] [--json]

Fragments: a sample of the table's molecules (10,000), one thread, parsing included. Scores: the
spectra of the test fold against their lists, the pieces at hand, on all cores. Files may be
plain or .gz.
"""

import argparse
import csv
import gzip
import json
import time
from pathlib import Path
from typing import IO, Any

import numpy as np

from mzseek.core.errors import MzseekError
from mzseek.fragments import fragment_table, ion_forms, peak_table, pieces, score_lists
from mzseek.fragments.fragmentation import Fragments
from mzseek.spectra import Spectrum

WORST = {
    "chain": "C" * 150,
    "ring of 100 with a chain": "C1" + "C" * 99 + "1" + "C" * 50,
    "ring of 100 with 50 arms": "C1" + "CC(C)" * 49 + "CC1C",
    "three paths": "C12" + "C" * 50 + "C(" + "C" * 49 + "1)" + "C" * 49 + "2",
}


def opened(path: Path) -> IO[str]:
    return gzip.open(path, "rt") if path.suffix == ".gz" else path.open()


def time_fragments(path: Path, sample: int) -> dict[str, Any]:
    with opened(path) as lines:
        smiles = [row["smiles"] for row in csv.DictReader(lines, delimiter="\t")]
    chosen = np.random.default_rng(0).choice(len(smiles), min(sample, len(smiles)), replace=False)
    pieces("CCO")  # compiled
    times, found = [], list[Fragments]()
    for place in chosen:
        start = time.perf_counter()
        try:
            found.append(pieces(smiles[place]))
        except MzseekError:
            continue
        times.append(time.perf_counter() - start)
    worst = {}
    for name, text in WORST.items():
        start = time.perf_counter()
        rows = len(pieces(text))
        worst[name] = {"ms": round((time.perf_counter() - start) * 1e3, 1), "masses": rows}
    return {
        "molecules": len(times),
        "ms_median": round(float(np.median(times)) * 1e3, 3),
        "ms_mean": round(float(np.mean(times)) * 1e3, 3),
        "ms_99%": round(float(np.quantile(times, 0.99)) * 1e3, 3),
        "ms_most": round(max(times) * 1e3, 1),
        "masses_mean": round(float(np.mean([len(each) for each in found])), 1),
        "cut_short": sum(each.truncated for each in found),
        "150_heavy_atoms": worst,
    }


def read_queries(path: Path, lists: dict[str, list[str]]) -> tuple[list[Spectrum], list[str]]:
    spectra, truths = [], []
    with opened(path) as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if row["fold"] != "test" or row["smiles"] not in lists:
                continue
            mz, intensities = (
                np.array([float(cell) for cell in row[name].split(",")])
                for name in ("mzs", "intensities")
            )
            good = intensities > 0
            name, precursor = row["identifier"], float(row["precursor_mz"])
            spectra.append(
                Spectrum(mz[good], intensities[good], precursor, row["adduct"], None, name)
            )
            truths.append(row["smiles"])
    return spectra, truths


def time_scores(spectra_path: Path, lists_path: Path) -> dict[str, Any]:
    with opened(lists_path) as file:
        lists: dict[str, list[str]] = json.load(file)
    spectra, truths = read_queries(spectra_path, lists)
    names = sorted({name for truth in truths for name in lists[truth]})
    place = {name: at for at, name in enumerate(names)}
    start = time.perf_counter()
    table = fragment_table(names, rejects=[])
    making = time.perf_counter() - start
    counts = [len(lists[truth]) for truth in truths]
    candidates = [place[name] for truth in truths for name in lists[truth]]
    start = time.perf_counter()
    peaks = peak_table(spectra, [ion_forms(str(spectrum.adduct)) for spectrum in spectra])
    reading = time.perf_counter() - start
    score_lists(peaks, table, [], np.zeros(len(spectra), int))  # compiled
    start = time.perf_counter()
    score_lists(peaks, table, candidates, counts)
    scoring = time.perf_counter() - start
    return {
        "spectra": len(spectra),
        "candidates_mean": round(float(np.mean(counts)), 1),
        "distinct_molecules": len(names),
        "peaks_mean": round(len(peaks.mz) / len(spectra), 1),
        "seconds_pieces": round(making, 1),
        "seconds_peak_table": round(reading, 2),
        "seconds_scores": round(scoring, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("molecules_table", type=Path)
    parser.add_argument("spectra", type=Path, nargs="?")
    parser.add_argument("candidates", type=Path, nargs="?")
    parser.add_argument("--molecules", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result: dict[str, Any] = {"pieces": time_fragments(given.molecules_table, given.molecules)}
    if given.spectra and given.candidates:
        result["scores"] = time_scores(given.spectra, given.candidates)
    print(json.dumps(result) if given.json else json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
