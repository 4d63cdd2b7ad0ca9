r"""Fit and measure proposed structures: molecules removed from database and library.

    python benchmarks/proposals.py rates massbank.tsv.gz massbank_more.tsv.gz --out rates.json
    python benchmarks/proposals.py collect massbank.tsv.gz massbank_more.tsv.gz --fold val \
        --rates rates.json --out val
    python benchmarks/proposals.py fit val --rates rates.json --out model.json
    python benchmarks/proposals.py measure massbank.tsv.gz massbank_more.tsv.gz --fold test
"""

import argparse
import json
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.csv
from rdkit import Chem, RDLogger

from mzseek.bundle.bundle import Bundle
from mzseek.chem.molecules import standardise
from mzseek.core.errors import MoleculeError
from mzseek.proposals.generation import products
from mzseek.proposals.transformations import transformations

HELD_OUT = ("val", "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    rates = commands.add_parser("rates")
    rates.add_argument("tables", type=Path, nargs="+")
    rates.add_argument("--molecules", type=int, default=1500)
    rates.add_argument("--out", type=Path, required=True)
    rates.set_defaults(run=count_rates)
    given = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    given.run(given)


def count_rates(given: argparse.Namespace) -> None:
    """Count how many products of each transformation are bundled molecules."""
    held_out = keys_of_folds(given.tables)
    table = Bundle.open().molecules.table
    rows = [
        (smiles, sources)
        for key, smiles, sources in zip(
            *(table[name].to_pylist() for name in ("key", "smiles", "sources")), strict=True
        )
        if key not in held_out
    ]
    known = {smiles for smiles, _ in rows}
    measured = [smiles for smiles, sources in rows if "massbank" in sources]
    measured.sort(key=lambda smiles: zlib.crc32(smiles.encode()))
    made, real = Counter(), Counter()
    for number, smiles in enumerate(measured[: given.molecules]):
        parent = Chem.MolFromSmiles(smiles)
        if parent.GetNumAtoms() > 60:
            continue
        for transformation in transformations():
            of_parent = set()
            for product in products(transformation, parent):
                try:
                    of_parent.add(Chem.MolToSmiles(standardise(product)))
                except MoleculeError:
                    continue
            made[transformation.name] += len(of_parent)
            real[transformation.name] += len(of_parent & known - {smiles})
        if number % 100 == 0:
            print(number, sum(made.values()), sum(real.values()), flush=True)
    counts = {one.name: [made[one.name], real[one.name]] for one in transformations()}
    given.out.write_text(json.dumps({"molecules": given.molecules, "counts": counts}, indent=1))


def keys_of_folds(tables: list[Path]) -> set[str]:
    """First InChIKey blocks of the molecules of the validation and test folds."""
    keys: set[str] = set()
    for path in tables:
        table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t"))
        for fold, key in zip(table["fold"].to_pylist(), table["inchikey"].to_pylist(), strict=True):
            if fold in HELD_OUT:
                keys.add(key[:14])
    return keys


if __name__ == "__main__":
    main()
