"""Where training begins: another run's weights, each bit's base rate, or neither."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from mzseek.errors import RunError
from mzseek.models import Retriever
from mzseek.prepared.reader import Prepared
from mzseek.runs.kept import kept_model
from mzseek.runs.run import Run
from mzseek.training.plan.options import Options
from mzseek.training.weights import start_from
from mzseek.work.progress import Say

_FREE = ("encoder.dropout",)  # a second stage may have another: no weight depends on it


def begin(model: Retriever, prepared: Prepared, options: Options, say: Say) -> None:
    """Put into a fresh model what its options say that it begins with."""
    if options.start_from:
        weights = first_stage(options, prepared)
        taken = start_from(model, weights)
        left = sorted(set(model.state_dict()) - set(taken))
        say(f"{len(taken)} weights taken from {weights}")
        if left:
            say(f"{len(left)} weights begin anew: {', '.join(left)}")
    if options.bias == "log-odds" and model.head is not None:
        frequency, count = bit_frequency(prepared)
        model.head.start_at(torch.from_numpy(frequency), count)


def bit_frequency(prepared: Prepared) -> tuple[npt.NDArray[np.float64], int]:
    """Share of training spectra whose molecule has each bit, and how many spectra there are."""
    molecules, counts = np.unique(prepared.molecule[prepared.in_fold("train")], return_counts=True)
    rows = prepared.fingerprint_rows(molecules)
    total = int(counts.sum())
    return np.asarray(rows.T @ counts, np.float64) / total, total


def first_stage(options: Options, prepared: Prepared) -> Path:
    """The checkpoint of a first stage that a second one starts from.

    Raises
    ------
    RunError
        There is none, its encoder is another, or it was trained on other data: their training
        fold may hold our test molecules, and their bits may mean something else.
    """
    source = Run.open(options.start_from or "")
    theirs, ours = Options.of_run(source).flat(), options.flat()
    for name in ("model", *(name for name in ours if name.startswith("encoder."))):
        had, wanted = theirs.get(name), ours[name]
        if had != wanted and name not in _FREE:
            raise RunError(f"{source.folder}: has {name} {had}, expected {wanted} as asked for")
    if not source.best:
        raise RunError(f"{source.folder}: has no checkpoint to start from")
    if source.facts["data"]["key"] != prepared.manifest["key"]:
        raise RunError(f"{source.folder}: was trained on other data than {prepared.folder} holds")
    metric = "tanimoto" if "tanimoto" in source.best else next(iter(source.best))
    kept_model(source, metric, prepared)  # refuses what is not the run's own
    return source.checkpoint(metric)
