r"""Measure the channel `intensities` alone: hit rates on val, and with another molecule's spectrum.

    python benchmarks/forward_model.py massbank.tsv.gz massbank_candidates_mass.json.gz

Trains on the train fold; scores one spectrum with a fragment of each of some val molecules against
all candidates of its list. Equal scores share a rank.
"""

import argparse
import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from mzseek.evidence.intensities import Intensities, IntensityOptions
from mzseek.evidence.model import ChannelState
from mzseek.evidence.queries import Molecules, Queries, TrainingSet
from mzseek.spectra import Spectrum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spectra", type=Path)
    parser.add_argument("candidates", type=Path)
    parser.add_argument("--adduct", default="[M+H]+")
    parser.add_argument("--molecules", type=int, default=250, help="of val")
    parser.add_argument("--epochs", type=int, default=IntensityOptions.epochs)
    parser.add_argument("--per-molecule", type=int, default=IntensityOptions.per_molecule)
    given = parser.parse_args()
    table = pd.read_csv(given.spectra, sep="\t")
    table = table[table.adduct == given.adduct]
    channel = Intensities(IntensityOptions(epochs=given.epochs, per_molecule=given.per_molecule))
    start = time.process_time()
    state = channel.fit(training_set(table[table.fold == "train"]))
    print(f"fit: {time.process_time() - start:.0f} s of processor time", flush=True)
    with gzip.open(given.candidates) as file:
        lists = json.load(file)
    spectra, candidates = queries(table[table.fold == "val"], lists, given.molecules)
    report("own spectrum", channel, state, spectra, candidates)
    # The spectrum of the next lighter molecule in its place.
    order = np.argsort([spectrum.precursor_mz for spectrum in spectra])
    other = dict(zip(order, np.roll(order, 1), strict=True))
    swapped = [
        replace(spectra[other[number]], precursor_mz=spectrum.precursor_mz)
        for number, spectrum in enumerate(spectra)
    ]
    report("another molecule's", channel, state, swapped, candidates)


def spectrum_of(row: object) -> Spectrum:
    mz, heights = (np.array(text.split(","), float) for text in (row.mzs, row.intensities))
    charge = -1 if row.adduct.endswith("-") else 1
    stated = {
        "collision_energy": str(row.collision_energy), "instrument_type": row.instrument_type
    }  # fmt: skip
    return Spectrum(mz, heights, row.precursor_mz, row.adduct, charge, row.identifier, stated)


def training_set(table: pd.DataFrame) -> TrainingSet:
    known = table.drop_duplicates("smiles")
    row = {smiles: number for number, smiles in enumerate(known.smiles)}
    return TrainingSet(
        [spectrum_of(record) for record in table.itertuples()],
        np.array([row[smiles] for smiles in table.smiles]),
        Molecules(known.smiles.tolist()),
        np.array([key.encode() for key in known.inchikey]),
        Queries.of([], []),
    )


def queries(
    table: pd.DataFrame, lists: dict[str, list[str]], count: int
) -> tuple[list[Spectrum], list[list[str]]]:
    """One spectrum of each of some molecules, and its candidates: the truth first."""
    random = np.random.default_rng(1)
    smiles = table.smiles.drop_duplicates().tolist()
    random.shuffle(smiles)
    spectra, candidates = [], []
    for truth in smiles:
        known = [spectrum_of(record) for record in table[table.smiles == truth].itertuples()]
        known = [s for s in known if (s.mz < s.precursor_mz - 0.5).any()]
        if known and len(spectra) < count:
            spectra.append(known[random.integers(len(known))])
            candidates.append([truth, *(other for other in lists[truth] if other != truth)])
    return spectra, candidates


def report(
    name: str,
    channel: Intensities,
    state: ChannelState,
    spectra: list[Spectrum],
    candidates: list[list[str]],
) -> None:
    start = time.process_time()
    queries = Queries.of(spectra, candidates)
    scores = channel.features(state, queries)[:, 0]
    each = (time.process_time() - start) / len(scores) * 1e3
    ranks = np.array(
        [
            (of_list[1:] > of_list[0]).sum() + (of_list[1:] == of_list[0]).sum() / 2
            for of_list in np.split(scores, queries.ragged.starts[1:])
        ]
    )
    hits = " / ".join(f"{100 * (ranks < k).mean():.1f}" for k in (1, 5, 20))
    print(f"{name}: HR@1 / 5 / 20 {hits}, {len(ranks)} molecules, {each:.2f} ms a candidate")


if __name__ == "__main__":
    main()
