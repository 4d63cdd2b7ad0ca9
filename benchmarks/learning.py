"""What benchmarks of training set up alike: a model, its step, and what makes batches for it."""

import sys
from pathlib import Path

import torch

from mzseek.datasets.batch import BatchMaker
from mzseek.datasets.prepared import Prepared
from mzseek.models import build
from mzseek.parallel.engine import keep_freed_memory
from mzseek.training.loop import Learner


def opened(threads):
    """The prepared folder and the losses of the command line, with torch at so many threads."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        name = Path(sys.argv[0]).name
        sys.exit(f"usage: {name} PREPARED [LOSS ...]   (a folder that `mzseek prepare` has made)")
    torch.set_num_threads(threads)
    keep_freed_memory()
    return Prepared.open(sys.argv[1]), sys.argv[2:]


def learning(prepared, options):
    """A learner, a maker of batches, and the training spectra that have what the loss reads."""
    model = build(options.model_for(prepared), seed=0).train()
    settings = ("mass",) if options.facts.reads_candidates else ()
    queries = prepared.in_fold("train")
    maker = BatchMaker(
        prepared, "bins", settings, queries, backward_lists=model.scorer.kind.maps_candidates
    )
    for setting in settings:
        queries = maker.with_lists(queries, setting, "fingerprint")
    return Learner(model, options), maker, queries
