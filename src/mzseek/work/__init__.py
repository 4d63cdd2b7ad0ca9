"""Long work: in batches, in processes or on a cluster, and how far it has got."""

from mzseek.work.batches import in_batches
from mzseek.work.channel import Channel
from mzseek.work.cluster import RayEngine
from mzseek.work.engine import Engine
from mzseek.work.engines import ENGINES, engine_named
from mzseek.work.local import LocalEngine
from mzseek.work.opened import WithOpened
from mzseek.work.progress import Progress, Say, silent, unheard

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
