"""Hits of `mzseek annotate` on spectra with mass drift, with and without recalibration.

    python benchmarks/mass_drift.py set.tsv.gz set_candidates_mass.json.gz --model BUNDLE --work DIR

The spectra of a fold are written as they are and with each drift, one file for each instrument
type, and annotated with each value of --compare (options of `mzseek annotate`). The database has
the molecules of all candidate lists of the fold. Contributors are mixed, and so are their mass
errors: a file of one instrument is an easier case. Hits are by the first block of the InChIKey;
intervals are over molecules, of differences paired by spectrum.
"""

import argparse
import csv
import gzip
import json
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from mzseek.chem import inchikey_block
from mzseek.datasets.files import read_table
from mzseek.metrics import bootstrap
from mzseek.spectra import Spectrum, write_mgf

KS = (1, 5, 20)
NODES: dict[str, tuple[list[float], list[float]]] = {  # m/z, ppm
    "none": ([100.0], [0.0]),
    "+30 at 60, +12 at 140, -3 at 300": ([60.0, 140.0, 300.0], [30.0, 12.0, -3.0]),
    "+12 at 70, 0 at 200": ([70.0, 200.0], [12.0, 0.0]),
    "constant 8": ([100.0], [8.0]),
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("table", type=Path)
    asked.add_argument("candidates", type=Path)
    asked.add_argument("--fold", default="val")
    asked.add_argument("--model", type=Path)
    asked.add_argument("--each", type=int, default=1, help="spectra of a molecule, at most")
    asked.add_argument("--work", type=Path, required=True)
    asked.add_argument(
        "--compare", action="append", metavar="=OPTIONS",
        help="options of annotate, separated by commas; several times, the first is compared with",
    )  # fmt: skip
    given = asked.parse_args()
    given.compare = given.compare or ["--recalibrate=off", "--recalibrate=auto"]
    given.work.mkdir(parents=True, exist_ok=True)
    truth = write_files(given)
    ranks = {}
    for number, options in enumerate(given.compare):
        out = given.work / f"answers-{number}"
        began = time.perf_counter()
        annotate(given, options.split(","), out)
        print(f"{options}: {time.perf_counter() - began:.0f} s", flush=True)
        ranks[options] = ranks_of(truth, out / "candidates.tsv")
    report(truth, ranks)


def write_files(given: argparse.Namespace) -> dict[str, str]:
    """Write spectra and the database; return the key of the molecule of each feature."""
    lists = json.loads(gzip.decompress(given.candidates.read_bytes()))
    files: dict[tuple[str, str], list[Spectrum]] = defaultdict(list)
    truth, seen, keys = dict[str, str](), defaultdict[str, int](int), dict[str, str]()
    for spectrum in read_table(given.table, lambda where, reason: None):
        metadata = spectrum.metadata
        smiles = metadata["smiles"]
        if metadata["fold"] != given.fold:
            continue
        seen[smiles] += 1
        if seen[smiles] > given.each:
            continue
        keys.setdefault(smiles, inchikey_block(smiles))
        # Instrument types are left out of the files: tolerances are those of the model.
        energy = {k: v for k, v in metadata.items() if k == "collision_energy"}
        origin = metadata["instrument_type"]
        for drift, (mz, ppm) in NODES.items():
            shifted = spectrum.mz * (1 + np.interp(spectrum.mz, mz, ppm) * 1e-6)
            name = f"{drift}: {spectrum.identifier}"
            truth[name] = keys[smiles]
            files[origin, drift].append(
                replace(
                    spectrum, mz=shifted, identifier=name, metadata={**energy, "feature_id": name}
                )
            )
    folder = given.work / "spectra"
    folder.mkdir(exist_ok=True)
    for number, spectra in enumerate(files.values()):
        write_mgf(folder / f"{number:03}.mgf", spectra)
    if not (given.work / "molecules").is_dir():
        table = given.work / "molecules.csv"
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["smiles"])
            writer.writerows([s] for s in sorted({s for name in keys for s in lists[name]}))
        run(["database", "build", str(table), "--out", str(given.work / "molecules")])
    return truth


def annotate(given: argparse.Namespace, options: list[str], out: Path) -> None:
    run(
        [
            "annotate", str(given.work / "spectra"), "--out", str(out), "--force", "--strict",
            "--database", str(given.work / "molecules"),
            *(["--model", str(given.model)] if given.model else []), *options,
        ]
    )  # fmt: skip


def run(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from mzseek.cli import main; main()", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def ranks_of(truth: dict[str, str], path: Path) -> dict[str, int]:
    """Rank of the molecule of each feature; a large number where it is not among the first."""
    ranks = dict.fromkeys(truth, 10**9)
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            row["feature"] = row["feature"].removeprefix("'")  # of names that begin with a sign
            if row["InChIkey2D"] == truth[row["feature"]]:
                ranks[row["feature"]] = min(ranks[row["feature"]], int(row["rank"]))
    return ranks


def report(truth: dict[str, str], ranks: dict[str, dict[str, int]]) -> None:
    base = next(iter(ranks))
    for drift in NODES:
        names = sorted(name for name in truth if name.startswith(f"{drift}: "))
        molecule = np.unique([truth[name] for name in names], return_inverse=True)[1]
        print(f"{drift}: {len(names)} spectra of {molecule.max() + 1} molecules")
        for options, of_option in ranks.items():
            print(f"  {options}: {hits(of_option, names, molecule)}")
            if options != base:
                other = ranks[base]
                changed = difference(of_option, other, names, molecule)
                print(f"    difference: {changed}")


def hits(ranks: dict[str, int], names: list[str], molecule: np.ndarray) -> str:
    values = np.array([ranks[name] for name in names])
    shown = [bootstrap((values <= k).astype(float), molecule) for k in KS]
    return " / ".join(f"{100 * s.mean:.1f} ({100 * s.low:.1f}…{100 * s.high:.1f})" for s in shown)


def difference(
    ranks: dict[str, int], base: dict[str, int], names: list[str], molecule: np.ndarray
) -> str:
    new, old = (np.array([of[name] for name in names]) for of in (ranks, base))
    shown = [
        bootstrap((new <= k).astype(float) - (old <= k), molecule, bounds=(-1.0, 1.0)) for k in KS
    ]
    return " / ".join(
        f"{100 * s.mean:+.1f} ({100 * s.low:+.1f}…{100 * s.high:+.1f})" for s in shown
    )


if __name__ == "__main__":
    main()
