"""MCES@1: how many bonds the first candidate is away from the truth.

The distance is that of the maximum common edge subgraph: the bonds, weighted by their order, that
two molecules do not share. It is computed by the package myopic-mces (Kretschmer et al., Coverage
bias in small molecule machine learning, 2025), which solves an integer program for each pair. That
package is optional: ``pip install 'mzseek[mces]'``.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.chem.molecules import canonical_smiles
from mzseek.core.errors import MetricError, MoleculeError
from mzseek.parallel.processes import LocalEngine

# The solver that comes with the package, in its two guises, before others that may be installed.
_SOLVERS = ("COIN_CMD", "PULP_CBC_CMD")


def mces_at_1(
    smiles_predicted: Sequence[str],
    smiles_true: Sequence[str],
    threshold: float = 15,
    solver: str | None = None,
    jobs: int = 1,
) -> npt.NDArray[np.float64]:
    """MCES distance of the first candidate to the truth, of each query.

    Parameters
    ----------
    smiles_predicted, smiles_true : sequence of str
        The best-scored candidate of each query, and its true molecule.
    threshold : float
        Distances are exact up to here. Beyond, a lower bound of the distance is given, which is
        at least the threshold. MassSpecGym takes 15; −1 computes all exactly, which can take long.
    solver : str, optional
        Name of a solver that PuLP knows; the first that is installed where none is given.
    jobs : int
        Processes to work with.

    Returns
    -------
    float64 array, shape (queries,)
        Distances: 0 is the same molecule, lower is better. Their mean is MassSpecGym's MCES@1.

    Raises
    ------
    MetricError
        Where myopic-mces or a solver is not installed, a SMILES cannot be read, or the two
        sequences differ in length.
    """
    if len(smiles_predicted) != len(smiles_true):
        raise MetricError(
            f"{len(smiles_predicted):,} predicted and {len(smiles_true):,} true molecules, "
            "expected one of each a query"
        )
    if threshold != -1 and not threshold > 0:
        raise MetricError(f"threshold is {threshold}, expected more than 0, or -1 for none")
    package = _package("myopic_mces")
    solver = solver or _first_solver()
    predicted, true = _canonical(smiles_predicted, "predicted"), _canonical(smiles_true, "true")
    pairs = list(zip(predicted, true, strict=True))
    # Hits are 0 without a solver, and spectra of one molecule often share their first candidate.
    distinct = sorted({pair for pair in pairs if pair[0] != pair[1]})
    distance = partial(_distance, package.MCES, threshold=threshold, solver=solver)
    distances = LocalEngine(jobs).results(distance, distinct)
    distance_of = dict(zip(distinct, distances, strict=True))
    return np.array([distance_of.get(pair, 0.0) for pair in pairs], dtype=np.float64)


def _distance(
    mces: Callable[..., Any], pair: tuple[str, str], threshold: float, solver: str
) -> float:
    try:
        distance = mces(
            *pair, threshold=threshold, solver=solver, solver_options={"msg": False, "threads": 1}
        )
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MetricError(f"MCES distance of {pair[0]} and {pair[1]}: {reason}") from error
    return float(distance[1])


def _canonical(smiles: Sequence[str], name: str) -> list[str]:
    canonical: dict[str, str] = {}
    for query, text in enumerate(smiles):
        if text not in canonical:
            try:
                canonical[text] = canonical_smiles(text)
            except MoleculeError as error:
                raise MetricError(f"query {query}, {name} molecule: {error}") from None
    return [canonical[text] for text in smiles]


def _first_solver() -> str:
    there = _package("pulp").listSolvers(onlyAvailable=True)
    for name in (*_SOLVERS, *there):
        if name in there:
            return str(name)
    raise MetricError("MCES needs a solver of integer programs: pip install 'mzseek[mces]'")


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise MetricError(
            "MCES needs the package myopic-mces: pip install 'mzseek[mces]'"
        ) from None
