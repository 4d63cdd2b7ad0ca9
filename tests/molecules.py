"""Molecules to test with: 175 well-known ones, then isomers of their formulas and of others."""

import csv
from pathlib import Path

_ROWS = list(csv.DictReader(Path(__file__).with_suffix(".tsv").open(), delimiter="\t"))
MOLECULES = [row["smiles"] for row in _ROWS]
KNOWN = [row["smiles"] for row in _ROWS if row["name"]]
