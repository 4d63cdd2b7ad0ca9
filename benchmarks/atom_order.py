"""How many molecules get other bits when their atoms are reordered: RDKit's call, and mzseek's.

usage: atom_order.py MOLECULES [--count 20000] [--kinds morgan2 morgan4 morgan6 morgan8]

MOLECULES is a table with a column ``smiles``, plain or gzipped; so many of it, evenly spaced, are
reordered at random once. Prints the share that changes, and microseconds a molecule on one core.
"""

import argparse
import csv
import gzip
import random
import time
from pathlib import Path

from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator

from mzseek.chem.fingerprinting import fingerprint_kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("molecules", type=Path)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--kinds", nargs="+", default=["morgan2", "morgan4", "morgan6", "morgan8"])
    options = parser.parse_args()
    molecules = read(options.molecules, options.count)
    others = [reordered(molecule, seed) for seed, molecule in enumerate(molecules)]
    print(f"{len(molecules):,} molecules")
    for kind in options.kinds:
        for name, compute in (("RDKit", of_rdkit(kind)), ("mzseek", of_mzseek(kind))):
            start = time.process_time()
            rows = compute(molecules)
            each = (time.process_time() - start) / len(molecules) * 1e6
            changed = sum(a != b for a, b in zip(rows, compute(others), strict=True))
            print(f"{kind}, {name}: {changed / len(molecules):.1%} change, {each:.0f} µs")


def read(table: Path, count: int) -> list[Chem.Mol]:
    with (gzip.open if table.suffix == ".gz" else open)(table, "rt") as stream:
        smiles = [row["smiles"] for row in csv.DictReader(stream, delimiter="\t")]
    return [Chem.MolFromSmiles(text) for text in smiles[:: max(len(smiles) // count, 1)][:count]]


def reordered(molecule: Chem.Mol, seed: int) -> Chem.Mol:
    order = list(range(molecule.GetNumAtoms()))
    random.Random(seed).shuffle(order)
    return Chem.RenumberAtoms(molecule, order)


def of_rdkit(kind: str):
    radius = int(kind.removeprefix("morgan"))
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=4096)
    return lambda molecules: [list(generator.GetFingerprint(m).GetOnBits()) for m in molecules]


def of_mzseek(kind: str):
    return lambda molecules: [row.tolist() for row in fingerprint_kind(kind).rows(molecules)]


if __name__ == "__main__":
    main()
