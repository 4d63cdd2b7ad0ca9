"""What a small set gets out of the box, beside the paper's protocol.

usage: small.py SPECTRA CANDIDATES_MASS OUT [--losses bce iou emb-cos] [--epochs 10]
                [--seeds 0 1 2] [--processes 2]
       small.py --demo OUT

Draws a small library from a large set in MassSpecGym's columns (340 molecules to train on, 45 to
validate, at most four spectra each; all test molecules, at most two each), or takes spectra of
the bundled library. Trains each loss with ``--protocol auto`` and ``paper``, and prints the test
fold's means over seeds, each metric from the checkpoint that was best by it on validation.
"""

import argparse
import csv
import gzip
import json
import random
from pathlib import Path

import numpy as np

from mzseek.bundle import Bundle
from mzseek.bundle.subset import write_subset
from mzseek.datasets.files import find_dataset
from mzseek.datasets.prepare import prepare
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.training.options import Options, with_protocol
from mzseek.training.train import train_several

METRICS = {"hit_rate@1": "HR@1", "hit_rate@20": "HR@20", "tanimoto": "Tanimoto"}
DRAWN = {"train": (340, 4), "val": (45, 4), "test": (None, 2)}  # molecules, spectra of each


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="SPECTRA CANDIDATES OUT, or OUT")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--losses", nargs="+", default=["bce", "iou", "emb-cos"])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    out = options.paths[-1]
    setting = "mass"
    if options.demo:
        files = write_subset(Bundle.open(), out / "data")
    else:
        draw(*options.paths[:2], out / "data")
        files = find_dataset(out / "data")
    prepared, _ = prepare(files.spectra, files.candidates, out / "prepared")
    wanted = {
        f"{loss}-{protocol}-{options.epochs}-{seed}": with_protocol(
            Options.of(loss, candidates=setting, epochs=options.epochs, seed=seed), protocol
        )
        for loss in options.losses
        for protocol in ("paper", "auto")
        for seed in options.seeds
    }
    runs = train_several(
        prepared.folder, wanted, out / "runs", processes=options.processes, say=print
    )
    print(f"{prepared!r}, {options.epochs} epochs, {setting} candidates, test fold")
    print(
        f"{'%':18s} {' '.join(f'{label:>14s}' for label in METRICS.values())}  steps, validations"
    )
    for loss in options.losses:
        for protocol in ("paper", "auto"):
            name = f"{loss}-{protocol}-{options.epochs}"
            own = [runs[f"{name}-{seed}"] for seed in options.seeds]
            found = [evaluate(run, Scoring(candidates=setting)).to_dict() for run in own]
            cells = [cell([one[metric] for one in found if metric in one]) for metric in METRICS]
            steps, validations = own[0].metadata["steps"], len(own[0].history())
            print(f"{loss:8s} {protocol:9s} {' '.join(cells)}  {steps}, {validations}")
    chance = evaluate(own[0], Scoring(candidates=setting)).random_order
    print(f"{'random':18s} {' '.join(f'{100 * chance[m]:14.1f}' for m in METRICS if m in chance)}")


def cell(values: list[float]) -> str:
    """Mean and standard deviation over seeds, in percent."""
    if not values:
        return f"{'–':>14s}"
    return f"{100 * np.mean(values):8.1f} ± {100 * np.std(values):3.1f}"


def draw(spectra: Path, candidates: Path, out: Path) -> None:
    """Write a small library, drawn from a large set."""
    csv.field_size_limit(2**31 - 1)
    with gzip.open(spectra, "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    of: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        of.setdefault((row["fold"], row["smiles"]), []).append(row)
    generator = random.Random(1)
    kept, molecules = [], []
    for fold, (count, each) in DRAWN.items():
        keys = sorted(key for key in of if key[0] == fold)
        generator.shuffle(keys)
        for key in keys[:count]:
            generator.shuffle(of[key])
            kept += of[key][:each]
            molecules.append(key[1])
    out.mkdir(parents=True, exist_ok=True)
    with gzip.open(out / "spectra.tsv.gz", "wt") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(kept)
    with gzip.open(candidates, "rt") as file:
        lists = json.load(file)
    with gzip.open(out / "candidates_mass.json.gz", "wt") as file:
        json.dump({each: lists[each] for each in molecules if each in lists}, file)


if __name__ == "__main__":
    main()
