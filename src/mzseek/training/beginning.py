"""Whether training can begin, and from what: another run, base rates of bits, or neither."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from mzseek.errors import RunError
from mzseek.models import Retriever
from mzseek.prepared.reader import Prepared
from mzseek.prepared.slices import Slices
from mzseek.runs.kept import kept_model
from mzseek.runs.run import Run
from mzseek.training.offset import offset_groups
from mzseek.training.order import steps_an_epoch
from mzseek.training.plan.limits import check_size
from mzseek.training.plan.options import Options
from mzseek.training.weights import start_from
from mzseek.work.progress import Say

# A second stage may have others: no weight depends on them.
_FREE = ("encoder.dropout", "encoder.peak_dropout")


def check_run(prepared: Prepared, options: Options) -> int:
    """Refuse what could not be trained, before a folder is made for it.

    Parameters
    ----------
    prepared : Prepared
    options : Options

    Returns
    -------
    int
        Steps of the run, all epochs.

    Raises
    ------
    RunError, CacheError
        A fold or the lists asked for are not there, a model does not fit into memory, or the run
        to start from has another make-up.
    """
    usable = len(prepared.in_fold("train"))
    if (spec := options.model_for(prepared)) is not None:
        check_size(spec, options, usable)
    for fold in ("train", "val"):
        if not len(prepared.in_fold(fold)):
            raise RunError(f"{prepared.folder}: has no {fold} spectra, expected some of each fold")
    if prepared.settings or options.facts.reads_candidates:
        prepared.candidates(options.candidates)  # says which there are, if not this
    measured_on = prepared.measured_on(options.candidates)
    if measured_on != options.candidates:
        prepared.candidates(measured_on)
    if options.facts.reads_candidates:
        usable = _with_lists(prepared, "train", options.candidates)
    if not options.facts.reports_fingerprint:  # its only metrics are hit rates
        _with_lists(prepared, "val", measured_on)
    if options.start_from:
        first_stage(options, prepared)
    if options.offset:
        offset_groups(prepared, options.candidates)
    return steps_an_epoch(usable, options.batch_size) * options.epochs


def _with_lists(prepared: Prepared, fold: str, setting: str) -> int:
    """Spectra of a fold whose list has their molecule in it; there must be some."""
    queries = prepared.in_fold(fold)
    prepared.candidates(setting)
    count = len(Slices(prepared, (setting,), queries).with_lists(queries, setting, "fingerprint"))
    if not count:
        raise RunError(
            f"{prepared.folder}: no {fold} spectrum has a {setting} list with its molecule in it"
        )
    return count


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
