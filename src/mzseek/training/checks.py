"""Checks before a run folder is made: folds, candidate lists, memory."""

import os
from dataclasses import replace
from pathlib import Path

import torch

from mzseek.core.errors import ModelError, RunError
from mzseek.datasets.prepared import Prepared
from mzseek.datasets.slices import Slices
from mzseek.models import ModelSpec, build
from mzseek.models.layers import device
from mzseek.training.options import Options
from mzseek.training.prior_offset import offset_groups
from mzseek.training.state import first_stage, steps_per_epoch

# float32, of each weight: itself, its gradient, and the optimiser's two moments.
_BYTES_PER_WEIGHT = 16
_USUAL_BATCH = 1_024
# Where Linux says how much a container may have, by its two generations of control groups.
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_run(prepared: Prepared, options: Options) -> int:
    """Return the steps of the run, all epochs, or raise for what cannot be trained.

    Raises
    ------
    RunError, CacheError
        A fold or the candidate lists are missing, the model does not fit into memory, or the run
        to start from has another encoder.
    """
    usable = len(prepared.in_fold("train"))
    if (spec := options.model_for(prepared)) is not None:
        check_size(spec, options, usable)
    for fold in ("train", "val"):
        if not len(prepared.in_fold(fold)):
            raise RunError(f"{prepared.folder}: has no {fold} spectra, expected some of each fold")
    loss = options.loss_kind
    if prepared.settings or loss.reads_candidates:
        prepared.candidates(options.candidates)  # the error lists the settings there are
    measured_on = prepared.measured_on(options.candidates)
    if measured_on != options.candidates:
        prepared.candidates(measured_on)
    if loss.reads_candidates:
        usable = _spectra_with_lists(prepared, "train", options.candidates)
    if not loss.reports_fingerprint:  # its only metrics are hit rates
        _spectra_with_lists(prepared, "val", measured_on)
    if options.start_from:
        first_stage(options, prepared)
    if options.offset:
        offset_groups(prepared, options.candidates)
    return steps_per_epoch(usable, options.batch_size) * options.epochs


def _spectra_with_lists(prepared: Prepared, fold: str, setting: str) -> int:
    """Count the spectra of a fold whose list contains their molecule; refuse a fold without any."""
    queries = prepared.in_fold(fold)
    prepared.candidates(setting)
    count = len(Slices(prepared, (setting,), queries).with_lists(queries, setting, "fingerprint"))
    if not count:
        raise RunError(
            f"{prepared.folder}: no {fold} spectrum has a {setting} list with its molecule in it"
        )
    return count


def check_size(spec: ModelSpec, options: Options, spectra: int) -> None:
    """Raise a RunError if weights and moments, or a batch, exceed the memory."""
    if options.batch_size > max(spectra, _USUAL_BATCH):
        raise RunError(
            f"batch_size is {options.batch_size:,}, expected at most {spectra:,}, the number of "
            "training spectra"
        )
    memory, batch = available_memory(), min(options.batch_size, spectra)
    needed = training_bytes(spec, batch)
    if needed <= memory:
        return
    repeats = spec.encoder_kind.repeats
    low, high = 0, spec.width  # the largest width that fits is looked for between these
    while high - low > 1:
        middle = (low + high) // 2
        fits = training_bytes(_with(spec, width=middle), batch) <= memory
        low, high = (middle, high) if fits else (low, middle)
    layers = f" with {spec.repeats:,} {repeats}" if repeats else ""
    raise RunError(
        f"width {spec.width:,}{layers} and batches of {options.batch_size:,} would take "
        f"{_gigabytes(needed)} of memory, and there are {_gigabytes(memory)}; "
        + (
            f"a width of {low // 8 * 8:,} would do"
            if low >= 8
            else f"ask for fewer {repeats or 'parts'} or smaller batches"
        )
    )


def available_memory() -> float:
    """Return bytes of memory that training may use: the device's, machine's or container's."""
    if device() == "cuda":
        return float(torch.cuda.get_device_properties(0).total_memory)
    try:
        sizes = [float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # not every system can be asked
        return float("inf")
    for path in _CGROUP_LIMITS:
        try:
            sizes.append(float(Path(path).read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return min(sizes)


def training_bytes(spec: ModelSpec, batch: int) -> float:
    """Least memory of training: weights, moments, and the activations of a batch.

    Nothing is allocated. Layers are alike, so that models of one and of two tell what many take.
    """
    if name := spec.encoder_kind.repeats:
        single, double = (_count_weights(_with(spec, **{name: layers})) for layers in (1, 2))
        weights = single + (double - single) * (spec.repeats - 1)
    else:
        weights = _count_weights(spec)
    activations = spec.width * (spec.repeats + 1) + spec.bits
    return _BYTES_PER_WEIGHT * weights + 4.0 * batch * activations


def _with(spec: ModelSpec, **options: int) -> ModelSpec:
    """Return the same model with other options of the encoder."""
    return replace(spec, encoder=spec.encoder.replace(**options))


def _count_weights(spec: ModelSpec) -> float:
    try:
        with torch.device("meta"):
            return float(sum(weight.numel() for weight in build(spec).parameters()))
    except (RuntimeError, TypeError, OverflowError, ModelError):  # more than can be counted
        return float("inf")


def _gigabytes(size: float) -> str:
    return "more than can be counted" if size == float("inf") else f"{size / 1e9:,.1f} GB"
