"""Long work: in batches, in processes or on a cluster, and how far it has got."""

from mzseek.parallel.engine import Channel, Engine, Log, Progress, no_log, silent
from mzseek.parallel.processes import LocalEngine, OpenedOnce, in_batches
from mzseek.parallel.ray import ENGINES, RayEngine, engine_named

__all__ = [
    "ENGINES",
    "Channel",
    "Engine",
    "LocalEngine",
    "Log",
    "OpenedOnce",
    "Progress",
    "RayEngine",
    "engine_named",
    "in_batches",
    "no_log",
    "silent",
]
