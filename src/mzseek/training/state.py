"""Order of spectra, initial weights, and the saved state of an interrupted run."""

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
from mzseek.io import atomic_directory, read_object
from mzseek.io.manifest import check_fields
from mzseek.models import Retriever
from mzseek.models.model import as_arrays
from mzseek.parallel.engine import Log
from mzseek.runs.checkpoints import best_model, digest, read_arrays
from mzseek.runs.run import Run
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.options import Options


def steps_per_epoch(spectra: int, batch_size: int) -> int:
    """Count the steps in which each spectrum is seen once; the last batch may be smaller.

    Examples
    --------
    >>> steps_per_epoch(1160, 64)
    19
    """
    return -(-spectra // batch_size)


class TrainingOrder:
    """Batches of spectra, each epoch in an order of its own.

    A step's batch depends on nothing that came before, so that an interrupted run resumes from any
    step as if it had never stopped.
    """

    def __init__(
        self, queries: npt.NDArray[np.int64], batch_size: int, epochs: int, seed: int
    ) -> None:
        self._queries = queries
        self._batch_size = batch_size
        self._seed = seed
        self.steps_per_epoch = steps_per_epoch(len(queries), batch_size)
        self.steps = self.steps_per_epoch * epochs

    def epoch(self, step: int) -> int:
        """Return the epoch that a step belongs to, from 0."""
        return step // self.steps_per_epoch

    def from_step(self, first: int) -> Iterator[npt.NDArray[np.int64]]:
        """Spectra of each step, from ``first`` to the end."""
        order, shuffled = self._queries, -1
        for step in range(first, self.steps):
            epoch, batch = divmod(step, self.steps_per_epoch)
            if epoch != shuffled:
                order = np.random.default_rng([self._seed, epoch]).permutation(self._queries)
                shuffled = epoch
            yield order[batch * self._batch_size : (batch + 1) * self._batch_size]


def load_into(model: Retriever, arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Put weights into a model that must have exactly these; ``path`` is where they are from."""
    try:
        model.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items()})
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise ModelError(f"{path}: does not fit the model it describes ({first})") from error


def load_matching(model: Retriever, path: Path) -> list[str]:
    """Copy another model's encoder, and every other weight of the same name and shape.

    Returns the names of the weights taken; raises a ModelError if one of the encoder is not there.
    """
    arrays, _ = read_arrays(path)
    state = model.state_dict()
    matching = {
        name: torch.from_numpy(value)
        for name, value in arrays.items()
        if name in state and state[name].shape == value.shape
    }
    missing = [name for name in state if name.startswith("encoder.") and name not in matching]
    if missing:
        raise ModelError(
            f"{path}: has another encoder than this model ({len(missing)} of its weights do not "
            f"fit, {missing[0]} first)"
        )
    model.load_state_dict(matching, strict=False)
    return sorted(matching)


def initialise(model: Retriever, prepared: Prepared, options: Options, say: Log) -> None:
    """Set the initial weights of a new model: those of a first stage, and the fingerprint's bias.

    The bias starts at the share of training spectra whose molecule has each bit, where the options
    say ``log-odds``.
    """
    if options.start_from:
        weights = first_stage(options, prepared)
        taken = load_matching(model, weights)
        left = sorted(set(model.state_dict()) - set(taken))
        say(f"{len(taken)} weights taken from {weights}")
        if left:
            say(f"{len(left)} weights begin anew: {', '.join(left)}")
    if options.bias == "log-odds" and model.head is not None:
        train = prepared.molecule[prepared.in_fold("train")]
        molecules, counts = np.unique(train, return_counts=True)
        total = int(counts.sum())
        rates = np.asarray(prepared.fingerprint_rows(molecules).T @ counts, np.float64) / total
        model.head.start_at(torch.from_numpy(rates), total)


# A second stage may have others: no weight depends on them.
_MAY_DIFFER = ("encoder.dropout", "encoder.peak_dropout")


def first_stage(options: Options, prepared: Prepared) -> Path:
    """Return the checkpoint of a first stage that a second one starts from.

    Raises
    ------
    RunError
        There is none, its encoder is another, or it was trained on other data: their training
        fold may hold our test molecules, and their bits may mean something else.
    """
    source = Run.open(options.start_from or "")
    theirs, ours = Options.of_run(source).flat(), options.flat()
    for name in ("model", *(name for name in ours if name.startswith("encoder."))):
        if theirs.get(name) != ours[name] and name not in _MAY_DIFFER:
            raise RunError(
                f"{source.folder}: has {name} {theirs.get(name)}, expected {ours[name]} as asked "
                "for"
            )
    if not source.best:
        raise RunError(f"{source.folder}: has no checkpoint to start from")
    if source.metadata["data"]["key"] != prepared.manifest["key"]:
        raise RunError(f"{source.folder}: was trained on other data than {prepared.folder} holds")
    metric = "tanimoto" if "tanimoto" in source.best else next(iter(source.best))
    best_model(source, metric, prepared)  # refuses a checkpoint that is not the run's own
    return source.checkpoint(metric)


_STATE = {"step": int, "run": str, "digest": str}


def save_state(
    folder: Path, model: Retriever, optimizer: ClippedAdam, metadata: dict[str, Any]
) -> None:
    """Write all that a run needs to resume: weights, moments, random state, and plain metadata."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{moment}.{name}"] = value
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    arrays = as_arrays(tensors)
    with atomic_directory(folder) as partial:
        save_file(arrays, partial / "state.safetensors")
        text = json.dumps(metadata | {"digest": digest(arrays)})
        (partial / "state.json").write_text(text, encoding="utf-8")


def load_state(folder: Path, model: Retriever, optimizer: ClippedAdam, run: str) -> dict[str, Any]:
    """Restore what `save_state` wrote for the run of this identity, and return the metadata.

    Raises
    ------
    RunError, ModelError
        It is damaged, or of another run.
    """
    anew = f"remove {folder} to begin the run anew"
    path = folder / "state.safetensors"
    metadata = read_object(folder / "state.json", RunError, anew)
    check_fields(metadata, _STATE, folder / "state.json", RunError, anew)
    if metadata["run"] != run:
        raise RunError(f"{folder}: is the state of another run; {anew}")
    arrays, _ = read_arrays(path)
    if metadata.pop("digest") != digest(arrays):
        raise RunError(f"{path}: has changed since it was written; {anew}")
    weights = {name: value for name, value in arrays.items() if name.startswith("model.")}
    load_into(model, {name.removeprefix("model."): v for name, v in weights.items()}, path)
    for name, parameter in model.named_parameters():
        for moment in ("step", "exp_avg", "exp_avg_sq"):
            value = arrays.get(f"optimizer.{moment}.{name}")
            if value is None:
                continue
            if value.shape != (() if moment == "step" else parameter.shape):
                raise RunError(f"{path}: {moment} of {name} has another shape; {anew}")
            optimizer.state[parameter][moment] = torch.from_numpy(value).to(parameter.device)
    try:
        torch.set_rng_state(torch.from_numpy(arrays["random.cpu"]))
        if torch.cuda.is_available() and "random.cuda" in arrays:
            torch.cuda.set_rng_state(torch.from_numpy(arrays["random.cuda"]))
    except (KeyError, RuntimeError, TypeError) as error:
        raise RunError(f"{path}: its random state cannot be read; {anew}") from error
    return metadata
