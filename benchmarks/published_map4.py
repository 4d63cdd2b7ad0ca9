"""MAP4 beside the package of its authors: whether rows are equal, and how fast both are.

usage: published_map4.py write ROWS
       published_map4.py compare MOLECULES

``write`` keeps the package's rows of a thousand molecules of the demo set; ``compare`` computes
those of a thousand molecules of a table with a column ``smiles``, plain or gzipped, by both.

Needs ``pip install map4==1.1.3``, which mzseek itself does not. ``tests/chem/map4_rows.tsv`` was
written by the first, and ``tests/chem/test_map4.py`` compares with it.

The package's rows depend on the order of atoms; its command line therefore reads molecules anew
from their canonical SMILES without stereo, and so does this script.
"""

import argparse
import csv
import gzip
import time
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np
from rdkit import Chem

from mzseek.chem.map4 import map4_bits
from mzseek.datasets.demo.molecules import demo_molecules

BITS, COUNT = 4096, 1000
# Single atoms, salts, isotopes, charges, radicals, stereo, hydrogens that are written out, metals.
UNUSUAL = (
    "C", "O", "[Na+]", "CC", "[H][H]", "[2H]C([2H])[2H]", "[Na+].[Cl-]", "CC.CCO", "[13CH3]C",
    "C/C=C/C", "C/C=C\\C", "C[N+](C)(C)CC(=O)[O-]", "N[C@@H](Cc1ccccc1)C(=O)O",
    "OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O", "[H]OC([H])([H])C([H])([H])[H]", "C[CH2]",
    "C1=CC=CC=C1O", "C1CC2CCC1CC2", "c1ccc2c(c1)[nH]c1ccccc12", "O=[N+]([O-])c1ccccc1",
    "C[C@H](N)C(=O)[O-].[Na+]", "F[B-](F)(F)F.CCCCn1cc[n+](C)c1", "C[Si](C)(C)O[Si](C)(C)C",
    "[Fe+2].[cH-]1cccc1.[cH-]1cccc1", "C1CCCCCCCCCCCCCC1", "CC(C)(C)C(C)(C)C", "N#CC#N",
    "[C-]#[O+]",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("path", type=Path)
    options = parser.parse_args()
    if options.what == "write":
        write(options.path)
    else:
        compare(options.path)


def molecules() -> list[str]:
    """A thousand SMILES: the unusual ones, all known molecules, and some of the enumerated."""
    demo = demo_molecules(0, 3000)
    known = [molecule.smiles for molecule in demo if molecule.source == "known"]
    enumerated = [molecule.smiles for molecule in demo if molecule.source == "enumerated"]
    chosen = list(dict.fromkeys([*UNUSUAL, *known]))
    step = len(enumerated) // (COUNT - len(chosen))
    return [*chosen, *enumerated[::step]][:COUNT]


def published(smiles: str) -> list[int]:
    """Set bits of the package, in the form that its own command line gives it molecules in."""
    from map4 import MAP4

    plain = Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False)
    row = MAP4(dimensions=BITS, radius=2).calculate(Chem.MolFromSmiles(plain))
    return np.flatnonzero(row).tolist()


def digest(bits: list[int]) -> str:
    return sha256(",".join(map(str, bits)).encode()).hexdigest()[:16]


def write(out: Path) -> None:
    made_by = (
        f"# map4 {version('map4')}, rdkit {version('rdkit')}: benchmarks/published_map4.py write"
    )
    lines = [made_by, "smiles\tset bits\tdigest"]
    for smiles in molecules():
        bits = published(smiles)
        lines.append(f"{smiles}\t{len(bits)}\t{digest(bits)}")
    out.write_text("\n".join(lines) + "\n")


def compare(table: Path) -> None:
    from map4 import MAP4

    smiles = drawn(table)
    different = [
        text for text in smiles
        if map4_bits(Chem.MolFromSmiles(text)).tolist() != published(text)
    ]  # fmt: skip
    print(f"{len(smiles) - len(different):,} of {len(smiles):,} rows are equal", *different[:5])
    parsed = [Chem.MolFromSmiles(text) for text in smiles]
    package = MAP4(dimensions=BITS, radius=2)
    for name, compute in (("mzseek", map4_bits), ("the package", package.calculate)):
        start = time.process_time()
        for molecule in parsed:
            compute(molecule)
        print(f"{name}: {len(parsed) / (time.process_time() - start):.0f} molecules a second")


def drawn(table: Path) -> list[str]:
    """A thousand of a table's SMILES, evenly spaced."""
    with (gzip.open if table.suffix == ".gz" else open)(table, "rt") as stream:
        smiles = [row["smiles"] for row in csv.DictReader(stream, delimiter="\t")]
    return list(islice(smiles[:: max(len(smiles) // COUNT, 1)], COUNT))


if __name__ == "__main__":
    main()
