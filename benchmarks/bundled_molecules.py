"""What the bundled molecule database holds: size, sources, names, links, common metabolites.

python benchmarks/bundled_molecules.py            # the bundle that comes with mzseek
python benchmarks/bundled_molecules.py mine --json
"""

import argparse
import csv
import json
from collections import Counter
from pathlib import Path

from mzseek.bundle import Bundle
from mzseek.bundle.bundle import MOLECULES
from mzseek.chem import inchikey_block
from mzseek.chem.identifiers import link, source_of

COMMON = Path(__file__).with_name("common_metabolites.tsv")
MEASURED = {"library", "massbank"}  # sources whose molecules come from MassBank's records


def describe(bundle: Bundle) -> dict[str, object]:
    """Count what the database of a bundle holds; shares are fractions."""
    rows = bundle.molecules.table.to_pylist()
    measured = [row for row in rows if MEASURED & set(row["sources"])]
    identified = [row for row in rows if row["identifiers"]]
    with COMMON.open(encoding="utf-8") as file:
        common = {
            inchikey_block(row["smiles"]): row["name"]
            for row in csv.DictReader(file, delimiter="\t")
        }
    resources = Counter(
        (source_of(text) or ("unknown", ""))[0] for row in identified for text in row["identifiers"]
    )
    return {
        "bytes": (bundle.folder / MOLECULES).stat().st_size,
        "molecules": len(rows),
        "sources": dict(Counter(name for row in rows for name in row["sources"]).most_common()),
        "permanent cations": sum("+" in row["formula"] for row in rows),
        "MassBank molecules": len(measured),
        "share of them with a name": sum(bool(row["names"]) for row in measured) / len(measured),
        "with a name": sum(bool(row["names"]) for row in rows),
        "with an identifier": len(identified),
        "share of these with a link": sum(any(map(link, row["identifiers"])) for row in identified)
        / max(len(identified), 1),
        "identifiers": dict(resources.most_common()),
        "common metabolites": len(common),
        "of which present": sum(key in bundle.molecules.rows_by_key for key in common),
        "missing": [
            name for key, name in common.items() if key not in bundle.molecules.rows_by_key
        ],
    }


def main() -> None:
    """Print the counts of a bundle."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bundle", nargs="?", type=Path, help="the one of mzseek by default")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts = describe(Bundle.open(options.bundle))
    if options.json:
        print(json.dumps(counts))
        return
    for name, value in counts.items():
        shown = f"{100 * value:.1f} %" if isinstance(value, float) else value
        print(f"{name}: {shown:,}" if isinstance(shown, int) else f"{name}: {shown}")


if __name__ == "__main__":
    main()
