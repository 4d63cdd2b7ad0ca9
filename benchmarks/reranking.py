"""What ranking a shortlist again by `intensities` brings on val, from one run.

usage: reranking.py RUN [--lists mass] [--control 0]

RUN is of `mzseek fit --channels fragments,analogs,intensities`, or the folder `run` of a bundle's
work. Predictions of val are cross-fitted. The contribution of the last channel is all that ranking
again changes, so that without it the same run is ranked by the other channels. Shares and bits are
means over molecules, intervals (95 %) over molecules. --control N scores N spectra, one a
molecule, and the same candidates by the spectrum of another molecule.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from mzseek.core.ragged import Ragged
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.evidence.fitting import swapped
from mzseek.evidence.model import EvidenceModel
from mzseek.evidence.prepared_queries import queries_from, sample_spectra, spectra_from
from mzseek.metrics import bootstrap
from mzseek.runs.predictions import Predictions, label_of
from mzseek.runs.run import Run

FOLD, HITS = "val", (1, 5, 20)
ADDUCTS = ("[M+H]+", "[M-H]-")  # of the control: others have too few molecules


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--lists", default="mass")
    parser.add_argument("--control", type=int, default=0)
    given = parser.parse_args()
    run = Run.open(given.run)
    prepared = run.open_data()
    lists = Predictions.open(run.predictions(0, FOLD), label_of(run, 0, FOLD)).lists[given.lists]
    truth = (np.asarray(lists.identity) & IDENTITY_BITS["inchikey"]) > 0
    ragged = Ragged(np.asarray(lists.counts, np.int64))
    usable = ragged.any(truth)
    negative = np.array([(prepared.adduct(int(q)) or "").endswith("-") for q in lists.queries])
    for mode, of_mode in (("positive", ~negative), ("negative", negative)):
        inside = usable & of_mode
        rows, counts = ragged.repeat_per_list(inside), ragged.counts[inside]
        parts, molecule = np.asarray(lists.parts)[rows], np.asarray(lists.molecule)[inside]
        compare(mode, parts, counts, truth[rows], molecule)
    if given.control:
        control(run, prepared, given.lists, given.control)


def compare(name, parts, counts, truth, molecule):
    """Print shares and bits without and with the last channel, and their differences."""
    before, after = (
        measured(total, Ragged(counts), truth)
        for total in (parts[:, :-1].sum(1, dtype=float), parts.sum(1, dtype=float))
    )
    print(f"{name}: {len(counts):,} spectra of {len(np.unique(molecule)):,} molecules")
    for label, values in (("others", before), ("all", after), ("difference", after - before)):
        print(f"  {label:10}  HR@1 / 5 / 20, bits: {' / '.join(told(v, molecule) for v in values)}")


def measured(scores, lists, truth):
    """Hits at each k, in percent, equal scores sharing a rank, and bits about the truth."""
    best = lists.repeat_per_list(lists.max(np.where(truth, scores, -np.inf)))
    ahead = lists.sum(scores > best, np.int64)
    level = lists.sum(scores == best, np.int64)
    hits = [100 * np.clip((k - ahead) / level, 0, 1) for k in HITS]
    p = np.exp(scores - lists.repeat_per_list(lists.max(scores)))
    bits = np.log2(lists.sum(np.where(truth, p, 0)) / lists.sum(p) * lists.counts)
    return np.stack([*hits, bits])


def told(values, molecule):
    found = bootstrap(by_molecule(values, molecule), np.unique(molecule), bounds=None)
    return f"{found.mean:.2f} ({found.low:.2f}…{found.high:.2f})"


def by_molecule(values, molecule):
    """Mean of each molecule's spectra."""
    _, index, number = np.unique(molecule, return_inverse=True, return_counts=True)
    return np.bincount(index, values) / number


def control(run, prepared, setting, count):
    """The same with another molecule's spectrum, by the model that annotates new spectra."""
    model = EvidenceModel.open(run)
    usual = [q for q in prepared.in_fold(FOLD) if prepared.adduct(int(q)) in ADDUCTS]
    spectra = sample_spectra(prepared, np.array(usual), 1)
    spectra = np.sort(np.random.default_rng(0).permutation(spectra)[:count])
    queries, identity = queries_from(prepared, spectra, setting)
    truth = (identity & IDENTITY_BITS["inchikey"]) > 0
    other = spectra_from(prepared, swapped(prepared, spectra))
    taken = [
        replace(theirs, precursor_mz=own.precursor_mz)
        for own, theirs in zip(queries.spectra, other, strict=True)
    ]
    usable = np.flatnonzero(queries.ragged.any(truth))
    for name, shown in (("own", queries.spectra), ("another molecule's", taken)):
        part = replace(queries, spectra=shown).only(usable)
        parts = model.contributions(part)
        labels = truth[queries.rows(usable)]
        compare(f"{name} spectrum", parts, part.counts, labels, prepared.molecule[spectra[usable]])


if __name__ == "__main__":
    main()
