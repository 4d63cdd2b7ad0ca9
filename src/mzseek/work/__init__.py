"""Long work: in batches, in processes or on a cluster, and how far it has got."""

from mzseek.work.batches import in_batches
from mzseek.work.engine import ENGINES, Engine, LocalEngine, RayEngine, engine_named
from mzseek.work.progress import Progress, Say, silent, unheard

__all__ = [
    "ENGINES",
    "Engine",
    "LocalEngine",
    "Progress",
    "RayEngine",
    "Say",
    "engine_named",
    "in_batches",
    "silent",
    "unheard",
]
