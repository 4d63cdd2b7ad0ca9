"""Print the share of each contributor's molecules that other contributors have measured, too.

    python benchmarks/contributor_overlap.py massbank.tsv.gz massbank_more.tsv.gz

An upper bound for the share of features that a database made of the others would hold: molecules
of spectral libraries are standards.
"""

import argparse
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from mzseek.datasets.files import read_table

LEAST = 20  # molecules of a contributor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    molecules: dict[str, set[str]] = defaultdict(set)
    for table in parser.parse_args().tables:
        for spectrum in read_table(table, lambda where, reason: None):
            facts = spectrum.metadata
            molecules[facts["contributor"]].add(facts["inchikey"][:14])
    measured = Counter(key for keys in molecules.values() for key in keys)
    shares = []
    for contributor, keys in sorted(molecules.items(), key=lambda one: -len(one[1])):
        if len(keys) >= LEAST:
            shares.append(np.mean([measured[key] > 1 for key in keys]))
            print(f"{contributor}\t{len(keys)}\t{shares[-1]:.2f}")
    print(f"lowest {min(shares):.2f}, median {np.median(shares):.2f}")


if __name__ == "__main__":
    main()
