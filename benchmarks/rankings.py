"""What it costs to validate rankings by the other similarities: CPU seconds of a validation.

python benchmarks/rankings.py PREPARED [LOSS]
"""

import sys
import time
from statistics import median

import torch

from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.evaluation.scored import validation_means
from mzseek.models import build
from mzseek.models.model import TorchNetwork
from mzseek.runs.predictions import predict
from mzseek.training.options import Options

REPEATS = 5


def main(folder: str, loss: str = "iou") -> None:
    """Predict and measure the validation fold, with and without them, by turns."""
    torch.set_num_threads(1)
    prepared = Prepared.open(folder)
    spec = Options.of(loss).model_for(prepared)
    assert spec is not None
    network = TorchNetwork(build(spec, seed=0))
    queries = prepared.in_fold("val")
    slices = Slices(prepared, tuple(prepared.measured_settings), queries)
    seconds: dict[tuple[str, ...], list[float]] = {(): [], ("tanimoto", "soft-tanimoto"): []}
    for _ in range(REPEATS):
        for similarities, taken in seconds.items():
            started = time.process_time()
            validation_means(predict(network, slices, queries, similarities=similarities), prepared)
            taken.append(time.process_time() - started)
    print(f"{len(queries):,} validation spectra, {', '.join(slices.stores)} lists")
    for similarities, taken in seconds.items():
        print(f"{' + '.join(('own score', *similarities)):40} {median(taken):6.2f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
