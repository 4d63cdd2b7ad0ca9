"""Order of spectra, initialisation, saved state of a run."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save_file

from mzseek.core.errors import ModelError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.io import atomic_directory, read_object
from mzseek.io.manifest import check_fields
from mzseek.models import Retriever
from mzseek.models.model import as_arrays
from mzseek.parallel.engine import Log
from mzseek.runs.checkpoints import digest, kept_model, read_arrays
from mzseek.runs.run import Run
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.options import Options, check_size
from mzseek.training.prior_offset import offset_groups


def steps_an_epoch(spectra: int, batch_size: int) -> int:
    """Steps in which each of the spectra is seen once; the last batch may be smaller.

    Examples
    --------
    >>> steps_an_epoch(1160, 64)
    19
    """
    return -(-spectra // batch_size)


class TrainingOrder:
    """Batches of every epoch, each epoch in an order of its own.

    Since a step's batch depends on nothing that came before, a run that was killed goes on from any
    step as if it had never stopped.

    Parameters
    ----------
    queries : int64 array
        Spectra to train on.
    batch_size, epochs, seed : int
    """

    def __init__(
        self, queries: npt.NDArray[np.int64], batch_size: int, epochs: int, seed: int
    ) -> None:
        self._queries = queries
        self._batch_size = batch_size
        self._seed = seed
        self.steps_per_epoch = steps_an_epoch(len(queries), batch_size)
        self.steps = self.steps_per_epoch * epochs

    def epoch(self, step: int) -> int:
        """The epoch that a step belongs to, from 0."""
        return step // self.steps_per_epoch

    def from_step(self, first: int) -> Iterator[npt.NDArray[np.int64]]:
        """Spectra of each step, from ``first`` to the end."""
        order = self._queries
        shuffled = -1
        for step in range(first, self.steps):
            epoch, place = divmod(step, self.steps_per_epoch)
            if epoch != shuffled:
                order = np.random.default_rng([self._seed, epoch]).permutation(self._queries)
                shuffled = epoch
            yield order[place * self._batch_size : (place + 1) * self._batch_size]


def load_into(model: Retriever, arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Put weights into a model that must have exactly these; ``path`` is where they are from."""
    try:
        model.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items()})
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise ModelError(f"{path}: does not fit the model it describes ({first})") from error


def start_from(model: Retriever, path: Path) -> list[str]:
    """Take over another model's encoder, and every other weight of the same name and shape.

    Returns
    -------
    list of str
        Names of the weights that were taken.

    Raises
    ------
    ModelError
        A weight of this model's encoder is not there, or of another shape.
    """
    arrays, _ = read_arrays(path)
    own = model.state_dict()
    fitting = {
        name: torch.from_numpy(value)
        for name, value in arrays.items()
        if name in own and own[name].shape == value.shape
    }
    missing = [name for name in own if name.startswith("encoder.") and name not in fitting]
    if missing:
        raise ModelError(
            f"{path}: has another encoder than this model ({len(missing)} of its weights do not "
            f"fit, {missing[0]} first)"
        )
    model.load_state_dict(fitting, strict=False)
    return sorted(fitting)


_STATE = {"step": int, "run": str, "digest": str}


def save_state(
    folder: Path, model: Retriever, optimizer: ClippedAdam, facts: dict[str, Any]
) -> None:
    """Write all that a run needs to go on: weights, moments, random state, and plain facts."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for what, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{what}.{name}"] = value
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    arrays = as_arrays(tensors)
    with atomic_directory(folder) as partial:
        save_file(arrays, partial / "state.safetensors")
        text = json.dumps(facts | {"digest": digest(arrays)})
        (partial / "state.json").write_text(text, encoding="utf-8")


def load_state(folder: Path, model: Retriever, optimizer: ClippedAdam, run: str) -> dict[str, Any]:
    """Put back what `save_state` wrote; returns the plain facts.

    Parameters
    ----------
    folder : Path
    model : Retriever
    optimizer : ClippedAdam
    run : str
        Identity of the run that it must be the state of.

    Raises
    ------
    RunError, ModelError
        It is damaged, or of another run.
    """
    anew = f"remove {folder} to begin the run anew"
    path = folder / "state.safetensors"
    facts = read_object(folder / "state.json", RunError, anew)
    check_fields(facts, _STATE, folder / "state.json", RunError, anew)
    if facts["run"] != run:
        raise RunError(f"{folder}: is the state of another run; {anew}")
    arrays, _ = read_arrays(path)
    if facts["digest"] != digest(arrays):
        raise RunError(f"{path}: has changed since it was written; {anew}")
    weights = {
        name.removeprefix("model."): value
        for name, value in arrays.items()
        if name.startswith("model.")
    }
    load_into(model, weights, path)
    for name, parameter in model.named_parameters():
        for what in ("step", "exp_avg", "exp_avg_sq"):
            value = arrays.get(f"optimizer.{what}.{name}")
            if value is None:
                continue
            if value.shape != (() if what == "step" else parameter.shape):
                raise RunError(f"{path}: {what} of {name} has another shape; {anew}")
            optimizer.state[parameter][what] = torch.from_numpy(value).to(parameter.device)
    try:
        torch.set_rng_state(torch.from_numpy(arrays["random.cpu"]))
        if torch.cuda.is_available() and "random.cuda" in arrays:
            torch.cuda.set_rng_state(torch.from_numpy(arrays["random.cuda"]))
    except (KeyError, RuntimeError, TypeError) as error:
        raise RunError(f"{path}: its random state cannot be read; {anew}") from error
    return {name: value for name, value in facts.items() if name != "digest"}


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


def begin(model: Retriever, prepared: Prepared, options: Options, say: Log) -> None:
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
