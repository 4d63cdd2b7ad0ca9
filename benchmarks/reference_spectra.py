"""What a library of one's own brings through analogs: records that the shipped bundle lacks.

    python benchmarks/reference_spectra.py set.tsv.gz set_candidates_mass.json.gz

Records under non-commercial licences are not in the shipped bundle. Of their molecules that it has
not learned from, half are asked about, one spectrum of each, among some of their candidates; all
other such records are the library. Hits of analogs alone and of all channels, without the library
and with it, and how often the part of the truth rises.
"""

import argparse
import csv
import dataclasses
import gzip
import json
import sys
from pathlib import Path

import numpy as np

from mzseek.bundle import Bundle
from mzseek.bundle.bundle import compact_spectrum
from mzseek.evidence.model import precompute
from mzseek.evidence.queries import ExcludedAnalogs, Queries, ReferenceSpectra
from mzseek.library.similarity import peak_lists
from tolerances import spectrum_of

CHANNEL, GAIN = "analogs", "morgan2, nearest"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("table", type=Path)
    asked.add_argument("candidates", type=Path)
    asked.add_argument("--molecules", type=int, default=200)
    asked.add_argument("--each", type=int, default=25, help="candidates beside the molecule")
    given = asked.parse_args()
    csv.field_size_limit(sys.maxsize)
    with gzip.open(given.table, "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if "NC" in row["license"]]
    with gzip.open(given.candidates, "rt", encoding="utf-8") as file:
        lists = json.load(file)
    rng = np.random.default_rng(0)
    fitted = Bundle.open().fitted
    place = [channel.label for channel in fitted.channels].index(CHANNEL)
    channel, learned = fitted.channels[place], fitted.states[place]
    unknown = sorted({block(row) for row in rows} - set(learned.inchikey14.astype(str).tolist()))
    drawn = {unknown[at] for at in rng.permutation(len(unknown))[: len(unknown) // 2]}
    made = channel.extend(learned, measured([row for row in rows if block(row) not in drawn]))
    assert made is not None
    print(f"library: {made.spectra:,} new spectra, {made.molecules:,} new molecules")
    own = asked_about([row for row in rows if block(row) in drawn], lists, given, rng)
    precompute(fitted.channels, own.molecules)
    without = [c.features(s, own) for c, s in zip(fitted.channels, fitted.states, strict=True)]
    having = [*without]
    having[place] = channel.features(made.state, own)
    first = own.ragged.starts
    truth, ranks = {}, {}
    for name, features in (("without", without), ("with", having)):
        parts = fitted.ranker.contributions(features, own.modes, own.counts)
        for what, column in ((CHANNEL, parts[:, place]), ("all channels", parts.sum(1))):
            rank = ranks[name, what] = ranks_of(column, own)
            print(
                f"{name}, {what}: HR@1 {(rank == 1).mean():.1%}, HR@5 {(rank <= 5).mean():.1%}, "
                f"mean 1/rank {(1 / rank).mean():.3f}"
            )
        truth[name] = parts[first, place]
    change = 1 / ranks["with", "all channels"] - 1 / ranks["without", "all channels"]
    again = [rng.choice(change, len(change)).mean() for _ in range(2_000)]
    low, high = np.percentile(again, [2.5, 97.5])
    print(f"mean 1/rank, all channels: {change.mean():+.4f} [{low:+.4f}, {high:+.4f}]")
    rise, column = truth["with"] - truth["without"], channel.feature_names.index(GAIN)
    print(f"part of the truth: rises in {(rise > 0).mean():.1%}, mean {rise.mean():+.2f} nats")
    gain = having[place][first, column] - without[place][first, column]
    for least in (0.05, 0.1, 0.2):
        near = gain > least
        print(
            f"  where {GAIN} gains more than {least}: {near.sum()} truths, rises in "
            f"{(rise[near] > 0).mean():.1%}, mean {rise[near].mean():+.2f} nats"
        )


def measured(rows: list[dict[str, str]]) -> ReferenceSpectra:
    """Records as a library's spectra."""
    smiles = {block(row): row["smiles"] for row in rows}
    place = {name: at for at, name in enumerate(sorted(smiles))}
    peaks, ions = peak_lists([compact_spectrum(spectrum_of(row)) for row in rows])
    whose = np.array([place[block(row)] for row in rows])
    return ReferenceSpectra(
        peaks, ions, whose, [smiles[name] for name in place], np.array([*place], "S14")
    )


def asked_about(
    rows: list[dict[str, str]],
    candidates: dict[str, list[str]],
    given: argparse.Namespace,
    rng: np.random.Generator,
) -> Queries:
    """One spectrum of each molecule, among candidates; the molecule is the first."""
    drawn: dict[str, dict[str, str]] = {}
    for at in rng.permutation(len(rows)):
        row = rows[at]
        if row["smiles"] in candidates and row["mzs"].count(",") >= 2:
            drawn.setdefault(block(row), row)
    chosen = list(drawn.values())[: given.molecules]
    lists = []
    for row in chosen:
        others = [one for one in candidates[row["smiles"]] if one != row["smiles"]]
        some = rng.permutation(len(others))[: given.each]
        lists.append([row["smiles"], *(others[at] for at in some)])
    own = Queries.of([spectrum_of(row) for row in chosen], lists, jobs=1)
    rows = np.split(own.members, own.pointers[1:-1])
    excluded = [ExcludedAnalogs(own.molecules, members) for members in rows]
    return dataclasses.replace(own, excluded_analogs=excluded)


def ranks_of(column: np.ndarray, lists: Queries) -> np.ndarray:
    """Rank of each truth; equal ones come before it."""
    return np.array(
        [
            1 + (column[start + 1 : start + count] >= column[start]).sum()
            for start, count in zip(lists.ragged.starts, lists.counts, strict=True)
        ]
    )


def block(row: dict[str, str]) -> str:
    return row["inchikey"][:14]


if __name__ == "__main__":
    main()
