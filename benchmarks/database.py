"""Building a molecule database, against what RDKit alone needs; look-ups; size.

usage: database.py MOLECULES OUT [--sample 50000] [--look-ups 1000] [--json]

RDKit alone: a random sample is parsed, standardised, keyed and fingerprinted (morgan2) in as many
processes as there are cores, nothing kept; scaled to all molecules. Measured before the build and
after it, and averaged, since a shared machine changes its speed. A store that is there is not built
again: only look-ups are then measured.
"""

import argparse
import gzip
import json
import random
import time
from pathlib import Path

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import rdFingerprintGenerator

from measure import Measure
from mzseek.chem.molecules import standardise
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.parallel import in_batches


def rdkit_alone(smiles):
    """What no builder can do without."""
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=4096)
    kept = []
    with rdBase.BlockLogs():
        for text in smiles:
            molecule = Chem.MolFromSmiles(text)
            if molecule is None:
                continue
            molecule = standardise(molecule)
            Chem.MolToInchiKey(molecule)
            kept.append(molecule)
        generator.GetFingerprints(tuple(kept), numThreads=1)
    return len(kept)


def sampled(path, count):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as stream:
        column = next(stream).rstrip("\n").split("\t").index("smiles")
        every = [line.rstrip("\n").split("\t")[column] for line in stream]
    return random.Random(0).sample(every, min(count, len(every))), len(every)


def baseline(sample):
    start = time.perf_counter()
    for _ in in_batches(rdkit_alone, sample, 1000):
        pass
    return time.perf_counter() - start


def milliseconds(ask, questions):
    """Median and 99th percentile of what one answer takes; the first is not counted."""
    taken = []
    for question in [questions[0], *questions]:
        start = time.perf_counter()
        ask(question)
        taken.append(1000 * (time.perf_counter() - start))
    return [float(np.median(taken[1:])), float(np.quantile(taken[1:], 0.99))]


def look_ups(database, count):
    rng = np.random.default_rng(0)
    drawn = database.rows(rng.integers(len(database), size=count), ["mass", "formula", "key"])
    keys = [key for key in drawn["key"].to_pylist() if not key.startswith("SMILES=")]
    facts = {
        "by_mass_ms": milliseconds(database.by_mass, drawn["mass"].to_pylist()),
        "by_formula_ms": milliseconds(database.by_formula, drawn["formula"].to_pylist()),
        "by_key_ms": milliseconds(database.by_key, keys),
    }
    many = database.masses[rng.integers(len(database), size=10_000)]
    fresh = Database.open(database.folder)
    start = time.perf_counter()
    _, rows = fresh.many_by_mass(many)
    facts["10000_masses_s"] = time.perf_counter() - start
    facts["10000_masses_rows"] = len(rows)
    if database.manifest["options"]["nearest"]:
        smiles = database.rows(rng.integers(len(database), size=30))["smiles"].to_pylist()
        facts["nearest_100_ms"] = milliseconds(database.by_similarity, smiles)
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("molecules", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sample", type=int, default=50_000)
    parser.add_argument("--look-ups", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = {}
    if not options.out.exists():
        sample, total = sampled(options.molecules, options.sample)
        baseline(sample[:4000])  # start the processes
        before = baseline(sample)
        with Measure() as measure:
            build_database(file_sources([options.molecules]), options.out)
        after = baseline(sample)
        alone = (before + after) / 2 * total / len(sample)
        facts |= {
            "molecules": total,
            "rdkit_alone_s": round(alone),
            "rdkit_alone_before_after_s": [round(before, 1), round(after, 1)],
            "build_s": round(measure.seconds),
            "ratio": round(measure.seconds / alone, 2),
            "peak_gb": round(measure.peak_bytes / 1e9, 2),
        }
    database = Database.open(options.out)
    sizes = {name: each["bytes"] for name, each in database.manifest["files"].items()}
    facts["bytes_a_molecule"] = {name: round(n / len(database), 1) for name, n in sizes.items()}
    facts["counts"] = database.manifest["counts"]
    facts |= look_ups(database, options.look_ups)
    print(json.dumps(facts) if options.json else json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
