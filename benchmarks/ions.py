"""Hit rates of each ion on validation, beside a scorer that never sees the spectrum.

    python benchmarks/ions.py TABLE … [--molecules 1200] [--val 200]

Tables are in MassSpecGym's columns, each with its mass lists beside it. Fragments and analogs learn
from train molecules of both ion modes, the blind scorer (the channel `prior`) from their lists;
rankers are cross-fitted on val. One JSON object a line for each ion and ion mode: HR@1 / 5 / 20 of
both with intervals over molecules, the mean of −log p(truth), and the ratio at HR@1.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from corrupted import KS, drawn, fit, groups_of, labelled, say, scores_of, training_set
from mzseek.datasets.files import dataset_of, read_candidates, read_table
from mzseek.decision import posterior
from mzseek.metrics import bootstrap, hit_rate
from mzseek.metrics.intervals import Interval
from mzseek.spectra import Spectrum

BLIND = "prior"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--molecules", type=int, default=1200, help="of train, for each ion")
    parser.add_argument("--val", type=int, default=200, help="molecules of val, for each ion")
    parser.add_argument("--each", type=int, default=2, help="spectra of a molecule and ion")
    parser.add_argument("--most", type=int, default=16, help="candidates of a train list")
    parser.add_argument("--augment", type=int, default=1, help="corrupted copies")
    parser.add_argument("--channels", default="fragments,analogs")
    given = parser.parse_args()
    lists: dict[str, list[str]] = {}
    spectra: dict[str, Spectrum] = {}
    for table in given.tables:
        files = dataset_of(table)
        lists |= dict(read_candidates(files.candidates["mass"], lambda where, reason: None))
        for spectrum in read_table(table, lambda where, reason: None):
            spectra.setdefault(spectrum.identifier, spectrum)
    train, val = (
        [each for each in spectra.values() if each.metadata["fold"] == fold and each.adduct]
        for fold in ("train", "val")
    )
    queries = labelled(by_ion(train, given.molecules, given.each), lists, given.most)
    asked = labelled(by_ion(val, given.val, given.each), lists)
    for each in (queries, asked):
        each.molecules.compute(["morgan2", "rdkit4"], fragments=True)
    training = training_set(train, queries)
    groups = groups_of(training, asked)
    say(f"{len(queries)} spectra of train, {len(asked)} of val, molecules are read")
    hits, loss = {}, {}
    for name, copies in ((given.channels, given.augment), (BLIND, 0)):
        fitted, rankers = fit(training, asked, groups, copies, name)
        scores = scores_of(fitted, rankers, groups, asked)
        hits[name] = {k: hit_rate(scores, asked.counts, asked.labels, k) for k in KS}
        p = posterior(scores, asked.counts)[asked.labels]
        loss[name] = -np.log(np.maximum(p, 1e-12))
        say(f"{name}: done")
    ions = np.array([spectrum.adduct for spectrum in asked.spectra])
    modes = np.where(asked.modes < 0, "negative", "positive")
    for names in (modes, ions):
        for name in np.unique(names):
            inside = names == name
            molecule = asked.inchikey14[inside]
            found = {
                f"{scorer}, hit_rate@{k}": in_percent(bootstrap(values[k][inside], molecule))
                for scorer, values in hits.items()
                for k in KS
            }
            found |= {
                f"{scorer}, -log p": round(float(values[inside].mean()), 3)
                for scorer, values in loss.items()
            }
            ratio = hits[given.channels][1][inside].mean() / max(
                hits[BLIND][1][inside].mean(), 1e-9
            )
            counts = {"spectra": int(inside.sum()), "molecules": len(np.unique(molecule))}
            print(json.dumps({"ion": name, **counts, **found, "ratio@1": round(ratio, 2)}))


def in_percent(interval: Interval) -> list[float]:
    return [round(100 * value, 1) for value in (interval.mean, interval.low, interval.high)]


def by_ion(spectra: list[Spectrum], molecules: int, each: int) -> list[Spectrum]:
    """Some spectra of some molecules of each ion."""
    ions = sorted({spectrum.adduct or "" for spectrum in spectra})
    return [
        spectrum
        for ion in ions
        for spectrum in drawn([s for s in spectra if s.adduct == ion], molecules, each)
    ]


if __name__ == "__main__":
    main()
