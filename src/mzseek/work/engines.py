"""Engines by name."""

from mzseek.errors import MzseekError
from mzseek.registry import check_name
from mzseek.work.cluster import RayEngine
from mzseek.work.engine import Engine
from mzseek.work.local import LocalEngine

ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "ray": RayEngine}


def engine_named(name: str, jobs: int | None = None, address: str | None = None) -> Engine:
    """Engine of that name.

    Parameters
    ----------
    name : str
        "local" or "ray".
    jobs : int, optional
        Batches at a time.
    address : str, optional
        Of a Ray cluster.

    Returns
    -------
    Engine

    Raises
    ------
    MzseekError
        The name is unknown, or an address was given to an engine that has none.
    """
    check_name(ENGINES, name, "engine", MzseekError)
    if name == "ray":
        return RayEngine(jobs, address)
    if address:
        raise MzseekError(f"engine {name!r} has no address; --address is for --engine ray")
    return LocalEngine(jobs)
