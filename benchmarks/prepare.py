"""Time, memory and disk that `mzseek prepare` needs.

usage: prepare.py [--scale massbank|massspecgym] [--json]

massbank     the shared MassBank set as it is
massspecgym  a set of MassSpecGym's size: 231,104 spectra (MassBank's, repeated) of 28,929
             molecules with 256 candidates each, drawn from the shared pool by mass
"""

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from measure import Measure, shared_data
from mzseek.datasets.prepare import prepare

SPECTRA, MOLECULES, CANDIDATES = 231_104, 28_929, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=["massbank", "massspecgym"], default="massbank")
    parser.add_argument("--fingerprint", default="morgan2")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    data = shared_data()
    if data is None:
        sys.exit("needs the shared data folder beside the checkout")
    from mzseek.datasets.prepare import PrepareOptions

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if arguments.scale == "massbank":
            table = data / "massbank.tsv.gz"
            lists = {s: data / f"massbank_candidates_{s}.json.gz" for s in ("mass", "formula")}
        else:
            table, lists = make_massspecgym_size(data, folder)
        with Measure() as measure:
            prepared, _ = prepare(
                table, lists, folder / "prepared", PrepareOptions(fingerprint=arguments.fingerprint)
            )
        counts = prepared.manifest["counts"]
        result = {
            "scale": arguments.scale,
            "fingerprint": arguments.fingerprint,
            "spectra": counts["spectra"],
            "molecules": counts["molecules"],
            "candidates": sum(s["candidates"] for s in prepared.manifest["candidates"].values()),
            "seconds": round(measure.seconds, 1),
            "peak_gigabytes": round(measure.peak_bytes / 1e9, 2),
            "megabytes_on_disk": round(
                sum(f["bytes"] for f in prepared.manifest["files"].values()) / 1e6, 1
            ),
            "set_aside": counts["set_aside"],
        }
    print(
        json.dumps(result) if arguments.json else "\n".join(f"{k}: {v}" for k, v in result.items())
    )


def make_massspecgym_size(data: Path, folder: Path) -> tuple[Path, dict[str, Path]]:
    """Write the enlarged set; this is not part of what is timed."""
    with gzip.open(data / "molecules.tsv.gz", "rt") as stream:
        next(stream)
        smiles = [line.split("\t")[2] for line in stream]
    # The pool is sorted by mass, so a window of it is a list of equal-mass candidates.
    centres = np.linspace(CANDIDATES, len(smiles) - CANDIDATES, MOLECULES).astype(int)
    lists = folder / "candidates_mass.json"
    with lists.open("w") as out:
        out.write("{")
        for place, centre in enumerate(centres):
            window = smiles[centre - CANDIDATES // 2 : centre + CANDIDATES // 2]
            out.write(", " if place else "")
            out.write(f"{json.dumps(smiles[centre])}: {json.dumps(window)}")
        out.write("}")
    table = folder / "spectra.tsv"
    with gzip.open(data / "massbank.tsv.gz", "rt") as stream, table.open("w") as out:
        header = next(stream)
        columns = header.rstrip("\n").split("\t")
        out.write(header)
        rows = [line.rstrip("\n").split("\t") for line in stream]
        for number in range(SPECTRA):
            row = dict(zip(columns, rows[number % len(rows)], strict=True))
            row["identifier"] = f"repeated-{number}"
            row["smiles"] = smiles[centres[number % MOLECULES]]
            out.write("\t".join(row.values()) + "\n")
    return table, {"mass": lists}


if __name__ == "__main__":
    main()
