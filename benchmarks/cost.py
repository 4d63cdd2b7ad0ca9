"""What the whole protocol costs at MassSpecGym's size, from steps and a validation timed here.

usage: cost.py PREPARED [--nodes 16] [--cores 32]

Every trial of every experiment at scale paper, each once. A step of each loss is timed on one core
(batch 64; lists of 253, and of the length of hard negatives); a validation on one core by applying
a network to the validation fold of a prepared folder, and taken in proportion to MassSpecGym's.
"""

import argparse
import time
from statistics import median

import torch

from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.evaluation.scored import validation_means
from mzseek.experiments import experiment_named, names, scale_named
from mzseek.experiments.cost import MASSSPECGYM, count_runs
from mzseek.models import build
from mzseek.models.model import TorchNetwork
from mzseek.parallel.engine import keep_freed_memory
from mzseek.runs.predictions import predict
from mzseek.training.options import Options
from train_step import measure


def validation_seconds(prepared, loss):
    """CPU seconds to validate a spectrum."""
    spec = Options.of(loss).model_for(prepared)
    network = TorchNetwork(build(spec, seed=0))
    queries = prepared.in_fold("val")
    slices = Slices(prepared, tuple(prepared.measured_settings), queries)
    taken = []
    for _ in range(3):
        started = time.process_time()
        validation_means(predict(network, slices, queries), prepared)
        taken.append(time.process_time() - started)
    return median(taken) / len(queries)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prepared", help="a prepared folder, to time validations on")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--cores", type=int, default=32, help="of a node, one for each trial")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    prepared = Prepared.open(options.prepared)
    runs = count_runs(map(experiment_named, names()), scale_named("paper"))
    print(
        f"{'loss':10}{'list':>6}{'runs':>6}{'ms a step':>11}{'ms to validate':>16}{'CPU-hours':>11}"
    )
    total, longest = 0.0, 0.0
    for size, count in sorted(runs.items(), key=lambda item: (item[0].loss, item[0].length)):
        step = median(measure(size.loss, size.length)["step"]) / 1000
        validation = validation_seconds(prepared, size.loss)
        run = size.hours(MASSSPECGYM, step, validation)
        total, longest = total + count * run, max(longest, run)
        print(
            f"{size.loss:10}{size.length:6}{count:6}{1000 * step:11.1f}{1000 * validation:16.2f}"
            f"{count * run:11,.0f}",
            flush=True,
        )
    nodes = options.nodes * options.cores
    print(f"all: {total:,.0f} CPU-hours; the longest run {longest:,.1f} hours")
    print(
        f"on {options.nodes} nodes of {options.cores} cores, if their cores are as fast and share "
        f"nothing: {max(total / nodes, longest):,.1f} hours"
    )


if __name__ == "__main__":
    main()
