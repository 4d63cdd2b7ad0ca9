"""Long work: in batches, in processes or on a cluster, and how far it has got."""

from mzseek.parallel.engine import Channel, Engine, Progress, Say, silent, unheard
from mzseek.parallel.processes import LocalEngine, WithOpened, in_batches
from mzseek.parallel.ray import ENGINES, RayEngine, engine_named

__all__ = [
    "ENGINES",
    "Channel",
    "Engine",
    "LocalEngine",
    "Progress",
    "RayEngine",
    "Say",
    "WithOpened",
    "engine_named",
    "in_batches",
    "silent",
    "unheard",
]
