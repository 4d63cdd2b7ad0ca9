"""What this machine can train: memory and threads."""

import os
from dataclasses import replace
from pathlib import Path

import torch

from mzseek.errors import ModelError, RunError
from mzseek.models import ModelSpec, build
from mzseek.models.device import device
from mzseek.training.plan.options import Options

# float32, of each weight: itself, its gradient, and the optimiser's two moments.
_BYTES = 16
MOST_THREADS = 1_024
_USUAL_BATCH = 1_024
# Where Linux says how much a container may have, by its two generations of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_size(spec: ModelSpec, options: Options, spectra: int) -> None:
    """Refuse a model that cannot be trained here, and say what can.

    Parameters
    ----------
    spec : ModelSpec
    options : Options
    spectra : int
        Training spectra there are.

    Raises
    ------
    RunError
        Weights and moments would not fit into the machine's memory, or a batch would not.
    """
    if options.batch_size > max(spectra, _USUAL_BATCH):
        raise RunError(
            f"batch_size is {options.batch_size:,}, expected at most {spectra:,}, the number of "
            "training spectra"
        )
    memory = memory_of_machine()
    needed = training_bytes(spec, min(options.batch_size, spectra))
    if needed <= memory:
        return
    repeats = spec.encoder_kind.repeats
    layers = f" with {spec.repeats:,} {repeats}" if repeats else ""
    said = f"width {spec.width:,}{layers} and batches of {options.batch_size:,}"
    raise RunError(
        f"{said} would take {_gigabytes(needed)} of memory, and there are {_gigabytes(memory)}; "
        f"{_what_fits(spec, options, spectra, memory)}"
    )


def memory_of_machine() -> float:
    """Bytes of memory that training may use: the device's, or this machine's or container's."""
    if device() == "cuda":
        return float(torch.cuda.get_device_properties(0).total_memory)
    try:
        sizes = [float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # not every system can be asked
        return float("inf")
    for path in _LIMITS:
        try:
            sizes.append(float(Path(path).read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return min(sizes)


def check_threads(options: Options) -> None:
    """Refuse more threads than any machine could start."""
    if options.threads is not None and options.threads > MOST_THREADS:
        raise RunError(f"threads is {options.threads:,}, expected at most {MOST_THREADS:,}")


def training_bytes(spec: ModelSpec, batch: int) -> float:
    """Memory that training takes at the least: weights, moments, and a batch on its way through.

    Nothing is allocated. Layers are alike, so that two small models tell what many layers take.
    """
    if name := spec.encoder_kind.repeats:
        one, two = (_parameters(_with(spec, **{name: layers})) for layers in (1, 2))
        weights = one + (two - one) * (spec.repeats - 1)
    else:
        weights = _parameters(spec)
    kept = spec.width * (spec.repeats + 1) + spec.bits  # what the backward pass reads again
    return _BYTES * weights + 4.0 * batch * kept


def _with(spec: ModelSpec, **options: int) -> ModelSpec:
    """The same with other options of the encoder."""
    return replace(spec, encoder=spec.encoder.having(**options))


def _parameters(spec: ModelSpec) -> float:
    try:
        with torch.device("meta"):
            return float(sum(weight.numel() for weight in build(spec).parameters()))
    except (RuntimeError, TypeError, OverflowError, ModelError):  # more than can be counted
        return float("inf")


def _what_fits(spec: ModelSpec, options: Options, spectra: int, memory: float) -> str:
    """The largest width that would do, or what else to ask for less of."""
    batch = min(options.batch_size, spectra)

    def fits(width: int) -> bool:
        return training_bytes(_with(spec, width=width), batch) <= memory

    low, high = 0, spec.width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low >= 8:
        return f"a width of {low // 8 * 8:,} would do"
    return f"ask for fewer {spec.encoder_kind.repeats or 'parts'} or smaller batches"


def _gigabytes(size: float) -> str:
    return "more than can be counted" if size == float("inf") else f"{size / 1e9:,.1f} GB"
