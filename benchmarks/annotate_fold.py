"""Annotate a fold of a data set, file in and table out, and count hits.

    python benchmarks/annotate_fold.py set.tsv.gz set_candidates_mass.json.gz --model BUNDLE

The spectra of the fold are written as MGF, their candidate lists as CSV, and `mzseek annotate` is
run on them. Hits are by the first block of the InChIKey, intervals over molecules. Candidates
below the first hundred are not shown, and count as missed. With --together, spectra of a molecule
are one feature.
"""

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from mzseek.chem import inchikey_block
from mzseek.datasets.files import read_table
from mzseek.metrics import bootstrap

KS = (1, 5, 20)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("table", type=Path)
    asked.add_argument("candidates", type=Path)
    asked.add_argument("--fold", default="test")
    asked.add_argument("--model", type=Path)
    asked.add_argument("--mode", choices=("positive", "negative"), default="positive")
    asked.add_argument("--together", action="store_true")
    asked.add_argument("--each", type=int, help="spectra of a molecule, at most; all by default")
    asked.add_argument("--options", default="", metavar="=OPTIONS", help="of annotate, by commas")
    asked.add_argument("--keep", type=Path, help="folder for what is written")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        print(json.dumps(measured(given, folder)))


def measured(given: argparse.Namespace, folder: Path) -> dict[str, object]:
    truth = written(given, folder)
    command = [
        sys.executable, "-c", "from mzseek.cli import main; main()",
        "annotate", str(folder / "fold.mgf"), "--database", str(folder / "candidates.csv"),
        "--out", str(folder / "answers.tsv"),
    ]  # fmt: skip
    command += ["--model", str(given.model)] if given.model else []
    command += filter(None, given.options.split(","))
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=sys.stderr)
    seconds = time.perf_counter() - began
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (folder / "answers.tsv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            rows[row["feature"]].append(row)
    return {"seconds": round(seconds, 1), "features": len(truth), **numbers(truth, rows)}


def numbers(truth: dict[str, str], rows: dict[str, list[dict[str, str]]]) -> dict[str, object]:
    names = sorted(truth)
    rank, sure, held, sizes = [], [], [], []
    for name in names:
        own = rows.get(name, [])
        places = [int(row["rank"]) for row in own if row["InChIkey2D"] == truth[name]]
        rank.append(min(places, default=10**9))
        sure.append(float(own[0]["probability"]) if own else 0.0)
        in_set = [row for row in own if row["inSet"] == "yes"]
        held.append(any(row["InChIkey2D"] == truth[name] for row in in_set))
        sizes.append(len(in_set))
    molecule = np.unique([truth[name] for name in names], return_inverse=True)[1]
    ranks = np.array(rank)
    found: dict[str, object] = {"molecules": len(np.unique(molecule))}
    for k in KS:
        one = bootstrap((ranks <= k).astype(float), molecule)
        found[f"hit_rate@{k}"] = [round(100 * v, 1) for v in (one.mean, one.low, one.high)]
    cover = bootstrap(np.array(held, float), molecule)
    found["coverage"] = [round(100 * v, 1) for v in (cover.mean, cover.low, cover.high)]
    found["set_size"] = round(float(np.mean(sizes)), 1)
    found["calibration_error"] = round(100 * error(np.array(sure), ranks == 1), 2)
    return found


def error(sure: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error of the first candidate, over bins of equal width."""
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [
        (place == at).mean() * abs(sure[place == at].mean() - right[place == at].mean())
        for at in np.unique(place)
    ]
    return float(np.sum(gaps))


def written(given: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Files for `annotate`, and the key of the truth of each feature."""
    lists = json.loads(gzip.decompress(given.candidates.read_bytes()))
    truth: dict[str, str] = {}
    keys: dict[str, str] = {}
    seen: dict[str, int] = {}
    with (
        (folder / "fold.mgf").open("w") as mgf,
        (folder / "candidates.csv").open("w", newline="") as table,
    ):
        writer = csv.writer(table)
        writer.writerow(["feature", "smiles"])
        for spectrum in read_table(given.table, lambda where, reason: None):
            sign = "+" if (spectrum.adduct or "").endswith("+") else "-"
            wanted = "+" if given.mode == "positive" else "-"
            if spectrum.metadata["fold"] != given.fold or sign != wanted:
                continue
            smiles = spectrum.metadata["smiles"]
            key = keys.setdefault(smiles, inchikey_block(smiles))
            seen[key] = seen.get(key, 0) + 1
            if given.each and seen[key] > given.each:
                continue
            name = key if given.together else spectrum.identifier
            if name not in truth:
                truth[name] = key
                writer.writerows([name, each] for each in lists[smiles])
            mgf.write(f"BEGIN IONS\nFEATURE_ID={name}\nPEPMASS={spectrum.precursor_mz}\n")
            mgf.write(f"ADDUCT={spectrum.adduct}\nCHARGE=1{sign}\n")
            if energy := spectrum.metadata.get("collision_energy"):
                mgf.write(f"COLLISION_ENERGY={energy}\n")
            for mz, height in zip(spectrum.mz, spectrum.intensities, strict=True):
                mgf.write(f"{mz} {height}\n")
            mgf.write("END IONS\n\n")
    return truth


if __name__ == "__main__":
    main()
