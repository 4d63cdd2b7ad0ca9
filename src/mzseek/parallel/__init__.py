"""Work in threads, in processes or on a cluster, and its progress."""

from mzseek.parallel.engine import Channel, Engine, Log, Progress, no_log, silent
from mzseek.parallel.processes import LocalEngine, OpenedOnce, in_batches, in_threads
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
    "in_threads",
    "no_log",
    "silent",
]
