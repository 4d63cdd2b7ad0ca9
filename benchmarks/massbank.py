"""The paper's trade-off on a real set: losses and controls, three seeds each.

usage: massbank.py PREPARED OUT [--seeds 0 1 2] [--processes 2]

Trains every run that is not there yet, two at a time with one thread each, and prints the table of
the docs: test fold, mass candidates, means over seeds; each metric from the checkpoint that was
best by it on validation.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.runs.run import Run
from mzseek.training.options import Options, with_protocol
from mzseek.training.train import train_several

# Learning rate and temperature of emb-cos by the hit rate at 1 on validation, seed 0.
RUNS = {
    "emb-cos": {
        "loss": "emb-cos", "epochs": 5, "lr": 5e-5, "validate_every": 500,
        "parts": {"loss": {"temperature": 1 / 16}},
    },
    "bce": {"loss": "bce", "epochs": 10, "lr": 1e-4},
    "iou": {"loss": "iou", "epochs": 10, "lr": 1e-4, "bias": "log-odds"},
    "spectrum-blind": {
        "loss": "emb-cos", "model": "blind", "epochs": 5, "lr": 1e-3, "validate_every": 500,
        "parts": {"loss": {"temperature": 1 / 16}},
    },
}  # fmt: skip
METRICS = ("hit_rate@1", "hit_rate@5", "hit_rate@20", "tanimoto")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=list(RUNS), choices=list(RUNS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wanted = {
        f"{name}-{seed}": with_protocol(Options.of(**RUNS[name], seed=seed, threads=1), "paper")
        for name in options.only
        for seed in options.seeds
    }
    started = time.perf_counter()
    runs = train_several(
        options.prepared, wanted, options.out, processes=options.processes, say=print
    )
    took = time.perf_counter() - started
    table = {name: summary(runs, name, options.seeds) for name in options.only}
    chance = evaluate(next(iter(runs.values())), Scoring()).random_order
    if options.json:
        print(json.dumps({"table": table, "random": chance, "seconds": took}))
        return
    print(f"trained in {took:,.0f} s on {Prepared.open(options.prepared)!r}")
    print(f"{'%':16s} {'HR@1':>14s} {'HR@5':>14s} {'HR@20':>14s} {'Tanimoto':>14s}  seconds a run")
    for name, row in table.items():
        cells = [
            f"{100 * row[m][0]:6.1f} ± {100 * row[m][1]:3.1f}" if m in row else "–" for m in METRICS
        ]
        print(f"{name:16s} {' '.join(f'{cell:>14s}' for cell in cells)}  {row['seconds']:.0f}")
    cells = [f"{100 * chance[m]:6.1f}" if m in chance else "–" for m in METRICS]
    print(f"{'random':16s} {' '.join(f'{cell:>14s}' for cell in cells)}")


def summary(runs: dict[str, Run], name: str, seeds: list[int]) -> dict:
    """Mean and standard deviation over seeds of each metric, and seconds a run."""
    found = [evaluate(runs[f"{name}-{seed}"], Scoring()).to_dict() for seed in seeds]
    row = {
        metric: (float(np.mean(values)), float(np.std(values)))
        for metric in METRICS
        if (values := [one[metric] for one in found if metric in one])
    }
    row["seconds"] = float(np.mean([runs[f"{name}-{seed}"].metadata["seconds"] for seed in seeds]))
    return row


if __name__ == "__main__":
    main()
