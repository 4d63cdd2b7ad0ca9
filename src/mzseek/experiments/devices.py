"""GPUs for the trials of a sweep: one for each worker process."""

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mzseek.core.errors import BusyError, ExperimentError, WriteError
from mzseek.io import sole_writer
from mzseek.parallel import Engine, engine_named

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_held = contextlib.ExitStack()  # the lock on this process's device, until the process ends
_taken: list[str] = []


def visible_devices() -> str:
    """Return the GPUs that this process may use, as CUDA reads them; empty for all or none."""
    return os.environ.get(_VISIBLE, "")


def gpu_devices(count: int | None = None) -> list[str]:
    """Return this machine's GPUs, those that CUDA_VISIBLE_DEVICES names if it is set.

    ``count`` limits them, 0 for none; an `ExperimentError` if there are not so many.
    """
    if count == 0:
        return []
    import torch

    device_names = [device for device in visible_devices().split(",") if device]
    device_names = (
        device_names if _VISIBLE in os.environ else list(map(str, range(torch.cuda.device_count())))
    )
    if count is not None and count > len(device_names):
        raise ExperimentError(f"--gpus {count}: there are {len(device_names)} on this machine")
    return device_names[:count]


def take_device(devices: Sequence[str] | None) -> None:
    """Make one of the devices the only one that this process sees, until the process ends.

    None leaves all as they are; of no devices, none is seen. A lock keeps other processes from the
    same one, also those of another sweep on this machine.
    """
    if devices is None or _taken:
        return
    for device in devices:
        lock = Path(tempfile.gettempdir()) / f"mzseek-gpu-{device}"
        with contextlib.suppress(BusyError, WriteError):
            _held.enter_context(sole_writer(lock, "training a model on a GPU"))
            break
    else:
        if devices:
            raise ExperimentError(
                f"GPUs {', '.join(devices)}: other processes train on all of them"
            )
        device = ""
    _taken.append(device)
    os.environ[_VISIBLE] = device


def engine_and_devices(
    name: str, jobs: int | None, address: str | None, gpus: int | None
) -> tuple[Engine, list[str] | None]:
    """Return the engine of a sweep, and the GPUs that its workers take themselves.

    On this machine there are as many workers as GPUs, unless fewer are asked for; without GPUs, as
    many as cores. A Ray cluster gives each trial a GPU itself, where it has some.
    """
    if name != "local":
        return engine_named(name, jobs, address, gpus), None
    devices = gpu_devices(gpus)
    if devices:
        jobs = min(jobs or len(devices), len(devices))
    return engine_named(name, jobs, address), devices if devices or gpus == 0 else None
