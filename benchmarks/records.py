"""Annotate reference records that state their molecules: what is answered, and how often rightly.

    python benchmarks/records.py massbank_records.zip

`mzseek annotate` is run on the file, folder or zip with what comes with mzseek. Records whose
molecule is among the candidates are counted by level, with those whose first candidate it is; by
the first block of the InChIKey. Most of these molecules are in the shipped library: this checks
that every record ends somewhere, and that library matches hold, not how well unknowns are found.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mzseek.chem import inchikey_block
from mzseek.core.errors import MoleculeError
from mzseek.io.skipped import SkippedGroups
from mzseek.spectra import read_spectra


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("records", type=Path)
    asked.add_argument("--jobs", default="2")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        begun = time.perf_counter()
        run = "from mzseek.cli import main; main()"
        command = [sys.executable, "-c", run, "annotate", str(given.records)]
        subprocess.run([*command, "--out", str(out), "--jobs", given.jobs], check=True)
        print(f"{time.perf_counter() - begun:.0f} s")
        show(out, truths(given.records))


def truths(records: Path) -> dict[str, str]:
    """By identifier the first InChIKey block of what a record says that it is."""
    found = {}
    for spectrum in read_spectra(records, []):
        try:
            found[spectrum.identifier] = inchikey_block(spectrum.metadata.get("smiles", ""))
        except MoleculeError:
            continue
    return found


def show(out: Path, known: dict[str, str]) -> None:
    aside = SkippedGroups()
    for row in rows(out / "skipped.tsv"):
        aside(row["where"], row["reason"])
    for group in aside.by_count():
        print(f"{group.count:6,} set aside: {group.kind}")
    ranked: dict[str, list[str]] = {}
    for row in rows(out / "candidates.tsv"):
        ranked.setdefault(row["feature"], []).append(row["InChIkey2D"])
    count: Counter[tuple[str, str]] = Counter()
    for row in rows(out / "summary.tsv"):
        name, level = row["feature"], row["level"]
        for group in (level, "all"):
            count[group, "answered"] += 1
            if name in known:
                count[group, "known"] += 1
                count[group, "among"] += known[name] in ranked.get(name, ())
                count[group, "first"] += known[name] in ranked.get(name, ())[:1]
    columns = ("answered", "known", "among", "first")
    print("level", *columns, sep="\t")
    for group in sorted({group for group, _ in count}):
        print(group, *(count[group, column] for column in columns), sep="\t")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


if __name__ == "__main__":
    main()
